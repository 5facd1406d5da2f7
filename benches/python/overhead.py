"""What Python costs: the time of ``import reprior``, and of a fit against the program's on the same rows with the same settings.

Run with the package and its command installed: python benches/python/overhead.py. Each time is the least of several, in alternation.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SETTINGS = {"network": "fcn:32,32", "noise": 0.1, "chains": 2, "warmup": 100, "draws": 200, "threads": 2}
ROUNDS = 7


def import_seconds() -> tuple[float, list[str]]:
    """Seconds of the import over an interpreter without it, and which large packages it brings."""
    code = "import sys{}; print([name for name in ('sklearn', 'torch', 'pandas', 'xarray') if name in sys.modules])"
    times = {"": [], ", reprior": []}
    for _ in range(ROUNDS):
        for extra, all_ in times.items():
            start = time.perf_counter()
            out = subprocess.run([sys.executable, "-c", code.format(extra)], check=True, capture_output=True, text=True).stdout
            all_.append(time.perf_counter() - start)
    return min(times[", reprior"]) - min(times[""]), eval(out)


def main() -> None:
    import reprior

    seconds, brought = import_seconds()
    print(f"import reprior: {1e3 * seconds:.0f} ms, of which NumPy is a part; brings {brought or 'no large package'}")
    random = np.random.default_rng(1)
    X = random.uniform(-2, 2, size=(400, 5))
    y = X @ np.arange(5.0) + np.sin(3 * X[:, 0]) + 0.1 * random.standard_normal(400)
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        rows = np.column_stack([X, y])
        np.savetxt(table, rows, delimiter=",", header="x0,x1,x2,x3,x4,y", comments="", fmt="%.17g")
        flags = [f"--{name}={value}" for name, value in SETTINGS.items()]
        program, own = [], []
        for round_ in range(ROUNDS):
            out = Path(folder) / f"run{round_}"
            start = time.perf_counter()
            command = ["reprior", "sample", f"--data={table}", "--target=y", f"--out={out}", "--quiet", *flags]
            subprocess.run(command, check=True, capture_output=True)
            program.append(time.perf_counter() - start)
            start = time.perf_counter()
            reprior.sample(X, y, progress=False, **SETTINGS)
            own.append(time.perf_counter() - start)
    print(f"program {min(program):.3f} s, Python {min(own):.3f} s (medians {statistics.median(program):.3f}, {statistics.median(own):.3f})")
    print(f"Python takes {1e3 * (min(own) - min(program)):+.0f} ms, {100 * (min(own) / min(program) - 1):+.1f} %")


if __name__ == "__main__":
    main()
