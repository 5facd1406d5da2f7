"""How soon the chains of every method agree on problems that people have: makes docs/src/tables/methods.md, which the book includes.

    cargo build --release
    python3 docs/measure.py --uci FOLDER --cancer CSV --cifar FOLDER --jobs 2

FOLDER of --uci has SET.csv, CSV is scikit-learn's breast cancer (load_breast_cancer) with a column `target`, and the folder of --cifar CIFAR-10 as
binary files. Each problem is what a person asks for, `sample --data TABLE --target NAME`, shuffled, with `--method` and nothing else but
`--until "rhat<1.01,ess>400"` for predictions within a time. Each result is appended to a file of JSON lines; what is in there is not run again, so
the script can be stopped and started. The table is written anew each time.
"""

import argparse
import concurrent.futures
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHAINS = ["hmc-infinite", "nuts", "mams", "mclmc", "elliptical", "pcnl"]
# Of these there is no agreement to wait for; they run as they come.
OTHERS = ["sgld", "ensemble"]
# What they are called, rows that train, rows that test; the target of a table.
PROBLEMS = {
    "concrete": ("90 rows, 8 inputs, a real target", 90, 400, "strength"),
    "energy": ("600 rows, 8 inputs, a real target", 600, 168, "heating_load"),
    "wine_red": ("1,439 rows, 11 inputs, ratings", 1439, 160, "quality"),
    "kin8nm": ("7,373 rows, 8 inputs, a real target", 7373, 819, "y"),
    "cancer": ("400 rows, 30 inputs, two classes", 400, 169, "target"),
    "cifar": ("512 images, ten classes", 512, 200, None),
}
UNTIL = "rhat<1.01,ess>400"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--uci", type=pathlib.Path)
    parser.add_argument("--cancer", type=pathlib.Path)
    parser.add_argument("--cifar", type=pathlib.Path)
    parser.add_argument("--binary", type=pathlib.Path, default=ROOT / "target/release/reprior")
    parser.add_argument("--minutes", type=float, default=2.0, help="time of each run [2]")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time, one thread each [1]")
    parser.add_argument("--results", type=pathlib.Path, default=ROOT / "target/measurements.jsonl")
    parser.add_argument("--table", type=pathlib.Path, default=ROOT / "docs/src/tables/methods.md")
    return parser.parse_args()


def source(problem, options):
    """Where a problem's data are; none if they were not given."""
    if problem in ("cancer", "cifar"):
        return getattr(options, problem)
    return options.uci and options.uci / f"{problem}.csv"


def run(problem, method, options):
    """The summary of a run, or what the program said in place of it."""
    _, train, test, target = PROBLEMS[problem]
    with tempfile.TemporaryDirectory() as folder:
        command = [
            options.binary, "sample", "--data", source(problem, options), "--train", train, "--test", test, "--method", method,
            "--threads", 1, "--json", "--quiet", "--out", f"{folder}/run",
        ]  # fmt: skip
        command += ["--target", target, "--shuffle", 0] if target else []
        command += ["--until", UNTIL, "--minutes", options.minutes] if method in CHAINS else []
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return {"refused": done.stderr.strip()}
    summary = json.loads(done.stdout)
    predictions, stationarity = summary["ess"]["prediction"], summary["stationarity"]
    return {
        "seconds": summary["seconds"],
        "rhat": predictions and predictions["rhat_max"],
        "draws": predictions and predictions["min"],
        "nll": summary["metrics"]["nll"],
        "verdict": summary["verdict"]["level"],
        "gradients": summary["n_gradients"],
        "stationary": stationarity and stationarity["is_reached"],
    }


def read(path):
    """Results so far. A last line that was cut short by a kill is left out."""
    records = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            record = json.loads(line)
            records[record["problem"], record["method"], record["minutes"]] = record
        except (ValueError, KeyError):
            continue
    return records


def number(value, digits=3):
    """Significant digits; a dash for what is not there."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}" if value else "0"


def row(method, record):
    if "refused" in record:
        return f"| `{method}` | refused | | | |"
    rhat, draws, seconds = record["rhat"], record["draws"], record["seconds"]
    nll = f"{record['nll']:.3f}"
    if method not in CHAINS:
        return f"| `{method}` | ({number(seconds, 2)} s) | – | – | {nll} |"
    agrees = rhat is not None and draws is not None and rhat < 1.01 and draws > 400
    reached = f"**{number(seconds, 2)} s**" if agrees else "no"
    return f"| `{method}` | {reached} | {rhat:.3f} | {number(draws / seconds, 2)} | {nll} |"


def table(records, options):
    """Markdown: for each problem its methods."""
    out = []
    for problem, (words, *_) in PROBLEMS.items():
        own = {method: records.get((problem, method, options.minutes)) for method in CHAINS + OTHERS}
        own = {method: record for method, record in own.items() if record}
        if not own:
            continue
        out += [f"**{problem}**: {words}", ""]
        out += ["| method | agrees after | R̂ | least effective draws a second | test NLL |", "|---|---|---|---|---|"]
        out += [row(method, record) for method, record in own.items()] + [""]
    version = subprocess.run([str(options.binary), "--version"], capture_output=True, text=True, check=False).stdout.strip()
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines() if pathlib.Path("/proc/cpuinfo").exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    out += [f"{version}; {names[0] if names else 'processor not known'}, four chains on one thread, {options.minutes:g} minutes at most.", ""]
    return "\n".join(out)


def main():
    options = arguments()
    records, lock = read(options.results), threading.Lock()
    tasks = [(problem, method) for problem in PROBLEMS if source(problem, options) for method in CHAINS + OTHERS]
    tasks = [task for task in tasks if (*task, options.minutes) not in records]

    def work(task):
        problem, method = task
        record = {"problem": problem, "method": method, "minutes": options.minutes} | run(problem, method, options)
        with lock:
            records[problem, method, options.minutes] = record
            with options.results.open("a") as file:
                file.write(json.dumps(record) + "\n")
        print(f"{problem}, {method}: {record}", file=sys.stderr)

    options.results.parent.mkdir(parents=True, exist_ok=True)
    with concurrent.futures.ThreadPoolExecutor(max_workers=options.jobs) as pool:
        list(pool.map(work, tasks))
    text = table(records, options)
    options.table.write_text(text)
    print(text)


if __name__ == "__main__":
    main()
