"""What `laplace.py` times, the same for all peers: the work's names, labels, settings, a report.

A report is a line of JSON with the median `seconds` of as many runs of the work alone as fit, and
`megabytes`, the peak of the whole process. A first run is not counted, unless it took long.
"""

import importlib.metadata
import json
import resource
import statistics
import time

import numpy as np

import fastest

STRUCTURES = ["diagonal", "kron", "last-layer"]
FITS = ["fit-diagonal", "fit-kron", "fit-last-layer"]
LINEARISED = ["linearised-kron", "linearised-diagonal", "linearised-last-layer"]
SAMPLED = ["sampled-kron", "sampled-diagonal", "sampled-last-layer"]
PRODUCTS = ["gauss-newton", "gauss-newton-block", "lanczos"]
WORKS = [*FITS, *LINEARISED, *SAMPLED, *PRODUCTS]

CLASSES = 10
SAMPLES = 20
BLOCK = 16
RANK = 100
PRIOR_PRECISION = 1.0

# of these a way's trial is one run; a first run of so many seconds counts
LONG = {"fit-diagonal", "linearised-kron", "linearised-diagonal", "lanczos"}
ENOUGH = 10.0


def labels(rows):
    """A random label for each picture."""
    return np.random.default_rng([rows, 1]).integers(CLASSES, size=rows)


def directions(count, size):
    """Vectors to be multiplied, a row each, of which the first starts Lanczos."""
    return np.random.default_rng(size).normal(size=(count, size)).astype(np.float32)


def sizes(rows, worth=(250, 1000, 125, 50)):
    """How many pictures at a time are worth a trial."""
    return [size for size in worth if rows % size == 0] or [rows]


def structure(work):
    """Which approximation a work is of."""
    return work.split("-", 1)[1]


def arguments(parser):
    parser.add_argument("work", choices=WORKS)
    parser.add_argument("--rows", type=int, default=1000)
    return parser.parse_args()


def median(operation, seconds):
    """The median time of as many runs as fit, but at least one, and how many."""
    first = fastest.once(operation) / 1e3
    if first >= ENOUGH:
        return first, 1
    times, began = [], time.perf_counter()
    while not times or time.perf_counter() - began < seconds:
        times.append(fastest.once(operation) / 1e3)
    return statistics.median(times), len(times)


def report(make, choices, options, packages):
    """Times the best way and prints a line of JSON."""
    trial = 0.0 if options.work in LONG else options.trial
    way = options.way if options.way is not None else fastest.search(make, choices, trial)
    seconds, runs = median(make(**way), options.seconds)
    record = {
        "work": options.work,
        "seconds": seconds / (BLOCK if options.work == "gauss-newton-block" else 1),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "runs": runs,
        "way": way,
        "versions": {name: importlib.metadata.version(name) for name in packages},
    }
    print(json.dumps(record), flush=True)
