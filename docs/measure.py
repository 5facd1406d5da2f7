"""Effective samples per second of every sampler: makes docs/src/tables/ess.md, which the book includes.

    cargo build --release
    python3 docs/measure.py --data cifar=PATH/cifar10 --data energy=PATH/energy.csv --seconds 120 --jobs 2

For each data set, width, coordinate system and method: short runs that grow to a tenth of the budget give the cost of a
transition, then one run of two chains on one thread is sized to the budget, a third of its transitions warm-up. Each result is appended to a file of JSON lines; what is in
there is not run again, so the script can be stopped and started. The table is written anew each time.
"""

import argparse
import concurrent.futures
import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
METHODS = ["hmc-infinite", "nuts", "hmc", "elliptical", "pcn", "pcnl", "langevin", "mala", "rwm", "mams", "mclmc"]
CHAINS = 2
# Draws of each chain that are recorded at most; more transitions are thinned to this.
MOST_DRAWS = 1000
KEY = ["data", "coordinates", "width", "method", "depth", "train", "test", "seconds_budget", "seed"]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    listed = lambda text: [word for word in text.split(",") if word]
    parser.add_argument("--data", action="append", required=True, metavar="NAME=PATH", help="a data set; repeatable")
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "target/release/reprior")
    parser.add_argument("--methods", type=listed, default=METHODS)
    parser.add_argument("--widths", type=lambda text: [int(word) for word in listed(text)], default=[64, 256, 1024, 4096])
    parser.add_argument("--depth", type=int, default=1, help="hidden layers [1]")
    parser.add_argument("--coordinates", type=listed, default=["marginal"])
    parser.add_argument("--train", type=int, default=256, help="training rows [256]")
    parser.add_argument("--test", type=int, default=100, help="test rows whose predictions are measured [100]")
    parser.add_argument("--seconds", type=float, default=60.0, help="budget of each run [60]")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, one thread each [1]")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "target/measurements.jsonl")
    parser.add_argument("--table", type=pathlib.Path, default=ROOT / "docs/src/tables/ess.md")
    parser.add_argument("--table-only", action="store_true", help="write the table from the results, run nothing")
    options = parser.parse_args()
    for name_and_path in options.data:
        name, _, path = name_and_path.partition("=")
        if not name or not pathlib.Path(path).exists():
            parser.error(f"--data {name_and_path}: give NAME=PATH of something that exists")
    options.data = dict(name_and_path.split("=", 1) for name_and_path in options.data)
    return options


def key(record):
    return tuple(record[name] for name in KEY)


def read(path):
    """Results so far. A last line that was cut short by a kill is left out."""
    records = {}
    if path.exists():
        for line in path.read_text().splitlines():
            try:
                record = json.loads(line)
                records[key(record)] = record
            except (ValueError, KeyError):
                continue
    return records


class Failed(Exception):
    """The program refused or failed."""


class NoSummary(Failed):
    """A run that was stopped before its first draw."""


running = set()


