"""A posterior whose rows are on many machines: sums over them as tasks of Dask."""

from __future__ import annotations

import copy
import itertools
import queue
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from distributed import CancelledError, Client, Future
from distributed.scheduler import KilledWorker

from reprior import _lib
from reprior._density import Density
from reprior._prediction import ClassPrediction, Prediction
from reprior._settings import to_flags

#: Settings that shards have: those of the model, its coordinates and their precision.
_SETTINGS = (
    "activation",
    "bias_variance",
    "coordinates",
    "degrees_of_freedom",
    "layers",
    "likelihood",
    "network",
    "noise",
    "noise_median",
    "noise_spread",
    "noise_variation",
    "precision",
    "readout_bias_variance",
    "readout_weight_variance",
    "scale_spread",
    "scales",
    "weight_variance",
)
#: How often an evaluation is tried again whose rows a lost worker had.
_TRIES = 3
#: Bytes of moments that a worker sends at a time for predictions.
_MOMENTS_BYTES = 32e6


class Rows:
    """The rows of a shard, on their way to a worker."""

    def __init__(self, inputs: Any, targets: Any, classes: Sequence[Any] | None) -> None:
        self.inputs = np.ascontiguousarray(inputs, dtype=np.float64)
        if self.inputs.ndim != 2:
            raise ValueError(f"X has {self.inputs.ndim} dimension(s): it must have two, rows and columns")
        found = np.asarray(targets)
        found = found.reshape(-1, 1) if found.ndim == 1 else found
        if found.ndim != 2 or len(found) != len(self.inputs):
            raise ValueError(f"y has the shape {np.shape(targets)} and X {len(self.inputs)} rows: give targets for each row")
        if classes is not None:
            labels = {label: at for at, label in enumerate(classes)}
            unknown = next((label for label in found.ravel().tolist() if label not in labels), None)
            if unknown is not None:
                raise ValueError(f"y has the class {unknown!r}, which is none of {list(classes)}")
            found = np.array([[labels[label]] for label in found.ravel().tolist()])
        self.targets = np.ascontiguousarray(found, dtype=np.float64)
        self.classes = None if classes is None else [str(label) for label in classes]

    def part(self, first: int, last: int) -> Rows:
        """The rows from `first` to before `last`."""
        own = copy.copy(self)
        own.inputs, own.targets = self.inputs[first:last], self.targets[first:last]
        return own


def load(source: Callable[[], tuple[Any, Any]], classes: Sequence[Any] | None) -> Rows:
    """The rows that a function gives, on a worker."""
    return Rows(*source(), classes)


# Work spaces of a worker, by density, shard and lane: what the first round has evaluated is there for the second.
_shards: dict[tuple[str, int, int], _lib.Shard] = {}
_lock = threading.Lock()


def _whole(values: np.ndarray) -> np.ndarray:
    """As Rust takes an array: what came over a network may begin at any byte."""
    return np.require(values, np.float64, ["C", "A"])


def _shard(name: str, number: int, lane: int, flags: list[str], rows: Rows) -> _lib.Shard:
    key = (name, number, lane)
    with _lock:
        found = _shards.get(key)
    if found is None:
        found = _lib.Shard(flags, _whole(rows.inputs), _whole(rows.targets), rows.classes, number)
        with _lock:
            _shards[key] = found
    return found


def sizes(name: str, number: int, flags: list[str], rows: Rows) -> tuple[tuple[int, int, int, int], int]:
    """Coordinates, moments, columns and targets of a shard, which are those of all of them; its rows."""
    shard = _shard(name, number, 0, flags, rows)
    return (shard.dim, shard.moment_count, rows.inputs.shape[1], rows.targets.shape[1]), shard.rows


def moments(name: str, number: int, lane: int, flags: list[str], rows: Rows, z: np.ndarray) -> np.ndarray:
    """The first round of a shard."""
    return _shard(name, number, lane, flags, rows).moments(_whole(z))


def moments_of_all(name: str, number: int, lane: int, flags: list[str], rows: Rows, positions: np.ndarray) -> np.ndarray:
    """The first round at several positions."""
    shard = _shard(name, number, lane, flags, rows)
    return np.stack([shard.moments(z) for z in _whole(positions)])


