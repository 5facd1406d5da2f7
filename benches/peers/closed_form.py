"""The posterior of infinite width on many rows beside scikit-learn's Gaussian process: seconds and memory of whole processes.

    python closed_form.py REPRIOR            10,000 rows of ten inputs, three rounds in turn
    python closed_form.py REPRIOR 2000 5     2,000 rows, five rounds

Both read the same table, standardise it, factorise one kernel matrix in double precision, and give the log evidence and mean and
standard deviation for 1,000 test rows; reprior (two hidden layers, so a costlier kernel) gives leave-one-out cross-validation beside
it, whose operations are those of another factorisation. scikit-learn's kernel is squared exponential and stays as it is. Needs
scikit-learn. Prints a line of JSON for each process, then medians.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TEST_ROWS = 1000


def table(path, rows):
    """Friedman's function of five of ten inputs."""
    import numpy as np

    stream = np.random.default_rng(0)
    x = stream.uniform(size=(rows + TEST_ROWS, 10))
    y = 10 * np.sin(np.pi * x[:, 0] * x[:, 1]) + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    y += stream.normal(size=len(y))
    names = ",".join([*(f"x{column}" for column in range(10)), "y"])
    np.savetxt(path, np.column_stack([x, y]), delimiter=",", header=names, comments="", fmt="%.6f")


def scikit_learn(path, rows):
    """What the child process of scikit-learn does."""
    import numpy as np
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF

    all_rows = np.loadtxt(path, delimiter=",", skiprows=1)
    train = all_rows[:rows]
    mean, scale = train.mean(axis=0), train.std(axis=0)
    all_rows = (all_rows - mean) / scale
    process = GaussianProcessRegressor(RBF(3.0), alpha=0.2**2, optimizer=None)
    process.fit(all_rows[:rows, :-1], all_rows[:rows, -1])
    process.predict(all_rows[rows:, :-1], return_std=True)
    assert np.isfinite(process.log_marginal_likelihood())


def timed(command):
    """Seconds and the most megabytes of a process."""
    begun = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    message = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(message.decode())
    return {"seconds": time.perf_counter() - begun, "megabytes": usage.ru_maxrss / 1024}


def main(program, rows=10_000, rounds=3):
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        table(path, rows)
        ways = {
            "reprior": [
                *[program, "sample", "--data", path, "--target", "y", "--no-shuffle", "--train", str(rows)],
                *["--method", "nngp", "--network", "fcn:50,50", "--noise", "0.2", "--quiet"],
                *["--out", Path(folder, "run"), "--overwrite"],
            ],
            "scikit-learn": [sys.executable, __file__, "--child", path, str(rows)],
        }
        for _ in range(rounds):
            for name, command in ways.items():
                own = timed(command)
                found.setdefault(name, []).append(own)
                print(json.dumps({"way": name, "rows": rows, **own}), flush=True)
    for name, all_own in found.items():
        medians = {key: round(statistics.median(own[key] for own in all_own), 2) for key in all_own[0]}
        print(json.dumps({"median of": name, "rows": rows, **medians}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        scikit_learn(sys.argv[2], int(sys.argv[3]))
    else:
        main(sys.argv[1], *map(int, sys.argv[2:4]))
