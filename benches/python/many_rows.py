"""A table of the size of California housing (20,640 rows of 8 inputs, made here) through ``BNNRegressor()`` with nothing said: seconds, memory, verdict.

Run with the package installed: python benches/python/many_rows.py. The fit takes about a minute, the time that it gives itself.
"""

import resource
import time
import warnings

import numpy as np

import reprior

ROWS, TEST = 20_640, 4_000
random = np.random.default_rng(0)


def table(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Skewed columns, two coordinates, and targets that are cut off at 5, with a noise that grows with their size."""
    income = random.lognormal(1.25, 0.45, rows)
    age = random.uniform(1, 52, rows)
    rooms, bedrooms, people, occupancy = (random.lognormal(mean, spread, rows) for mean, spread in [(1.65, 0.3), (0.07, 0.2), (7.0, 0.7), (1.05, 0.3)])
    latitude, longitude = random.uniform(32.5, 42.0, rows), random.uniform(-124.3, -114.3, rows)
    coast = np.exp(-((latitude + longitude * 0.8 + 60.0) ** 2) / 4.0)
    value = 0.45 * income + 1.2 * coast + 0.006 * age - 0.25 * np.log(occupancy) + 0.3 * np.sin(latitude) * np.cos(longitude)
    inputs = np.stack([income, age, rooms, bedrooms, people, occupancy, latitude, longitude], axis=1)
    return inputs, np.minimum(value * np.exp(0.2 * random.normal(size=rows)), 5.0)


X, y = table(ROWS)
X_test, y_test = table(TEST)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    model = reprior.BNNRegressor(random_state=0).fit(X, y)
    fitted = time.perf_counter() - start
start = time.perf_counter()
low, high = model.predict_interval(X_test, 0.9).T
density = model.log_predictive_density(X_test, y_test)
predicted = time.perf_counter() - start
most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
inside = np.mean((low <= y_test) & (y_test <= high))
print(f"fit: {fitted:.1f} s; {TEST:,} test rows predicted in {predicted:.1f} s; at most {most:.0f} MB of memory, {before:.0f} MB of it before the fit")
print(f"R^2 {model.score(X_test, y_test):.3f}, NLL {-np.mean(density):.3f}, {inside:.3f} of the targets in intervals of 0.9")
print("\n".join(model.notes_))
print(model.summary_.verdict)
