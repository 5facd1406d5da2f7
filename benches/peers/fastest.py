"""Measurements of one peer in one process: the fastest of several ways, then its shortest time.

A way is a dictionary of choices, such as how pictures are laid out and how many at a time. The
choices are tried one after another, each with the best of those before it, unless `--way` gives
them. What is timed has run before, so that nothing is compiled meanwhile.
"""

import argparse
import importlib.metadata
import json
import os
import resource
import sys
import time

def parser(description):
    made = argparse.ArgumentParser(description=description.split("\n")[0])
    made.add_argument("--seconds", type=float, default=2.0, help="how long to time [2]")
    made.add_argument("--trial", type=float, default=0.5, help="seconds of each way's trial [0.5]")
    made.add_argument("--way", type=json.loads, help="the way as JSON; none are tried then")
    return made


def cores():
    return len(os.sched_getaffinity(0))


def once(operation):
    began = time.perf_counter()
    operation()
    return 1e3 * (time.perf_counter() - began)


def shortest(operation, seconds):
    """The shortest time of as many as fit, but at least one, in milliseconds."""
    began, least = time.perf_counter(), once(operation)
    while time.perf_counter() - began < seconds:
        least = min(least, once(operation))
    return least


def trial(make, way, seconds):
    """Milliseconds in this way; infinite if it does not work, the first run's if for no seconds."""
    try:
        operation = make(**way)
        first = once(operation)
        taken = shortest(operation, seconds) if seconds > 0 else first
    except Exception as error:  # a way that a version does not support is not taken
        print(f"{way}: {type(error).__name__}: {str(error)[:300]}", file=sys.stderr)
        taken = float("inf")
    print(f"{way}: {taken:.3f} ms", file=sys.stderr)
    return taken


def search(make, choices, seconds):
    """The best way, one choice after another."""
    way = {name: values[0] for name, values in choices.items()}
    least = trial(make, way, seconds)
    for name, values in choices.items():
        for value in values[1:]:
            other = way | {name: value}
            taken = trial(make, other, seconds)
            if taken < least:
                way, least = other, taken
    return way


def report(make, choices, options, packages):
    """Times the best way and prints a line of JSON."""
    way = options.way or search(make, choices, options.trial)
    operation = make(**way)
    operation()
    record = {
        "ms": shortest(operation, options.seconds),
        "way": way,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "versions": {name: importlib.metadata.version(name) for name in packages},
    }
    print(json.dumps(record), flush=True)
