"""What an evaluation of a posterior takes whose rows are on several workers, beside the same rows in one process.

usage: shards.py [--rows 10000 100000 1000000] [--widths 32 128] [--columns 8] [--workers 2 4] [--seconds 4]

Each evaluation is the logarithm and its gradient with the readout integrated out. In one process it takes one core; workers are processes of a LocalCluster with one thread each, so that
beyond the cores of the machine they share them. Medians, in turns. A model of machines with a core for this work each on a network of `--gigabits` follows from what was measured: the
time of the rows is divided by the number of workers, both rounds take what they take here without rows, in a line through the numbers of workers measured, and moments, positions and gradients of all workers pass
the caller's link one after another.
Needs the package with `distributed`.
"""

import argparse
import logging
import statistics
import time

import numpy as np
from distributed import Client, LocalCluster

from reprior import _lib
from reprior.distributed import shards

logging.getLogger("distributed").setLevel(logging.ERROR)
SETTINGS = {"activation": "relu", "likelihood": "gaussian", "noise": 0.3}
FLAGS = ["--activation", "relu", "--likelihood", "gaussian", "--noise", "0.3"]
#: Rows so few that an evaluation is all overhead.
FEW = 64


def table(rows, columns):
    X = np.random.default_rng(0).normal(size=(rows, columns))
    return X, np.sin(X[:, 0])


def typical(evaluate, dim, budget):
    """Median seconds of an evaluation, at another position each time."""
    random, taken, until = np.random.default_rng(1), [], time.perf_counter() + budget
    evaluate(random.normal(size=dim))
    while len(taken) < 3 or time.perf_counter() < until:
        z = random.normal(size=dim)
        start = time.perf_counter()
        evaluate(z)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def alone(X, y, width):
    """Two rounds in this process; its coordinates and moments."""
    shard = _lib.Shard([*FLAGS, "--network", f"fcn:{width}"], X, y[:, None], None, 0)
    return (lambda z: shard.value_and_gradient(z, shard.moments(z), len(X))), shard.dim, shard.moment_count


def measure(options):
    """Seconds by (rows, width): in one process, and by each number of workers."""
    found = {}
    for workers in options.workers:
        with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
            for width in options.widths:
                for rows in [FEW, *options.rows]:
                    X, y = table(rows, options.columns)
                    evaluate, dim, moments = alone(X, y, width)
                    own = found.setdefault((rows, width), {"alone": [], "dim": dim, "moments": moments})
                    with shards(X, y, count=workers, client=client, network=f"fcn:{width}", **SETTINGS) as density:
                        own["alone"].append(typical(evaluate, dim, options.seconds / 2))
                        own[workers] = typical(density, dim, options.seconds)
    return found


def model(options, found, rows, width, workers):
    """Seconds of an evaluation on so many machines."""
    most = max(options.rows)
    own, least = found[most, width], found[FEW, width]
    alone = statistics.median(least["alone"])
    per_row = (statistics.median(own["alone"]) - alone) / (most - FEW)
    if workers == 1:
        return rows * per_row + alone
    # what both rounds take without rows: a line through what was measured
    few, many = min(options.workers), max(options.workers)
    slope = max(0.0, (least[many] - least[few]) / max(1, many - few))
    rounds = least[few] + slope * (workers - few)
    network = 8 * workers * 2 * (own["moments"] + own["dim"]) / (options.gigabits * 1e9 / 8)
    return rows * per_row / workers + rounds + network


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--widths", type=int, nargs="+", default=[32, 128])
    parser.add_argument("--columns", type=int, default=8)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 4])
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--gigabits", type=float, default=10.0)
    options = parser.parse_args()
    found = measure(options)
    print("| rows | width | one process | " + " | ".join(f"{count} workers" for count in options.workers) + " |")
    print("|" + "---|" * (3 + len(options.workers)))
    for (rows, width), own in sorted(found.items(), key=lambda one: (one[0][1], one[0][0])):
        cells = [f"{1e3 * own[count]:.1f} ms" for count in options.workers]
        print(f"| {rows} | {width} | {1e3 * statistics.median(own['alone']):.2f} ms | " + " | ".join(cells) + " |")
    print(f"\nModel, {options.gigabits:g} Gbit/s:\n")
    machines = [1, 4, 16, 64]
    print("| rows | width | " + " | ".join(f"{count} machines" if count > 1 else "one" for count in machines) + " |")
    print("|" + "---|" * (2 + len(machines)))
    for width in options.widths:
        for rows in (10**5, 10**6, 10**7):
            print(f"| {rows} | {width} | " + " | ".join(f"{1e3 * model(options, found, rows, width, count):.0f} ms" for count in machines) + " |")


if __name__ == "__main__":
    main()
