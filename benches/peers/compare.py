"""Times reprior and its peers in alternation and prints a table of milliseconds and ratios.

    cargo build --release
    python benches/peers/compare.py --data PATH/cifar10
    python benches/peers/compare.py --cases pcn,elliptical --widths 512 --rounds 1 --seconds 1
    python benches/peers/compare.py --table-only

Each measurement is a process of its own with all cores to itself: peer, reprior, peer, reprior, ...
A JAX peer runs as one process with all cores (factorisations on all or on one) or as one chain a
core, whichever gave more steps a second before the first round. Results are appended to a file of
JSON lines, from which the table can be written again; a case's rounds are those of its latest
session.
"""

import argparse
import concurrent.futures
import datetime
import importlib.metadata
import json
import os
import pathlib
import sys
import tempfile
import time

import cases
import ours
import table

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PACKAGES = ["jax", "blackjax", "arviz", "numpy"]


def arguments():
    def words(text):
        return [word for word in text.split(",") if word]

    def numbers(text):
        return [int(word) for word in words(text)]

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--data", default="synthetic", help="a CIFAR-10 folder, or `synthetic` rows of that shape")
    add("--binary", type=pathlib.Path, default=ROOT / "target/release/reprior")
    add("--cases", type=words, default=cases.NAMES, help=", ".join(cases.NAMES) + " [all]")
    add("--widths", type=numbers, default=[512, 1024, 2048, 4096], help="[512,1024,2048,4096]")
    add("--rows", type=numbers, default=[1024, 2048], help="of the case `feature` [1024,2048]")
    add("--rounds", type=int, default=5)
    add("--seconds", type=float, default=5.0, help="of each measurement, about [5]")
    add("--chains", type=int, default=2, help="of reprior [2]")
    add("--warmup", type=int, default=100, help="of the case `effective` [100]")
    add("--draws", type=int, default=250, help="of the case `effective`, of each chain [250]")
    add(
        "--check",
        type=numbers,
        default=[4, 10_000, 1000],
        help="chains,draws,variables of `diagnostics`",
    )
    add("--results", type=pathlib.Path, default=ROOT / "target/peers.jsonl")
    add("--table", type=pathlib.Path, help="write the table to this file as well")
    add("--table-only", action="store_true", help="write the table from the results, run nothing")
    options = parser.parse_args()
    unknown = set(options.cases) - set(cases.NAMES)
    if unknown:
        parser.error(f"no case {', '.join(sorted(unknown))}; there are {', '.join(cases.NAMES)}")
    if not options.table_only and not options.binary.exists():
        parser.error(f"{options.binary}: build it with cargo build --release, or give --binary")
    return options


