"""What becomes of trajectories whose gradients are of some rows only, with one acceptance over all rows at their ends.

usage: subsampled_gradients.py        (NumPy; some minutes on one core)

The rows S stay the same along a trajectory, and the gradient is that of all rows at a reference z0, plus n/|S| times the difference that S
makes since (control variates). Steps are those of hmc-infinite, on a network of 32 tanh units and 10,000 rows from it. Printed: mean
acceptance of trajectories from one draw, with references 0, 20 and 60 transitions back. A reference that is where the trajectory begins is not exact.
"""

import numpy as np

ROWS, INPUTS, UNITS, NOISE = 10_000, 8, 32, 0.3
DIMENSION = INPUTS * UNITS + 2 * UNITS + 1
STEP, STEPS, TRANSITIONS, TRIALS = 0.006, 30, 120, 12

random = np.random.default_rng(1)
inputs = random.normal(size=(ROWS, INPUTS))


def network(z, x):
    """Hidden units and outputs at the rows x."""
    first = z[: INPUTS * UNITS].reshape(INPUTS, UNITS) * np.sqrt(2 / INPUTS)
    biases, readout = z[INPUTS * UNITS : -1].reshape(2, UNITS)
    hidden = np.tanh(x @ first + biases)
    return hidden, hidden @ readout / np.sqrt(UNITS) + 0.1 * z[-1]


truth = random.normal(size=DIMENSION)
targets = network(truth, inputs)[1] + NOISE * random.normal(size=ROWS)
ALL = np.arange(ROWS)


def log_likelihood(z, rows):
    """Of these rows, with its gradient."""
    x = inputs[rows]
    hidden, outputs = network(z, x)
    residuals = targets[rows] - outputs
    slopes = residuals / NOISE**2
    readout = z[INPUTS * UNITS + UNITS : -1] / np.sqrt(UNITS)
    inner = slopes[:, None] * readout * (1 - hidden**2)
    gradient = [
        (x.T @ inner).ravel() * np.sqrt(2 / INPUTS),
        inner.sum(0),
        hidden.T @ slopes / np.sqrt(UNITS),
        [0.1 * slopes.sum()],
    ]
    return -0.5 * np.sum(residuals**2) / NOISE**2, np.concatenate(gradient)


def trajectory(z, velocity, step, steps, gradient):
    slope = gradient(z)
    for _ in range(steps):
        velocity = velocity + step / 2 * slope
        c, s = np.cos(step), np.sin(step)
        z, velocity = c * z + s * velocity, c * velocity - s * z
        slope = gradient(z)
        velocity = velocity + step / 2 * slope
    return z, velocity


def acceptance(z, step, steps, gradient):
    """Of one trajectory from z over all rows, and where it ends."""
    velocity = random.normal(size=DIMENSION)
    end, last = trajectory(z, velocity, step, steps, gradient)
    energy = lambda z, v: 0.5 * (z @ z + v @ v) - log_likelihood(z, ALL)[0]
    return min(1.0, np.exp(energy(z, velocity) - energy(end, last))), end


z, chain, accepted = truth, [], []
for _ in range(TRANSITIONS):
    rate, end = acceptance(z, STEP, STEPS, lambda q: log_likelihood(q, ALL)[1])
    z = end if random.random() < rate else z
    chain.append(z)
    accepted.append(rate)
print(f"all rows, {STEPS} steps of {STEP}: acceptance {np.mean(accepted[20:]):.2f}")

for back in (0, 20, 60):
    reference = chain[-1 - back]
    whole = log_likelihood(reference, ALL)[1]
    for share in (0.1, 0.3, 0.9):
        for steps in (30, 5, 1):
            rates = []
            for _ in range(TRIALS):
                rows = random.choice(ROWS, int(share * ROWS), replace=False)
                part = log_likelihood(reference, rows)[1]
                gradient = lambda q: whole + (log_likelihood(q, rows)[1] - part) / share
                rates.append(acceptance(z, STEP, steps, gradient)[0])
            print(f"reference {back} transitions back, {share} of the rows, {steps} steps: acceptance {np.mean(rates):.2f}", flush=True)
