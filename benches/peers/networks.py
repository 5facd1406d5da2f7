"""Times reprior's networks and infinite-width kernels beside PyTorch, JAX and neural-tangents.

    python benches/peers/networks.py --kernels-python target/peers-kernels/bin/python
    python benches/peers/networks.py --cases gradient-128,product-1000 --rounds 3 --seconds 2
    python benches/peers/networks.py --table-only --table docs/src/tables/networks.md

Each measurement is a process of its own with all cores to itself, peer, peer, reprior, peer, peer,
reprior, ..., and gives the shortest time of several; of a peer, in the way that was the fastest
before the first round. Results are appended to a file of JSON lines, from which the table can be
written again; a case's rounds are those of its latest session.
"""

import argparse
import datetime
import json
import os
import pathlib
import platform
import sys
import time

import network_cases
import network_table
import ours
import ours_networks
import table

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def arguments():
    def words(text):
        return [word for word in text.split(",") if word]

    names = list(network_cases.CASES)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--cases", type=words, default=names, help=", ".join(names) + " [all]")
    add("--rounds", type=int, default=5)
    add("--seconds", type=float, default=3.0, help="of each measurement, about [3]")
    add("--trial", type=float, default=0.5, help="seconds of the trial of each way [0.5]")
    add("--python", default=sys.executable, help="that has PyTorch and JAX [this one]")
    kernels = ROOT / "target/peers-kernels/bin/python"
    add("--kernels-python", default=kernels, help="that has neural-tangents")
    add("--results", type=pathlib.Path, default=ROOT / "target/networks.jsonl")
    add("--table", type=pathlib.Path, help="write the table to this file as well")
    add("--table-only", action="store_true", help="write the table from the results, run nothing")
    options = parser.parse_args()
    unknown = set(options.cases) - set(names)
    if unknown:
        parser.error(f"no case {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return options


class Comparison:
    """A session: where reprior's benchmarks are, and which way was found best of each peer."""

    def __init__(self, options):
        self.options, self.ways = options, {}
        self.pythons = dict.fromkeys(["PyTorch", "JAX"], options.python)
        self.pythons["neural-tangents"] = options.kernels_python
        self.reprior = ours_networks.Reprior(ROOT)

    def peer(self, case, name):
        """A measurement of the peer of this name."""
        command = [self.pythons[name], HERE / case.peers[name][0], *case.peers[name][1:]]
        command += ["--seconds", self.options.seconds, "--trial", self.options.trial]
        way = self.ways.get((case, name))
        if way is None:
            record = self.record(command)
            self.ways[case, name] = way = record["way"]
            print(f"{case.title}: {name} in the way {json.dumps(way)}", file=sys.stderr)
        # trials leave memory behind: measured again without them
        return self.record([*command, "--way", json.dumps(way)])

    @staticmethod
    def record(command):
        return json.loads(ours.execute(command)[0].splitlines()[-1])

    def round(self, case):
        """All peers and then reprior."""
        peers = {name: self.peer(case, name) for name in case.peers}
        return peers, self.reprior.measure(case, self.options.seconds)


def machine():
    """Processor and cores."""
    processor = platform.processor() or "processor not known"
    if pathlib.Path("/proc/cpuinfo").exists():
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        processor = names[0] if names else processor
    return {"processor": processor, "cores": len(os.sched_getaffinity(0))}


def run(options):
    """All cases, round after round of each; False if one failed."""
    options.results.parent.mkdir(parents=True, exist_ok=True)
    session, good = time.time(), True
    comparison, here = Comparison(options), machine()
    for name in options.cases:
        case = network_cases.CASES[name]
        for number in range(options.rounds):
            try:
                peers, mine = comparison.round(case)
            except (ours.Failed, OSError) as failure:
                print(f"{case.title}: {failure}", file=sys.stderr)
                good = False
                break
            record = {
                "case": {"name": name}, "title": case.title, "rows": case.rows, "epoch": case.epoch,
                "peers": peers, "ours": mine, "machine": here, "session": session,
                "version": comparison.reprior.version, "date": datetime.date.today().isoformat(),
                "round": number,
            }  # fmt: skip
            with options.results.open("a") as file:
                file.write(json.dumps(record) + "\n")
            times = {peer: round(one["ms"], 3) for peer, one in [*peers.items(), ("reprior", mine)]}
            print(f"{case.title}: round {number + 1}, {times} ms", file=sys.stderr)
    return good


def main():
    options = arguments()
    good = options.table_only or run(options)
    text = network_table.markdown(table.read(options.results))
    if options.table:
        options.table.write_text(text)
    print(text)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
