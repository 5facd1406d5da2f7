"""Times kernels of infinitely wide networks in neural-tangents, double precision on all cores.

    python nt_kernels.py relu         NNGP and NTK of three dense hidden layers, 1,024 x 3,072
    python nt_kernels.py erf
    python nt_kernels.py pool         NNGP of three convolutions and a mean, 64 images 16 x 16 x 3
    python nt_kernels.py --check      the covariance of two inputs against a closed form

Prints a line of JSON. Compiled; ways that are tried: all rows at once, or blocks of rows.
"""

import functools
import math
import os
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import jax  # noqa: E402
import neural_tangents as nt  # noqa: E402
import numpy as np  # noqa: E402
from neural_tangents import stax  # noqa: E402

import fastest  # noqa: E402

HIDDEN = {"W_std": math.sqrt(2), "b_std": 0.1, "parameterization": "ntk"}
READOUT = {"W_std": 1.0, "b_std": 0.1, "parameterization": "ntk"}
FUNCTIONS = {"relu": stax.Relu, "erf": stax.Erf}


def dense(function, layers=3):
    """The kernel function of hidden dense layers."""
    hidden = [layer for _ in range(layers) for layer in (stax.Dense(1, **HIDDEN), function())]
    return stax.serial(*hidden, stax.Dense(1, **READOUT))[2]


def pooled(function, layers=3):
    """The kernel function of convolutions and the mean over positions."""
    layer = stax.Conv(1, (3, 3), padding="SAME", **HIDDEN)
    hidden = [part for _ in range(layers) for part in (layer, function())]
    return stax.serial(*hidden, stax.GlobalAvgPool(), stax.Dense(1, **READOUT))[2]


def check():
    """One hidden layer with relu, by the arc-cosine formula; blocks against all at once."""
    x = np.random.default_rng(0).normal(size=(6, 4))
    got = np.asarray(dense(stax.Relu, 1)(x, None, "nngp"))
    k = 2 * x @ x.T / 4 + 0.01
    length = np.sqrt(np.diag(k))
    angle = np.arccos(np.clip(k / np.outer(length, length), -1, 1))
    mean = np.outer(length, length) * (np.sin(angle) + (np.pi - angle) * np.cos(angle))
    assert np.allclose(got, mean / (2 * np.pi) + 0.01, rtol=1e-7), got
    images = np.random.default_rng(1).normal(size=(4, 5, 5, 3))
    kernel = pooled(stax.Relu)
    halves = nt.batch(kernel, batch_size=2)(images, None, "nngp")
    assert np.allclose(halves, kernel(images, None, "nngp"), rtol=1e-12)
    print("nt_kernels.py: agrees with the arc-cosine kernel, in blocks as in one piece")


def operation(name, rows):
    """What makes an operation of a way."""
    shape = (rows, 16, 16, 3) if name == "pool" else (rows, 3072)
    x = jax.numpy.asarray(np.random.default_rng(0).normal(size=shape))
    assert x.dtype == np.float64
    get = "nngp" if name == "pool" else ("nngp", "ntk")

    def make(block):
        kernel = pooled(stax.Relu) if name == "pool" else dense(FUNCTIONS[name])
        run = jax.jit(functools.partial(kernel, x2=None, get=get))
        if block:
            run = functools.partial(nt.batch(kernel, batch_size=block), x2=None, get=get)
        return lambda: jax.block_until_ready(run(x))

    return make


def main():
    jax.config.update("jax_enable_x64", True)
    if "--check" in sys.argv:
        return check()
    parser = fastest.parser(__doc__)
    parser.add_argument("case", choices=[*FUNCTIONS, "pool"])
    parser.add_argument("--rows", type=int)
    options = parser.parse_args()
    pool = options.case == "pool"
    rows = options.rows or (64 if pool else 1024)
    # images all at once take 5 GB
    blocks = [0, 32, 16] if pool else [0, 512, 256]
    # their compilation is little of half a minute
    options.trial = 0 if pool else options.trial
    make = operation(options.case, rows)
    choices = {"block": [block for block in blocks if rows % max(block, 1) == 0]}
    fastest.report(make, choices, options, ["neural-tangents", "jax", "numpy"])


if __name__ == "__main__":
    main()
