"""What several tests use: small data, fast settings."""

import os
import signal
import time

import numpy as np
import pytest

#: Chains of a small network, fast enough to be made again and again.
FAST = {
    "network": "fcn:8",
    "chains": 2,
    "warmup": 30,
    "draws": 30,
    "thin": 1,
    "threads": 1,
    "progress": False,
}


@pytest.fixture(scope="session")
def line():
    """A line with noise 0.1: inputs (60, 2), of which the second does nothing."""
    random = np.random.default_rng(1)
    X = random.uniform(-2, 2, size=(60, 2))
    return X, 3.0 + 2.0 * X[:, 0] + 0.1 * random.standard_normal(60)


@pytest.fixture(scope="session")
def moons():
    """Two classes that a line does not separate."""
    random = np.random.default_rng(2)
    X = random.standard_normal((80, 2))
    return X, np.where(X[:, 0] * X[:, 1] > 0, "same", "other")


class CtrlC:
    """Ctrl-C, and how long it takes."""

    @staticmethod
    def takes(interrupted):
        """The fewest seconds of three calls of ``interrupted(at)`` from ``at()``, which is Ctrl-C, to its end. What else the machine does only adds to them."""

        def once():
            seen = []

            def at():
                seen.append(time.monotonic())
                os.kill(os.getpid(), signal.SIGINT)

            interrupted(at)
            return time.monotonic() - seen[0]

        return min(once() for _ in range(3))


@pytest.fixture
def ctrl_c():
    """Ctrl-C as at a terminal: where tests run in the background of a shell, Python starts with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield CtrlC
    signal.signal(signal.SIGINT, before)
