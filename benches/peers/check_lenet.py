"""Checks that LeNet in PyTorch and in JAX is the same network, in all ways that are timed.

    python check_lenet.py [--compiled]    with it through torch.compile too, which takes minutes

Outputs, gradients and Gauss-Newton products of the same weights and pictures agree to single
precision; both agree with a slope in double precision, and the network has 44,426 parameters.
"""

import itertools
import sys

import jax
import numpy as np
import torch

import jax_lenet
import lenet
import torch_lenet

ROWS, PIECE = 250, 125
# layout and product of the ways that are compiled here
COMPILED = [("contiguous_format", None), ("contiguous_format", "torch.func")]
WAYS = {
    torch_lenet: {
        "layout": ["contiguous_format", "channels_last"],
        "product": list(torch_lenet.PRODUCTS),
        "compiled": [False, True],
    },
    jax_lenet: {
        "convolution": ["xla", "windows"],
        "maximum": ["windows", "reshaped"],
        "product": list(jax_lenet.PRODUCTS),
    },
}


def flat(arrays):
    return np.concatenate([np.asarray(array, np.float64).ravel() for array in arrays])


def results(module, name, compiled):
    """Of each way: one vector of all outputs, or of all weights' entries."""
    images, cotangents = lenet.pictures(ROWS)
    weights, direction = lenet.parameters(0), lenet.parameters(1)
    if module is torch_lenet:
        weights, direction = torch_lenet.to_torch(weights), torch_lenet.to_torch(direction)
    make = module.operation(name, weights, images, cotangents, direction)
    choices = dict(WAYS[module])
    if name != "gauss-newton":
        del choices["product"]
    if not compiled:
        choices.pop("compiled", None)
    for values in itertools.product(*choices.values()):
        way = dict(zip(choices, values))
        if way.get("compiled") and (way["layout"], way.get("product")) not in COMPILED:
            continue
        got = make(size=PIECE, **way)()
        if module is torch_lenet and name != "outputs":
            got = torch_lenet.from_torch(got)
        yield f"{module.__name__}, {name}, {way}", flat(got)


def slope(step=1e-5):
    """d/ds of the outputs' product with the cotangents along the direction, in double precision."""
    with jax.enable_x64(True):
        images, cotangents = (array.astype(np.float64) for array in lenet.pictures(ROWS))
        weights, direction = ([w.astype(np.float64) for w in lenet.parameters(s)] for s in (0, 1))

        def value(s):
            moved = [w + s * d for w, d in zip(weights, direction)]
            return float((jax_lenet.network(moved, images) * cotangents).sum())

        return (value(step) - value(-step)) / (2 * step)


def main():
    compiled = "--compiled" in sys.argv
    count = sum(w.numel() for w in torch_lenet.to_torch(lenet.parameters(0)))
    assert count == lenet.PARAMETERS == 44_426, count
    for name in lenet.OPERATIONS:
        found = [*results(torch_lenet, name, compiled), *results(jax_lenet, name, compiled)]
        reference = found[0][1]
        for title, vector in found:
            difference = np.linalg.norm(vector - reference) / np.linalg.norm(reference)
            print(f"{title}: {difference:.1e} from the first")
            assert difference < 1e-4, title
        if name == "gradient":
            along = reference @ flat(lenet.parameters(1))
            print(f"slope {along:.6g}, by a difference {slope():.6g}")
            assert abs(along - slope()) < 1e-3 * np.linalg.norm(reference)
    print(f"check_lenet.py: {count} parameters, all agree")


if __name__ == "__main__":
    main()
