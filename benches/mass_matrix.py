"""What a mass matrix from Hessians does to the trajectories of hmc-infinite on a narrow network with many rows.

usage: mass_matrix.py [TRANSITIONS]        (NumPy; with 700 three minutes on one core)

A network of 32 tanh units, 1,000 rows from it and a small noise, standard coordinates. Two chains warm up with the identity; then each goes
on from where it is with M = I, with the mean M of the Hessians at 12 positions of its warm-up (by differences of gradients; eigenvalues
below 1 are 1), and with the 30 leading directions of that M and 1 elsewhere. M makes the law N(u; 0, I) exp l'(u) in u = M^(1/2)(z - m), with
l'(u) = l(z) - |z|^2/2 + |u|^2/2. Trajectories have an angle of 0.8, half of the momentum is kept, step sizes are the largest, by halves,
at which 30 trajectories are accepted at 0.6 or more. TRANSITIONS are those with the identity; others make as many gradients. Printed: gradients, acceptance in each third of the transitions, effective draws of 100
predictions per million gradients, mean and least.
"""

import sys

import numpy as np

ROWS, INPUTS, UNITS, NOISE = 1000, 8, 32, 0.1
DIMENSION = INPUTS * UNITS + 2 * UNITS + 1
ANGLE, KEPT, WARMUP, POSITIONS, LEADING = 0.8, 0.5, 300, 12, 30
TRANSITIONS = int(sys.argv[1]) if len(sys.argv) > 1 else 1500

random = np.random.default_rng(1)
inputs = random.normal(size=(ROWS, INPUTS))


def network(z, x):
    """Hidden units and outputs at the rows x."""
    first = z[: INPUTS * UNITS].reshape(INPUTS, UNITS) * np.sqrt(2 / INPUTS)
    biases, readout = z[INPUTS * UNITS : -1].reshape(2, UNITS)
    hidden = np.tanh(x @ first + biases)
    return hidden, hidden @ readout / np.sqrt(UNITS) + 0.1 * z[-1]


targets = network(random.normal(size=DIMENSION), inputs)[1] + NOISE * random.normal(size=ROWS)


def log_likelihood(z):
    """Of all rows, with its gradient."""
    hidden, outputs = network(z, inputs)
    residuals = targets - outputs
    slopes = residuals / NOISE**2
    readout = z[INPUTS * UNITS + UNITS : -1] / np.sqrt(UNITS)
    inner = slopes[:, None] * readout * (1 - hidden**2)
    first = inputs.T @ inner * np.sqrt(2 / INPUTS)
    parts = [first.ravel(), inner.sum(0), slopes @ hidden / np.sqrt(UNITS), [0.1 * slopes.sum()]]
    return -0.5 * np.sum(residuals**2) / NOISE**2, np.concatenate(parts)


class Coordinates:
    """u = M^(1/2)(z - m) for the eigenvalues and eigenvectors of M."""

    def __init__(self, center, values, vectors):
        self.center = center
        self.forward = vectors * np.sqrt(values) @ vectors.T
        self.back = vectors / np.sqrt(values) @ vectors.T

    def position(self, u):
        return self.center + self.back @ u

    def evaluate(self, u):
        """l' and its gradient."""
        z = self.position(u)
        value, gradient = log_likelihood(z)
        return value - 0.5 * z @ z + 0.5 * u @ u, self.back @ (gradient - z) + u


def trajectory(where, u, v, state, step):
    """An end, and the energy that it has gained; `state` is l' and its gradient."""
    value, gradient = state
    energy = 0.5 * (u @ u + v @ v) - value
    for _ in range(round(ANGLE / step)):
        v = v + 0.5 * step * gradient
        u, v = np.cos(step) * u + np.sin(step) * v, np.cos(step) * v - np.sin(step) * u
        value, gradient = where.evaluate(u)
        v = v + 0.5 * step * gradient
    return u, v, (value, gradient), 0.5 * (u @ u + v @ v) - value - energy


def chain(where, z, step, transitions):
    """Positions, and the acceptance of each transition."""
    u = where.forward @ (z - where.center)
    v, state = random.normal(size=DIMENSION), where.evaluate(u)
    positions, acceptance = [], []
    for _ in range(transitions):
        v = np.sqrt(KEPT) * v + np.sqrt(1 - KEPT) * random.normal(size=DIMENSION)
        end = trajectory(where, u, v, state, step)
        rate = np.exp(min(0.0, -end[3])) if np.isfinite(end[3]) else 0.0
        if random.uniform() < rate:
            u, v, state = end[:3]
        else:
            v = -v
        positions.append(where.position(u))
        acceptance.append(rate)
    return np.array(positions), np.array(acceptance)


def longest_step(where, z, step=0.4):
    """By halves."""
    while chain(where, z, step, 30)[1].mean() < 0.6:
        step *= 0.5
    return step


def hessian(z):
    """Of -l, by differences of gradients on both sides."""
    rows = [log_likelihood(z - 1e-4 * e)[1] - log_likelihood(z + 1e-4 * e)[1] for e in np.eye(DIMENSION)]
    rows = np.array(rows) / 2e-4
    return 0.5 * (rows + rows.T)


def effective(x):
    """Effective draws (Geyer's initial positive sequence)."""
    x = x - x.mean()
    spectrum = np.fft.rfft(x, 2 * len(x))
    covariance = np.fft.irfft(np.abs(spectrum) ** 2)[: len(x)]
    pairs = (covariance[:-1:2] + covariance[1::2]) / covariance[0]
    ends = np.flatnonzero(pairs < 0)
    return len(x) / max(2 * pairs[: ends[0] if len(ends) else None].sum() - 1, 1e-3)


new = random.normal(size=(100, INPUTS))
identity = Coordinates(np.zeros(DIMENSION), np.ones(DIMENSION), np.eye(DIMENSION))
for number in range(2):
    # from the prior by ever longer steps, as the way to the bulk is steep
    z = random.normal(size=DIMENSION)
    for step in [0.001, 0.002, 0.004]:
        z = chain(identity, z, step, WARMUP // 10)[0][-1]
    step = longest_step(identity, z)
    warmup = chain(identity, z, step, WARMUP)[0]
    some = warmup[WARMUP // 2 :: WARMUP // 2 // POSITIONS][:POSITIONS]
    values, vectors = np.linalg.eigh(np.eye(DIMENSION) + sum(map(hessian, some)) / POSITIONS)
    values = np.maximum(values, 1)
    leading = np.where(np.arange(DIMENSION) < DIMENSION - LEADING, 1, values)
    center = some.mean(0)
    ways = {
        "identity": identity,
        f"{LEADING} directions": Coordinates(center, leading, vectors),
        "dense": Coordinates(center, values, vectors),
    }
    for name, where in ways.items():
        step = longest_step(where, warmup[-1])
        each = round(ANGLE / step)
        count = TRANSITIONS * round(ANGLE / longest_step(identity, warmup[-1])) // each
        positions, acceptance = chain(where, warmup[-1], step, count)
        draws = np.array([network(z, new)[1] for z in positions[:: max(1, count // 3000)]])
        found = np.array([effective(draws[:, row]) for row in range(100)]) / (count * each) * 1e6
        thirds = " ".join(f"{part.mean():.2f}" for part in np.array_split(acceptance, 3))
        print(
            f"chain {number}, {name}: step {step:.4f}, {count * each} gradients, acceptance {thirds}, "
            f"effective draws per million gradients {found.mean():.0f}, least {found.min():.0f}",
            flush=True,
        )
