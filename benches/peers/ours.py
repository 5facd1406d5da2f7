"""Times reprior itself: what a step costs is the difference between a long and a short run.

Both runs record the same few draws and differ in the transitions between them, so that reading the
data, recording and writing cancel. Seconds, steps and evaluations are those of `sample --json`; a
step is one transition of one chain, seconds are shared by all chains.
"""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

DRAWS = 4
LONGER = 4
# the long run's transitions between draws are at most this
MOST_THIN = 1 << 20


class Failed(Exception):
    """A command that did not end well."""


def execute(command):
    """What a command prints, and its peak memory in MB."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            list(map(str, command)), stdout=subprocess.PIPE, stderr=errors, text=True
        )
        with process.stdout:
            text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise Failed(f"{' '.join(map(str, command))}\n{errors.read().strip()}")
    return text, usage.ru_maxrss / 1024


class Reprior:
    """The program, with a folder for its runs; the lengths of runs are found once for each case."""

    def __init__(self, binary, folder, seconds, chains):
        self.binary, self.folder = pathlib.Path(binary), pathlib.Path(folder)
        self.seconds, self.chains = seconds, chains
        self.lengths = {}
        self.draws_of_diagnostics = {}

    def sample(self, flags):
        """The summary of a run, with its peak memory."""
        command = [self.binary, "sample", *flags, "--chains", self.chains, "--json", "--quiet"]
        text, peak = execute([*command, "--overwrite", "--out", self.folder / "run"])
        return json.loads(text) | {"peak_mb": peak}

    def difference(self, flags, thin):
        """A long run less a short one."""
        recording = ["--draws", DRAWS, "--projections", 1, "--keep", 1]
        short = self.sample([*flags, *recording, "--thin", thin])
        long = self.sample([*flags, *recording, "--thin", LONGER * thin])
        less = {
            name: long[name] - short[name]
            for name in ("seconds", "steps", "n_evaluations", "n_gradients")
        }
        return less | {"peak_mb": long["peak_mb"]}

    def step(self, flags):
        """Milliseconds per step and per evaluation, over all chains."""
        key = tuple(map(str, flags))
        thin = self.lengths.get(key, 1)
        while key not in self.lengths:
            seconds = self.difference(flags, thin)["seconds"]
            if seconds > self.seconds / 8 or thin >= MOST_THIN:
                thin = max(1, round(thin * min(8.0, self.seconds / seconds)))
                self.lengths[key] = min(thin, MOST_THIN)
            thin = min(4 * thin, MOST_THIN) if key not in self.lengths else self.lengths[key]
        run = self.difference(flags, thin)
        evaluations = run["n_evaluations"] + run["n_gradients"]
        return {
            "ms_per_step": 1e3 * run["seconds"] / run["steps"],
            "ms_per_evaluation": 1e3 * run["seconds"] / evaluations,
            "evaluations_per_step": evaluations / run["steps"],
            "steps": run["steps"],
            "peak_mb": run["peak_mb"],
        }

    def effective(self, flags):
        """Milliseconds per effective draw of predictions, warm-up counted."""
        run = self.sample(flags)
        return {
            "ms_per_step": 1e3 / run["ess"]["prediction"]["per_second"],
            "ms_per_evaluation": 1e3 * run["seconds"] / run["n_gradients"],
            "step_size": sum(run["step_size"]) / len(run["step_size"]),
            "ess": run["ess"]["prediction"]["mean"],
            "seconds": run["seconds"],
            "accuracy": run["metrics"].get("accuracy"),
            "peak_mb": run["peak_mb"],
        }

    def diagnostics(self, chains, draws, variables):
        """The command `summary` on so many variables less the same on one: reading them, bulk and
        tail ESS, rank R-hat and what else it says of them."""
        self.draws_of_diagnostics = self.draws_of_diagnostics or {
            count: self.record(chains, draws, count) for count in (variables, 1)
        }
        seconds, peaks = [], []
        for run in self.draws_of_diagnostics.values():
            began = time.perf_counter()
            _, peak = execute([self.binary, "summary", run, "--json"])
            seconds.append(time.perf_counter() - began)
            peaks.append(peak)
        return {"ms_per_step": 1e3 * (seconds[0] - seconds[1]), "peak_mb": max(peaks)}

    def record(self, chains, draws, variables):
        """A run of a tiny network with so many projections."""
        run = self.folder / f"draws-{variables}"
        shutil.rmtree(run, ignore_errors=True)
        flags = ["--data", "friedman", "--train", 20, "--test", 1, "--network", "fcn:2"]
        flags += ["--method", "pcn", "--step-size", 0.1, "--warmup", 0, "--arrival", 0, "--thin", 1]
        flags += ["--chains", chains, "--draws", draws, "--projections", variables, "--keep", 1]
        execute([self.binary, "sample", *flags, "--json", "--quiet", "--out", run])
        return run

    def version(self):
        return execute([self.binary, "--version"])[0].strip()
