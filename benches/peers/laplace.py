"""Times reprior's Laplace approximations of LeNet beside laplace-torch, curvlinops, PyTorch and JAX.

    python benches/peers/laplace.py --rounds 3 --table docs/src/tables/laplace.md
    python benches/peers/laplace.py --works fit-kron,gauss-newton --rows 50 --rounds 1
    python benches/peers/laplace.py --table-only

Each measurement is a process of its own with all cores to itself, peer, peer, reprior, peer, peer,
reprior, ..., and gives the median of as many runs of the work alone as fit; of a peer, in the way
that was the fastest before the first round. reprior's is a program, called with the work's name and
`--rows`; without it peers are timed alone. Results are appended to a file of JSON lines, from which
the table can be written again; a work's rounds are those of its latest session.
"""

import argparse
import datetime
import json
import pathlib
import sys
import time
import tomllib

import laplace_cases
import laplace_table
import laplace_work
import networks
import ours
import table

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def arguments():
    def words(text):
        return [word for word in text.split(",") if word]

    names = laplace_work.WORKS
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    add = parser.add_argument
    add("--works", type=words, default=names, help=", ".join(names) + " [all]")
    add("--rows", type=int, default=1000, help="pictures [1000]")
    add("--skip", default="", help="peers to leave out, with semicolons between them")
    add("--rounds", type=int, default=3)
    add("--seconds", type=float, default=3.0, help="of each of the peers' measurements, about [3]")
    add("--trial", type=float, default=0.5, help="seconds of the trial of each way [0.5]")
    add("--python", default=sys.executable, help="that has the peers [this one]")
    program = ROOT / "target/release/examples/laplace_speed"
    add("--ours", type=pathlib.Path, default=program, help="reprior's program [%(default)s]")
    add("--results", type=pathlib.Path, default=ROOT / "target/laplace.jsonl")
    add("--table", type=pathlib.Path, help="write the table to this file as well")
    add("--table-only", action="store_true", help="write the table from the results, run nothing")
    options = parser.parse_args()
    unknown = set(options.works) - set(names)
    if unknown:
        parser.error(f"no work {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    return options


class Comparison:
    """A session: which way was found best of each peer, and which failed."""

    def __init__(self, options):
        self.options, self.ways, self.failed = options, {}, set()
        cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())
        self.version = cargo["workspace"]["package"]["version"]

    def peer(self, name, peer):
        """A measurement of the peer of this name; none if it failed once."""
        script, *given = laplace_cases.peers(name)[peer]
        command = [self.options.python, HERE / script, *given, name, "--rows", self.options.rows]
        command += ["--seconds", self.options.seconds, "--trial", self.options.trial]
        if (name, peer) not in self.ways:
            self.ways[name, peer] = way = self.record(name, command)["way"]
            print(f"{name}: {peer} in the way {json.dumps(way)}", file=sys.stderr)
        # trials leave memory behind: measured again without them
        way = json.dumps(self.ways[name, peer])
        return self.record(name, [*command, "--way", way])

    def reprior(self, name):
        if not self.options.ours.exists():
            return None
        return self.record(name, [self.options.ours, name, "--rows", self.options.rows])

    @staticmethod
    def record(name, command):
        lines = ours.execute(command)[0].splitlines()
        made = json.loads(lines[-1]) if lines else {}
        if made.get("work") != name:
            raise ours.Failed(f"{' '.join(map(str, command))}\nprinted no measurement of {name}")
        return made

    def attempt(self, name, whose, measure, *given):
        """A measurement; a failure is said, and not tried again."""
        if (name, whose) in self.failed:
            return None
        try:
            return measure(name, *given)
        except (ours.Failed, OSError, ValueError) as failure:
            print(f"{name}: {whose}: {failure}", file=sys.stderr)
            self.failed.add((name, whose))
            return None

    def round(self, name):
        """All peers and then reprior."""
        skipped = [peer.strip() for peer in self.options.skip.split(";")]
        peers = {
            peer: self.attempt(name, peer, self.peer, peer)
            for peer in laplace_cases.peers(name)
            if peer not in skipped
        }
        return peers, self.attempt(name, "reprior", self.reprior)


def run(options):
    """All works, round after round of each; False if something failed."""
    options.results.parent.mkdir(parents=True, exist_ok=True)
    session, comparison, here = time.time(), Comparison(options), networks.machine()
    if not options.ours.exists():
        print(f"no {options.ours}: peers alone", file=sys.stderr)
    for name in options.works:
        for number in range(options.rounds):
            peers, mine = comparison.round(name)
            record = {
                "case": {"name": name, "rows": options.rows}, "title": laplace_cases.TITLES[name],
                "rows": options.rows, "peers": peers, "ours": mine, "machine": here,
                "session": session, "version": comparison.version,
                "date": datetime.date.today().isoformat(), "round": number,
            }  # fmt: skip
            with options.results.open("a") as file:
                file.write(json.dumps(record) + "\n")
            times = {who: one and one["seconds"] for who, one in [*peers.items(), ("reprior", mine)]}
            print(f"{name}: round {number + 1}, {times} s", file=sys.stderr)
    return not comparison.failed


def main():
    options = arguments()
    good = options.table_only or run(options)
    text = laplace_table.markdown(table.read(options.results))
    if options.table:
        options.table.write_text(text)
    print(text)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