class Runner:
    """Runs of one combination."""

    def __init__(self, options, task, folder):
        self.options, self.task, self.folder = options, task, folder
        self.count = 0

    def run(self, warmup, draws, thin, limit, extra=()):
        """The summary of a run, which is stopped after `limit` seconds, and whether it was."""
        self.count += 1
        task, out = self.task, self.folder / str(self.count)
        path = self.options.data[task["data"]]
        command = [
            self.options.binary, "sample", "--data", path, "--train", task["train"], "--test", task["test"],
            "--network", "fcn:" + ",".join([str(task["width"])] * task["depth"]), "--coordinates", task["coordinates"],
            "--method", task["method"], "--seed", task["seed"], "--chains", CHAINS, "--threads", 1, "--warmup", warmup,
            "--draws", draws, "--thin", thin, "--keep", 1, "--checkpoint-seconds", 1, "--json", "--quiet", "--out", out,
            *extra,
        ]  # fmt: skip
        if path.endswith(".csv"):
            command += ["--shuffle", task["seed"]]
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        running.add(process)
        stopped = False
        try:
            text, errors = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            stopped = True
            process.send_signal(signal.SIGINT)
            text, errors = process.communicate()
        running.discard(process)
        if stopped:
            summary = subprocess.run(
                [str(self.options.binary), "summary", str(out), "--json"], capture_output=True, text=True, check=False
            )
            text, errors = summary.stdout, errors + summary.stderr
        elif process.returncode != 0:
            raise Failed(errors.strip())
        try:
            return json.loads(text), stopped
        except ValueError:
            raise NoSummary(errors.strip() or "no summary") from None

    def measure(self):
        budget = self.task["seconds_budget"]
        # Pilots grow until their own growth takes a twentieth of the budget. What does not grow with the number of
        # transitions (reading data, making files, the transitions of hmc-infinite that a warm-up begins with) is taken off.
        steps, fixed, before = 4, 0.0, None
        while True:
            try:
                pilot, stopped = self.run(*self.split(steps), limit=budget)
            except NoSummary:
                raise Failed(f"not {self.split(steps)[0]} transitions a chain in {budget:g} s: raise --seconds") from None
            cost = pilot["seconds"] / pilot["steps"]
            if stopped or pilot["seconds"] > budget / 5:
                break
            if before and pilot["seconds"] - before["seconds"] > budget / 20:
                cost = (pilot["seconds"] - before["seconds"]) / (pilot["steps"] - before["steps"])
                fixed = max(0.0, pilot["seconds"] - cost * pilot["steps"])
                break
            before, steps = pilot, 4 * steps
        sizes = self.split(int((budget - fixed) / cost / CHAINS))
        # Estimates from short runs can be far off; a run that came out much too short is one more pilot.
        for _ in range(3):
            try:
                summary, stopped = self.run(*sizes, limit=3 * budget)
            except NoSummary:
                summary, stopped = None, True
            if stopped or summary["seconds"] > budget / 2:
                break
            longer = min(8, budget / summary["seconds"])
            sizes = self.split(int(longer * summary["steps"] / CHAINS))
        return self.task | {"stopped": stopped, "sizes": sizes, "summary": summary, "finished": time.time()}

    @staticmethod
    def split(steps):
        """Warm-up, draws and thinning of a chain of so many transitions."""
        steps = max(12, steps)
        warmup = steps // 3
        thin = max(1, (steps - warmup) // MOST_DRAWS)
        return warmup, (steps - warmup) // thin, thin


def number(value):
    """Three significant digits; a dash for what is not there."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:.{digits}f}" if digits < 6 else f"{value:.1e}"


def cell(record):
    if record is None:
        return ""
    summary = record["summary"]
    if summary is None:
        return "stopped"
    ess, rhat = summary["ess"]["prediction"], summary["rhat_max"]
    if ess is None or ess["per_second"] is None:
        return "–"
    text = f"{number(ess['per_second'])} ({number(ess['min'] / summary['seconds'])})"
    if record["stopped"] or rhat is None or rhat > 1.05:
        text = f"*{text}*, {'stopped' if record['stopped'] else f'R̂ {number(rhat)}'}"
    return text


def table(records, options):
    """Markdown: for each data set and coordinates methods × widths."""
    out = []
    tasks = [record | {"cell": cell(record)} for record in records.values()]
    for data in dict.fromkeys(record["data"] for record in tasks):
        of_data = [record for record in tasks if record["data"] == data]
        for coordinates in dict.fromkeys(record["coordinates"] for record in of_data):
            these = [record for record in of_data if record["coordinates"] == coordinates]
            widths = sorted({record["width"] for record in these})
            cells = {(record["method"], record["width"]): record["cell"] for record in these}
            methods = sorted({method for method, _ in cells}, key=lambda m: (METHODS + [m]).index(m))
            out += [f"**{data}**, `{coordinates}`", ""]
            out += ["| method | " + " | ".join(f"width {width}" for width in widths) + " |"]
            out += ["|---" * (len(widths) + 1) + "|"]
            out += [f"| `{m}` | " + " | ".join(cells.get((m, w), "") for w in widths) + " |" for m in methods]
            out += [""]
    first = tasks[0]
    version = subprocess.run([str(options.binary), "--version"], capture_output=True, text=True, check=False).stdout.strip()
    processor = "processor not known"
    if pathlib.Path("/proc/cpuinfo").exists():
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
        processor = names[0] if names else processor
    out += [
        f"{version}; {processor}, one thread a run, {options.jobs} at a time; {first['depth']} hidden layer"
        f"{'s' if first['depth'] > 1 else ''}, {first['train']} training rows, {CHAINS} chains, about "
        f"{number(first['seconds_budget'])} s a run, a third of the transitions warm-up.",
        "",
    ]
    return "\n".join(out)


def write_table(records, options):
    mine = {k: record for k, record in records.items() if record["data"] in options.data}
    same = [name for name in KEY if name not in ("data", "coordinates", "width", "method")]
    wanted = dict(zip(same, [options.depth, options.train, options.test, options.seconds, options.seed]))
    mine = {k: r for k, r in mine.items() if all(r[name] == value for name, value in wanted.items())}
    if not mine:
        print("no results with these settings", file=sys.stderr)
        return
    text = table(mine, options)
    options.table.parent.mkdir(parents=True, exist_ok=True)
    temporary = options.table.with_suffix(".tmp")
    temporary.write_text(text)
    temporary.replace(options.table)
    print(text)


def main():
    options = arguments()
    options.results.parent.mkdir(parents=True, exist_ok=True)
    records = read(options.results)
    tasks = [
        {"data": data, "coordinates": coordinates, "width": width, "method": method, "depth": options.depth,
         "train": options.train, "test": options.test, "seconds_budget": options.seconds, "seed": options.seed}
        for data in options.data for coordinates in options.coordinates
        for width in options.widths for method in options.methods
    ]  # fmt: skip
    open_tasks = [] if options.table_only else [task for task in tasks if key(task) not in records]
    lock, failures, interrupted = threading.Lock(), [], threading.Event()

    def work(task):
        name = f"{task['data']} {task['coordinates']} {task['width']} {task['method']}"
        with tempfile.TemporaryDirectory() as folder:
            try:
                record = Runner(options, task, pathlib.Path(folder)).measure()
            except Failed as failure:
                failures.append(name)
                if not interrupted.is_set():
                    print(f"{name}: {failure}", file=sys.stderr)
                return
        with lock:
            records[key(task)] = record
            with options.results.open("a") as file:
                file.write("\n" * (file.tell() > 0 and not ends_with_newline(options.results)) + json.dumps(record) + "\n")
                file.flush()
                os.fsync(file.fileno())
            done = len(records)
        print(f"{name}: {cell(record)} [{done} results]", file=sys.stderr)

    with concurrent.futures.ThreadPoolExecutor(max_workers=options.jobs) as pool:
        try:
            list(pool.map(work, open_tasks))
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            interrupted.set()
            for process in list(running):
                process.terminate()
            return 130
    write_table(records, options)
    return 1 if failures else 0


def ends_with_newline(path):
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


if __name__ == "__main__":
    sys.exit(main())
