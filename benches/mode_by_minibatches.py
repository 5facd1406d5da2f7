"""How near to a mode L-BFGS gets with all rows, and after minibatches: the negative log posterior, less its constant, that is left.

usage: mode_by_minibatches.py [TABLE.csv] [--rows 50000] [--write TABLE.csv]        (torch, NumPy; some minutes on one core)

The network has three layers of 32 gelu units and priors N(0, 1) in the NTK parametrisation, σ = 0.3. Inputs and the target, the last column,
are standardised. Without a table one is made, of 50,000 rows of eight inputs. --write makes such a table as a file, for `reprior sample --target y`, and
ends. The line search is torch's, which is not reprior's. Two starts each.
"""

import argparse
import csv
import math

import numpy as np

SIZES = [8, 32, 32, 32, 1]
SIGMA, BATCH = 0.3, 128


def made(rows):
    """y = sin 2ab + |c| + ½d·cos 2e + 0.3f + noise of 0.3; two inputs are of no account."""
    random = np.random.default_rng(3)
    x = random.normal(size=(rows, 8))
    f = np.sin(2 * x[:, 0] * x[:, 1]) + abs(x[:, 2]) + 0.5 * x[:, 3] * np.cos(2 * x[:, 4]) + 0.3 * x[:, 5]
    return np.c_[x, f + 0.3 * random.normal(size=rows)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", nargs="?")
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--write")
    options = parser.parse_args()
    if options.write:
        np.savetxt(options.write, made(options.rows), delimiter=",", header="a,b,c,d,e,f,g,h,y", comments="", fmt="%.5f")
        return
    import torch

    torch.set_num_threads(1)
    if options.table:
        with open(options.table, newline="") as file:
            table = np.array(list(csv.reader(file))[1:], float)
    else:
        table = made(options.rows)
    table = torch.tensor((table - table.mean(0)) / table.std(0))
    x, y = table[:, :-1], table[:, -1]
    sizes = [x.shape[1], *SIZES[1:]]
    shapes = list(zip(sizes, sizes[1:]))

    def outputs(z, x):
        at = 0
        for layer, (below, units) in enumerate(shapes):
            weights = z[at : at + below * units].view(below, units) * math.sqrt(2 / below)
            at += below * units
            x = x @ weights + z[at : at + units]
            at += units
            if layer + 1 < len(shapes):
                x = torch.nn.functional.gelu(x)
        return x[:, 0]

    def loss(z, x, y):
        misfit = ((y - outputs(z, x)) ** 2).sum() * (len(table) / len(y))
        return misfit / (2 * SIGMA**2) + 0.5 * (z**2).sum()

    def search(z, gradients):
        z, least = z.clone().requires_grad_(True), [math.inf]
        optimiser = torch.optim.LBFGS(
            [z], max_iter=gradients, max_eval=gradients, history_size=20, line_search_fn="strong_wolfe", tolerance_change=0, tolerance_grad=0
        )

        def closure():
            optimiser.zero_grad()
            value = loss(z, x, y)
            value.backward()
            least[0] = min(least[0], value.item())
            return value

        optimiser.step(closure)
        return least[0]

    def passes(z, epochs, step_size):
        z = z.clone().requires_grad_(True)
        optimiser, updates = torch.optim.Adam([z], step_size), epochs * (len(y) // BATCH)
        update = 0
        for _ in range(epochs):
            order = torch.randperm(len(y))
            for start in range(0, len(y) - BATCH + 1, BATCH):
                rows = order[start : start + BATCH]
                for group in optimiser.param_groups:
                    group["lr"] = step_size * 0.5 * (1 + math.cos(math.pi * update / updates))
                update += 1
                optimiser.zero_grad()
                loss(z, x[rows], y[rows]).backward()
                optimiser.step()
        return z.detach()

    for seed in (0, 1):
        torch.manual_seed(seed)
        start = torch.randn(sum(below * units + units for below, units in shapes)).double()
        for gradients in (60, 150, 400):
            print(f"start {seed}: {gradients} gradients {search(start, gradients):.0f}", flush=True)
        near = passes(start, 10, 0.05)
        after = ", ".join(f"and {gradients} gradients {search(near, gradients):.0f}" for gradients in (50, 140))
        print(f"start {seed}: ten passes {loss(near, x, y).item():.0f}, {after}", flush=True)


if __name__ == "__main__":
    main()