class Comparison:
    """A session: where the runs are, and what was found best for each case."""

    def __init__(self, options, folder):
        self.options = options
        self.reprior = ours.Reprior(options.binary, folder, options.seconds, options.chains)
        self.file = folder / "synthetic.npz"
        self.best = {}

    def rows_of(self, rows):
        """As many as there are."""
        import problem

        there = problem.count(self.options.data)
        if there < rows:
            print(
                f"{self.options.data} has {there} rows, not {rows}: all are taken", file=sys.stderr
            )
        return min(there, rows)

    def source(self, case):
        """A folder, or the name of made-up rows."""
        return "table" if case.name == "table" else self.options.data

    def data_flags(self, case, test_rows):
        """reprior's flags for the same data and network."""
        import problem

        source = [self.source(case)]
        if source == [problem.SYNTHETIC]:
            problem.write_synthetic(self.file, case.rows, test_rows)
            source = [self.file]
        elif source == [problem.TABLE]:
            problem.write_table(self.file.with_suffix(".csv"), case.rows + test_rows)
            source = [self.file.with_suffix(".csv"), "--target", "y", "--no-shuffle"]
        network = "fcn:" + ",".join([str(case.width)] * case.depth)
        rows = ["--train", case.rows, "--test", test_rows]
        threads = ["--threads", len(os.sched_getaffinity(0))]
        model = ["--network", network, "--likelihood", "gaussian", "--noise", 0.1]
        return ["--data", *source, *rows, *model, *threads]

    def ours(self, case):
        if case.name == "diagnostics":
            return self.reprior.diagnostics(*case.our_flags)
        if case.name == "effective":
            lengths = ["--warmup", self.options.warmup, "--draws", self.options.draws, "--thin", 2]
            return self.reprior.effective(
                [*self.data_flags(case, 200), "--method", "hmc-infinite", *lengths]
            )
        return self.reprior.step([*self.data_flags(case, 1), *case.our_flags])

    def peer_commands(self, case, step_size):
        """The command of one process, and flags that make of it one chain of several."""
        if case.name == "diagnostics":
            return ["diagnostics.py", *shape_flags(case.our_flags)], None
        common = ["--data", self.source(case), "--width", case.width, "--rows", case.rows]
        if case.name == "effective":
            lengths = ["--warmup", self.options.warmup, "--draws", self.options.draws]
            return ["effective.py", *common, "--step-size", step_size, *lengths], ["--chains", 1]
        depth = ["--depth", case.depth, "--seconds", self.options.seconds]
        return ["peer.py", case.algorithm, *common, *depth, *case.peer_flags], []

    def peer(self, case, step_size=None):
        """A measurement in the way that was faster; both are tried first."""
        if case.algorithm is None and case.name not in ("effective", "diagnostics"):
            return None
        command, alone = self.peer_commands(case, step_size)
        cores = sorted(os.sched_getaffinity(0))
        layouts = {"one process": [[]]}
        if alone is not None and len(cores) > 1:
            layouts["one process, BLAS on one thread"] = [["--blas-threads", 1]]
            layouts["a chain a core"] = [[*alone, "--core", c, "--seed", c] for c in cores]
        if case not in self.best:
            trials = {name: self.processes(command, each) for name, each in layouts.items()}
            name = min(trials, key=lambda name: trials[name]["ms_per_step"])
            factor = trials[name].get("factor")
            self.best[case] = name, ["--factor", factor] if factor else []
        name, factor = self.best[case]
        return self.processes([*command, *factor], layouts[name]) | {"layout": name}

    @staticmethod
    def processes(command, each):
        """Processes at the same time: rates add up, memory as well."""

        def one(extra):
            text, _ = ours.execute([sys.executable, HERE / command[0], *command[1:], *extra])
            return json.loads(text.splitlines()[-1])

        with concurrent.futures.ThreadPoolExecutor(len(each)) as pool:
            records = list(pool.map(one, each))
        together = dict(records[0])
        for field in ("ms_per_step", "ms_per_evaluation"):
            if field in together:
                together[field] = 1 / sum(1 / record[field] for record in records)
        for field in ("peak_mb", "ess", "evaluations_per_step", "steps"):
            if field in together:
                together[field] = sum(record[field] for record in records)
        if "evaluations_per_step" in together:
            together["evaluations_per_step"] /= len(records)
        return together


def shape_flags(shape):
    return [word for pair in zip(("--chains", "--draws", "--variables"), shape) for word in pair]


def machine(reprior):
    """Processor, cores and versions."""
    processor = "processor not known"
    if pathlib.Path("/proc/cpuinfo").exists():
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        processor = names[0] if names else processor
    versions = [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES]
    cores = len(os.sched_getaffinity(0))
    return {"processor": processor, "cores": cores, "versions": [reprior.version(), *versions]}


def run(options):
    """All cases, round after round of each; False if one failed."""
    options.results.parent.mkdir(parents=True, exist_ok=True)
    session, good = time.time(), True
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(options, pathlib.Path(folder))
        here = machine(comparison.reprior)
        rows = options.rows
        if "feature" in options.cases:
            rows = list(dict.fromkeys(comparison.rows_of(n) for n in rows))
        for case in cases.cases(options.cases, options.widths, rows, tuple(options.check)):
            for number in range(options.rounds):
                try:
                    step_size = None
                    if case.name == "effective" and number == 0:
                        adapted = comparison.ours(case)["step_size"]
                    if case.name == "effective":
                        step_size = adapted
                    peer = comparison.peer(case, step_size)
                    mine = comparison.ours(case)
                except ours.Failed as failure:
                    print(f"{case.title}, width {case.width}: {failure}", file=sys.stderr)
                    good = False
                    break
                record = {
                    "case": case.key, "title": case.title, "unit": case.unit,
                    "peer_name": case.peer_name, "papers": case.papers, "peer": peer, "ours": mine,
                    "chains": options.chains, "machine": here, "session": session,
                    "data": "synthetic" if options.data == "synthetic" else "folder",
                    "date": datetime.date.today().isoformat(), "round": number,
                }  # fmt: skip
                with options.results.open("a") as file:
                    file.write(json.dumps(record) + "\n")
                times = [side and round(side["ms_per_step"], 3) for side in (peer, mine)]
                print(
                    f"{case.title}, {case.width}: round {number + 1}, {times} ms", file=sys.stderr
                )
    return good


def main():
    options = arguments()
    good = options.table_only or run(options)
    text = table.markdown(table.read(options.results))
    if options.table:
        options.table.write_text(text)
    print(text)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