def part(name: str, number: int, lane: int, flags: list[str], rows: Rows, z: np.ndarray, total: np.ndarray, count: int) -> np.ndarray:
    """The second round of a shard."""
    return _shard(name, number, lane, flags, rows).value_and_gradient(_whole(z), _whole(total), count)


def forget(name: str) -> None:
    """Lets go of a density's work spaces."""
    with _lock:
        for key in [key for key in _shards if key[0] == name]:
            del _shards[key]


class ShardedDensity:
    """The logarithm of a posterior against its prior, a standard normal, and its gradient, of rows that are on many workers: a function for
    :func:`reprior.sample_density`.

    ``dim`` is the number of coordinates, ``rows`` that of all rows. :meth:`close` lets go of what the workers hold; as a context manager it does so at the end.
    """

    def __init__(self, client: Client, sources: list[Any], classes: Sequence[Any] | None, flags: list[str]) -> None:
        self._client, self._sources, self._classes, self._flags = client, sources, classes, flags
        self._name = f"reprior-shards-{uuid.uuid4().hex[:12]}"
        self._held: list[Future | None] = [None] * len(sources)
        self._hold = threading.Lock()
        self._lanes: queue.LifoQueue[int] = queue.LifoQueue()
        self._new_lane = itertools.count()
        self._place()
        found = self._client.gather([self._submit(sizes, number, self._flags, rows) for number, rows in enumerate(self._held)])
        shapes = {shape for shape, _ in found}
        if len(shapes) > 1:
            dimensions = sorted(shape[0] for shape in shapes)
            raise ValueError(f"shards have {dimensions} coordinates: they must be rows of one table, with the same columns and outputs")
        self.dim, self._moments, self._columns, self._outputs = shapes.pop()
        self.rows = sum(rows for _, rows in found)

    def __call__(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """The logarithm at a position of ``dim`` coordinates, and its gradient; NaN where it cannot be evaluated."""
        z = np.ascontiguousarray(z, dtype=np.float64)
        total = self._tried(lambda lane: self._evaluated(z, lane))
        return float(total[0]), _whole(total)[1:]

    def predict(self, found: Density | np.ndarray, X: Any, *, draws: int = 1000, noise: bool = True) -> Prediction | ClassPrediction:
        """Predictions for new rows, an array with the columns of the shards, by draws of this density: of :func:`reprior.sample_density`, or an array of positions
        whose last axis has ``dim`` coordinates.

        Of more draws than ``draws`` so many are used, evenly apart. Where the readout is integrated out each of them takes one round of sums over all rows, and its
        prediction is in closed form. ``noise=False`` leaves the observation noise out: the uncertainty of the function itself.

        Raises ValueError for rows with other columns, positions of other coordinates, and for ``noise=False`` of classes.
        """
        X = np.ascontiguousarray(X, dtype=np.float64)
        if X.ndim != 2 or X.shape[1] != self._columns:
            raise ValueError(f"X has the shape {X.shape}: it must have rows of {self._columns} columns, as the shards have")
        positions = np.asarray(found.draws if isinstance(found, Density) else found, dtype=np.float64)
        if positions.ndim == 0 or positions.shape[-1] != self.dim:
            raise ValueError(f"positions have the shape {positions.shape}: the last number must be the {self.dim} coordinates of this density")
        positions = positions.reshape(-1, self.dim) if self.dim else np.empty((1, 0))
        if not len(positions):
            raise ValueError("there are no positions: give one at least")
        if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or draws < 1:
            raise ValueError(f"draws is {draws!r}: it must be a whole number, 1 at least")
        if len(positions) > draws:
            positions = positions[np.linspace(0, len(positions) - 1, draws).round().astype(int)]
        names = None if self._classes is None else [str(label) for label in self._classes]
        if names is not None and not noise:
            raise ValueError("noise=False has no meaning for class probabilities: leave it out")
        predictor = _lib.ShardPredictor(self._flags, X, self._outputs, names, noise)
        step = max(1, int(_MOMENTS_BYTES / (8 * max(1, self._moments))))
        for first in range(0, len(positions), step):
            own = np.ascontiguousarray(positions[first : first + step])
            predictor.add(own, self._all_moments(own), self.rows, first)
        if names is not None:
            return ClassPrediction(predictor.probabilities().reshape(-1, len(names)), names)
        names = ["y"] if self._outputs == 1 else [f"y{at}" for at in range(self._outputs)]
        return Prediction.of(predictor.moments(), predictor.quantiles([0.05, 0.5, 0.95]), names)

    def close(self) -> None:
        """Lets go of the rows."""
        self._held = []
        if self._client.status == "running":
            self._client.run(forget, self._name)

    def __enter__(self) -> ShardedDensity:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _place(self) -> None:
        """Brings rows to workers that are not there, or no longer."""
        with self._hold:
            for number, source in enumerate(self._sources):
                held = self._held[number]
                if held is not None and held.status in ("pending", "finished"):
                    continue
                if callable(source):
                    self._held[number] = self._client.submit(load, source, self._classes, pure=False)
                else:
                    workers = sorted(self._client.scheduler_info(n_workers=-1)["workers"])
                    own = [workers[number % len(workers)]] if workers else None
                    self._held[number] = self._client.scatter(source, workers=own, hash=False)

    def _tried(self, evaluate: Callable[[int], np.ndarray]) -> np.ndarray:
        """What is evaluated in a lane, anew where the rows of lost workers are elsewhere now."""
        if not self._held:
            raise RuntimeError("this density is closed: its workers hold no rows any more. Make a new one by reprior.distributed.shards()")
        with self._lane() as lane:
            for left in reversed(range(_TRIES)):
                try:
                    return evaluate(lane)
                except (CancelledError, KilledWorker):
                    if left == 0:
                        raise
                    self._place()
        raise AssertionError("an evaluation ends or fails")

    def _all_moments(self, positions: np.ndarray) -> np.ndarray:
        """Of each position those of all rows."""
        if not self._moments:
            return np.empty((len(positions), 0))

        def summed(lane: int) -> np.ndarray:
            return self._sum(moments_of_all, lane, positions)

        return _whole(self._tried(summed))

    def _submit(self, function: Callable[..., Any], *values: Any) -> Future:
        return self._client.submit(function, self._name, *values, pure=False)

    def _evaluated(self, z: np.ndarray, lane: int) -> np.ndarray:
        total = self._sum(moments, lane, z) if self._moments else np.empty(0)
        return self._sum(part, lane, z, total, self.rows)

    def _sum(self, function: Callable[..., np.ndarray], lane: int, *values: Any) -> np.ndarray:
        """A round: what all shards give, added in pairs, in an order that hangs on their number alone."""
        asked = [self._submit(function, number, lane, self._flags, rows, *values) for number, rows in enumerate(self._held)]
        parts = self._client.gather(asked)
        while len(parts) > 1:
            pairs = [parts[at : at + 2] for at in range(0, len(parts), 2)]
            parts = [pair[0] + pair[1] if len(pair) == 2 else pair[0] for pair in pairs]
        return parts[0]

    @contextmanager
    def _lane(self) -> Iterator[int]:
        """A work space on every worker for as long as an evaluation lasts: chains evaluate at a time."""
        try:
            lane = self._lanes.get_nowait()
        except queue.Empty:
            lane = next(self._new_lane)
        try:
            yield lane
        finally:
            self._lanes.put(lane)


def sharded(client: Client, X: Any, y: Any, count: int | None, classes: Sequence[Any] | None, settings: dict[str, Any]) -> ShardedDensity:
    """The density of arrays that are split, or of the parts that there are."""
    for name in settings:
        if name not in _SETTINGS:
            raise TypeError(f"shards() has no setting `{name}`: it takes {', '.join(_SETTINGS)}")
    flags = to_flags(settings, "shards()")
    if y is None:
        if not isinstance(X, (list, tuple)) or not X:
            raise TypeError("without y, X must be a list of pairs (X, y), or of functions that give one")
        if count is not None:
            raise TypeError("count is of arrays that are split: leave it out where there is a list of shards")
        sources = [one if callable(one) else Rows(*one, classes) for one in X]
    else:
        whole = Rows(X, y, classes)
        if count is None:
            count = max(1, sum(client.nthreads().values()))
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or not 1 <= count <= len(whole.inputs):
            raise ValueError(f"count is {count!r}: it must be a whole number from 1 to the {len(whole.inputs)} rows")
        bounds = [len(whole.inputs) * at // count for at in range(count + 1)]
        sources = [whole.part(a, b) for a, b in itertools.pairwise(bounds)]
    return ShardedDensity(client, sources, classes, flags)
