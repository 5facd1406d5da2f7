"""reprior's side of `networks.py`: its own benchmarks, one case each, on all cores."""

import json
import os
import pathlib
import subprocess
import tomllib

import ours


class Reprior:
    """The benchmarks `networks`, `infinite` and `minibatch`, built once."""

    def __init__(self, root):
        self.version = tomllib.loads((root / "Cargo.toml").read_text())["workspace"]["package"][
            "version"
        ]
        command = ["cargo", "bench", "--workspace", "--no-run", "--message-format", "json"]
        command += ["--bench", "networks", "--bench", "infinite"]
        command += ["--bench", "minibatch"]
        lines = subprocess.run(
            command, cwd=root, check=True, stdout=subprocess.PIPE, text=True
        ).stdout.splitlines()
        messages = [json.loads(line) for line in lines if line.startswith("{")]
        self.programs = {
            message["target"]["name"]: pathlib.Path(message["executable"])
            for message in messages
            if message.get("reason") == "compiler-artifact" and message.get("executable")
        }

    def measure(self, case, seconds):
        """Milliseconds and peak memory."""
        flags = [case.name, "--only", case.operation, "--seconds", seconds, "--json"]
        flags += ["--threads", len(os.sched_getaffinity(0))]
        flags += ["--rows", case.rows] if case.bench == "networks" else []
        text, peak = ours.execute([self.programs[case.bench], *flags])
        records = [json.loads(line) for line in text.splitlines()]
        if len(records) != 1 or records[0]["rows"] != case.rows:
            raise ours.Failed(f"{case.title}: the benchmark printed\n{text}")
        return records[0] | {"peak_mb": peak}
