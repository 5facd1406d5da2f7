"""Data and networks that the peers are timed on: training rows, standardised, with reduced inputs.

Either a folder of CIFAR-10 binary batches or, named `synthetic`, made-up rows of the same shape,
which can be written to a file that reprior reads; or, named `table`, made-up rows of eight numbers
and a target. Images are standardised by one mean and one scale, targets are one-hot minus 1/C.

Inputs are reduced exactly: with B = [σ_w X/√d₀, σ_b 1] = L Q, L n×r and Q's rows orthonormal, the
first layer's pre-activations are L V with V = Q W ~ N(0, I), r = min(n, d₀ + 1).
"""

import dataclasses
import pathlib

import numpy as np

PIXELS = 3072
CLASSES = 10
HIDDEN_WEIGHT_VARIANCE, HIDDEN_BIAS_VARIANCE = 2.0, 0.01
READOUT_WEIGHT_VARIANCE, READOUT_BIAS_VARIANCE = 1.0, 0.01
SYNTHETIC = "synthetic"
TABLE = "table"
COLUMNS = 8


@dataclasses.dataclass(frozen=True)
class Problem:
    """What a density needs: in the end everything is a matrix times a standard normal."""

    first: np.ndarray  # n × r, or n × (d₀ + 1) where the inputs are not reduced
    targets: np.ndarray  # n × C
    widths: tuple[int, ...]
    noise: float
    test_first: np.ndarray | None = None  # B* Qᵀ
    test_rest: np.ndarray | None = None  # root of B* (I − QᵀQ) B*ᵀ, what training rows cannot see
    test_labels: np.ndarray | None = None

    @property
    def rows(self):
        return len(self.targets)

    def shapes(self):
        """Shapes of the arrays that a position consists of: V, then weights and bias of a layer."""
        shapes = [(self.first.shape[1], self.widths[0])]
        for fan_in, fan_out in zip(self.widths, self.widths[1:]):
            shapes += [(fan_in, fan_out), (fan_out,)]
        return shapes


def read_batch(path, rows):
    """The first `rows` images and labels of a CIFAR-10 binary batch."""
    records = np.fromfile(path, np.uint8, count=rows * (PIXELS + 1)).reshape(-1, PIXELS + 1)
    return records[:, 1:].astype(np.float64), records[:, 0].astype(np.int64)


def read_cifar(folder, rows, test_rows):
    """Training and test rows in the order of the batches, as reprior takes them."""
    images, labels = [], []
    for batch in sorted(pathlib.Path(folder).glob("data_batch_*.bin")):
        missing = rows - sum(map(len, labels))
        if missing:
            new_images, new_labels = read_batch(batch, missing)
            images.append(new_images)
            labels.append(new_labels)
    if sum(map(len, labels)) < rows:
        raise SystemExit(f"{folder}: {sum(map(len, labels))} training rows, not {rows}")
    test = read_batch(pathlib.Path(folder) / "test_batch.bin", test_rows)
    return np.concatenate(images), np.concatenate(labels), *test


def count(data):
    """Training rows that there are."""
    if data in (SYNTHETIC, TABLE):
        return 1 << 16
    sizes = [path.stat().st_size for path in pathlib.Path(data).glob("data_batch_*.bin")]
    if not sizes:
        raise SystemExit(f"{data}: no data_batch_*.bin, the binary version of CIFAR-10")
    return sum(sizes) // (PIXELS + 1)


def synthesise(rows, test_rows):
    """Rows with the classes' means a little apart."""
    generator = np.random.default_rng(0)
    labels = generator.integers(CLASSES, size=rows + test_rows)
    images = generator.normal(size=(rows + test_rows, PIXELS))
    images += 0.1 * generator.normal(size=(CLASSES, PIXELS))[labels]
    images = np.clip(120.0 + 60.0 * images, 0.0, 255.0).round()
    return images[:rows], labels[:rows], images[rows:], labels[rows:]


def write_synthetic(path, rows, test_rows):
    """The synthetic rows as a file that reprior reads."""
    names = ["x_train", "y_train", "x_test", "y_test"]
    arrays = dict(zip(names, synthesise(rows, test_rows)))
    for name in ("x_train", "x_test"):
        arrays[name] = arrays[name].astype(np.uint8).reshape(-1, 32, 32, 3)
    np.savez(path, **arrays)


def make_table(rows):
    """Inputs and a target that is a function of two of them."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(rows, COLUMNS))
    return x, np.sin(2 * x[:, 0]) + x[:, 1] + 0.1 * generator.normal(size=rows)


def write_table(path, rows):
    x, y = make_table(rows)
    names = ",".join([*(f"x{column}" for column in range(COLUMNS)), "y"])
    np.savetxt(path, np.column_stack([x, y]), delimiter=",", header=names, comments="")


def load(data, rows, widths, noise, test_rows=0, reduce=True):
    """The problem with the first `rows` rows of a data folder, of `synthetic` or of `table`."""
    if data == TABLE:
        x, y = make_table(rows)
        first, targets = with_bias((x - x.mean(0)) / x.std(0)), (y - y.mean()) / y.std()
        return Problem(first.astype(np.float32), targets[:, None], tuple(widths), noise)
    reader = synthesise if data == SYNTHETIC else lambda *sizes: read_cifar(data, *sizes)
    images, labels, test_images, test_labels = reader(rows, max(test_rows, 1))
    mean, scale = images.mean(), images.std()
    inputs = with_bias((images - mean) / scale)
    targets = np.eye(CLASSES)[labels] - 1 / CLASSES
    if not reduce:
        return Problem(inputs.astype(np.float32), targets, tuple(widths), noise)
    q, r = np.linalg.qr(inputs.T)  # B = L Q with L = rᵀ and Q = qᵀ
    test_inputs = with_bias((test_images - mean) / scale)
    seen = test_inputs @ q
    unseen = test_inputs @ test_inputs.T - seen @ seen.T
    root = np.linalg.cholesky(unseen + 1e-9 * np.trace(unseen) * np.eye(len(unseen)))
    single = np.float32
    return Problem(
        r.T.astype(single),
        targets,
        tuple(widths),
        noise,
        seen.astype(single),
        root.astype(single),
        test_labels,
    )


def with_bias(inputs):
    """[σ_w X/√d₀, σ_b 1]."""
    scaled = np.sqrt(HIDDEN_WEIGHT_VARIANCE / inputs.shape[1]) * inputs
    return np.column_stack([scaled, np.full(len(inputs), np.sqrt(HIDDEN_BIAS_VARIANCE))])
