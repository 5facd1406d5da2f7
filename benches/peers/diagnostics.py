"""Times ArviZ's bulk ESS, tail ESS and rank R-hat of many variables; prints a line of JSON.

    python diagnostics.py --chains 4 --draws 10000 --variables 1000

The draws are autoregressions, one of each variable and chain.
"""

import argparse
import importlib.metadata
import json
import resource
import time

import arviz
import numpy as np


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--variables", type=int, default=1000)
    parser.add_argument(
        "--coefficient", type=float, default=0.9, help="of the autoregression [0.9]"
    )
    return parser.parse_args()


def autoregression(options):
    """Draws in equilibrium, chains × draws × variables."""
    generator = np.random.default_rng(0)
    draws = generator.normal(size=(options.chains, options.draws, options.variables))
    fresh = np.sqrt(1 - options.coefficient**2)
    for step in range(1, options.draws):
        draws[:, step] = options.coefficient * draws[:, step - 1] + fresh * draws[:, step]
    return draws


def main():
    options = arguments()
    dataset = arviz.convert_to_dataset(autoregression(options))
    statistics = {
        "bulk ESS": lambda: arviz.ess(dataset, method="bulk"),
        "tail ESS": lambda: arviz.ess(dataset, method="tail"),
        "rank R-hat": lambda: arviz.rhat(dataset, method="rank"),
    }
    parts = {}
    for name, statistic in statistics.items():
        began = time.perf_counter()
        statistic()
        parts[name] = 1e3 * (time.perf_counter() - began)
    record = {
        "ms_per_step": sum(parts.values()),
        "parts": parts,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "versions": {name: importlib.metadata.version(name) for name in ("arviz", "numpy")},
    }
    print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
