"""What chains on many machines cost beside one program, and what a merge costs beside a copy.

usage: clusters.py [--chains 16] [--draws 7500] [--turns 3] [--parts 8] [--megabytes 256] [--binary target/release/reprior]

Chains of one program on all cores, then of `reprior.distributed` on LocalClusters of 2 and of 4 processes that run already, in turns; medians; and a chain in memory beside the same in a folder. The folders
that are merged hold whole weights, and `cp -r` copies the same; `--parts 0` merges none. Needs the package with `distributed`.
"""

import argparse
import logging
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

import reprior
import reprior.distributed


logging.getLogger("distributed").setLevel(logging.ERROR)


def seconds(work):
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def problem(draws):
    X = np.random.default_rng(0).normal(size=(200, 6))
    kept = {"keep": 20, "keep_predictions": 20, "keep_log_likelihood": 50}
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1], {"network": "fcn:50", "warmup": 200, "draws": draws, "thin": 1, "noise": 0.3, **kept}


def disk(turns, place):
    """A chain in memory, and the same in a folder."""
    X, y, settings = problem(3000)
    taken = {"memory": [], "a folder": []}
    for turn in range(turns):
        for name, out in (("memory", None), ("a folder", place / f"disk-{turn}")):
            work = lambda: reprior.sample(X, y, chains=1, threads=1, out=out, progress=False, **settings)
            taken[name].append(seconds(work))
    for name, own in taken.items():
        print(f"one chain of 3000 draws in {name}: {statistics.median(own):.2f} s")


def overhead(chains, draws, turns, place):
    X, y, settings = problem(draws)
    taken = {"one program": [], "2 processes": [], "4 processes": []}
    clusters = {f"{n} processes": LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=":0") for n in (2, 4)}
    clients = {name: Client(cluster) for name, cluster in clusters.items()}
    for client in clients.values():
        # processes that have loaded everything
        client.run(lambda: __import__("reprior.distributed._dask"))
    for turn in range(turns):
        out = place / f"one-{turn}"
        taken["one program"].append(seconds(lambda: reprior.sample(X, y, chains=chains, out=out, progress=False, **settings)))
        for name, client in clients.items():
            out = place / f"{name[0]}-{turn}"
            work = lambda: reprior.distributed.sample(X, y, chains=chains, client=client, out=out, progress=False, **settings)
            taken[name].append(seconds(work))
    for client in clients.values():
        client.close()
    for cluster in clusters.values():
        cluster.close()
    base = statistics.median(taken["one program"])
    for name, own in taken.items():
        print(f"{chains} chains, {name}: {statistics.median(own):.2f} s, {100 * (statistics.median(own) / base - 1):+.1f} %")


def merging(parts, megabytes, turns, binary, place):
    weights = 4 * (200 * 1024 + 1024)
    keep = max(1, int(megabytes * 1e6 / weights))
    with open(place / "wide.csv", "w") as file:
        rows = np.random.default_rng(0).normal(size=(40, 201))
        file.write(",".join([f"x{at}" for at in range(200)] + ["y"]) + "\n")
        for row in rows:
            file.write(",".join(f"{value:.4f}" for value in row) + "\n")
    runs = [place / f"part-{at}" for at in range(parts)]
    for at, run in enumerate(runs):
        command = f"{binary} sample --data {place}/wide.csv --target y --network fcn:1024 --method pcn --step-size 0.1 --arrival 0 --warmup 1 --draws {keep}"
        command += f" --thin 1 --keep-weights {keep} --keep 1 --keep-predictions 1 --chains 1 --first-chain {at} --quiet --noise 1 --scales none --out {run}"
        subprocess.run(command.split(), check=True, stdout=subprocess.DEVNULL)
    size = sum(path.stat().st_size for run in runs for path in run.rglob("*") if path.is_file())
    subprocess.run(["sync"], check=True)
    copied, merged = [], []
    for _ in range(turns):
        (place / "copy").mkdir()
        copy = ["sh", "-c", 'cp -r "$@" && sync', "sh", *map(str, runs), str(place / "copy")]
        copied.append(seconds(lambda: subprocess.run(copy, check=True)))
        shutil.rmtree(place / "copy")
        merged.append(seconds(lambda: subprocess.run([binary, "merge", *map(str, runs), "--out", str(place / "merged")], check=True, stdout=subprocess.DEVNULL)))
        shutil.rmtree(place / "merged")
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    cp, own = statistics.median(copied), statistics.median(merged)
    print(
        f"{parts} runs of {size / parts / 1e6:.0f} MB: cp and sync {cp:.2f} s, merge {own:.2f} s ({size / own / 1e6:.0f} MB/s, {cp / own:.2f} of cp); greatest memory of any child {memory / 1e3:.0f} MB"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--chains", type=int, default=16)
    parser.add_argument("--draws", type=int, default=7500)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--parts", type=int, default=8)
    parser.add_argument("--megabytes", type=float, default=256)
    parser.add_argument("--binary", default="target/release/reprior")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        if options.parts:
            merging(options.parts, options.megabytes, options.turns, options.binary, Path(place))
        disk(options.turns, Path(place))
        overhead(options.chains, options.draws, options.turns, Path(place))


if __name__ == "__main__":
    main()
