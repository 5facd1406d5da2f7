"""An hour of chains on all data, of minibatches and of the estimator in one process: memory, handles and speed stay flat, or it says no.

usage: soak.py [--minutes 60]

Each cycle makes a run folder of exact chains, one of a minibatch method and a fitted estimator that predicts, and lets go of all three. A line a minute; at the end the
trends (Theil-Sen, of the cycles after the first tenth) of resident memory, of open files and threads, and of the seconds that all cores spend on a cycle, which hang less on what
else the machine does than the time that passes. Memory is flat where it grows by less than a twentieth in the hour, speed where a cycle takes less than a tenth longer, and handles
where there are no more of them at the end. Needs the package with scikit-learn, on Linux.
"""

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning

import reprior
from reprior.estimators import BNNRegressor

warnings.simplefilter("ignore", ConvergenceWarning)
# the same work whatever the clock says
LENGTH = {"warmup": 100, "draws": 200, "chains": 2}
PAGE = os.sysconf("SC_PAGE_SIZE")


def resident():
    """Megabytes of memory that are in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6


def handles():
    """Open files and threads."""
    return len(os.listdir("/proc/self/fd")) + len(os.listdir("/proc/self/task"))


def cycle(X, y, place, seed):
    settings = {"network": "fcn:32", "noise": 0.3, "seed": seed, "progress": False}
    exact = reprior.sample(X, y, out=place / "exact", **LENGTH, **settings)
    exact.predict(X)
    reprior.open(place / "exact").summary()
    stochastic = reprior.sample(X, y, out=place / "stochastic", method="sgld", epochs=40, draws=20, chains=2, **settings)
    stochastic.predict(X)
    BNNRegressor((32,), noise=0.3, random_state=seed, settings=LENGTH).fit(X, y).predict(X, return_std=True)
    shutil.rmtree(place / "exact")
    shutil.rmtree(place / "stochastic")


def trend(times, values):
    """The median of the slopes of pairs, over the whole time: how much it grew."""
    step = max(1, len(times) // 300)
    times, values = times[::step], values[::step]
    slopes = [(values[j] - values[i]) / (times[j] - times[i]) for i in range(len(times)) for j in range(i + 1, len(times))]
    return statistics.median(slopes) * (times[-1] - times[0])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=60)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    y = np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.3 * rng.normal(size=300)
    start, said = time.monotonic(), 0.0
    rows = []
    with tempfile.TemporaryDirectory() as place:
        while time.monotonic() - start < 60 * options.minutes:
            begun = time.process_time()
            cycle(X, y, Path(place), len(rows))
            now = time.monotonic()
            rows.append((now - start, resident(), handles(), time.process_time() - begun))
            if now - said >= 60:
                said = now
                print(f"{(now - start) / 60:5.1f} min: {len(rows)} cycles, {rows[-1][1]:.0f} MB, {rows[-1][2]} files and threads, {rows[-1][3]:.2f} s of all cores a cycle", flush=True)
    rows = rows[len(rows) // 10 :]
    times, memory, held, seconds = map(list, zip(*rows))
    grown, slower = trend(times, memory) / memory[0], trend(times, seconds) / statistics.median(seconds)
    more = max(held[-len(held) // 10 :]) - max(held[: len(held) // 10 + 1])
    print(f"{len(rows)} cycles in {(times[-1] - times[0]) / 60:.0f} min: memory {grown:+.1%} of {memory[0]:.0f} MB, files and threads {more:+d} of {held[0]}, a cycle {slower:+.1%} of {statistics.median(seconds):.2f} s of all cores")
    flat = grown < 0.05 and more <= 0 and slower < 0.1
    print("flat" if flat else "NOT FLAT")
    sys.exit(not flat)


if __name__ == "__main__":
    main()
