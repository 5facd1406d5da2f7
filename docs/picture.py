"""Draws docs/uncertainty.png, the README's picture: `python3 docs/picture.py`, with matplotlib, after a release build."""

import csv
import math
import pathlib
import random
import subprocess
import tempfile

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "target" / "release" / "reprior"

random.seed(3)
xs = [random.uniform(-2.2, -0.6) for _ in range(16)] + [random.uniform(0.7, 2.0) for _ in range(14)]
points = [(x, math.sin(3 * x) + 0.5 * x + random.gauss(0, 0.08)) for x in xs]
grid = [-3.2 + 6.4 * k / 300 for k in range(301)]

with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    (folder / "data.csv").write_text("x,y\n" + "".join(f"{x},{y}\n" for x, y in points))
    (folder / "grid.csv").write_text("x\n" + "".join(f"{x}\n" for x in grid))
    subprocess.run(
        [PROGRAM, "sample", "--data", "data.csv", "--train", "30", "--test", "0", "--network", "fcn:256,256",
         "--activation", "erf", "--weight-variance", "8", "--bias-variance", "0.5", "--quiet", "--out", "run"],
        cwd=folder, check=True,
    )
    subprocess.run(
        [PROGRAM, "predict", "run", "--data", "grid.csv", "--no-noise", "--out", "out.csv"], cwd=folder, check=True
    )
    rows = list(csv.DictReader((folder / "out.csv").open()))

column = lambda name: [float(row[name]) for row in rows]
figure, axes = plt.subplots(figsize=(7.2, 3.2), dpi=110)
axes.fill_between(grid, column("q05"), column("q95"), color="#9ecae1", label="90 % of the posterior")
axes.plot(grid, column("q50"), color="#08519c", label="median")
axes.scatter(*zip(*points), color="black", s=14, zorder=3, label="data")
axes.set_xlabel("x")
axes.set_ylabel("y")
axes.legend(loc="upper left", frameon=False)
axes.spines[["top", "right"]].set_visible(False)
figure.tight_layout()
figure.savefig(ROOT / "docs" / "uncertainty.png")
