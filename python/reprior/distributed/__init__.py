"""Chains on many machines, by Dask.

A chain is a task and a run of its own, in a folder that all workers see or in an object store. Nothing is kept in the scheduler: a worker that dies costs the time
since its last checkpoint, and its chains go on elsewhere to the same draws. At the end the runs are merged, to the bytes that one run of all chains has.
Where one machine has no room for the rows, :func:`shards` puts them on many.
Needs ``pip install "reprior[distributed]"``.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import pickle
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reprior._lib import RunError
from reprior._progress import Progress, Shown
from reprior._run import Run, _of_files, merge_parts, with_targets
from reprior.distributed._chains import make_all
from reprior.distributed._store import STOP, Store, is_address

if TYPE_CHECKING:
    import pandas

    from reprior.distributed._shards import ShardedDensity

__all__ = ["ChainsFailed", "CrossValidation", "Point", "ShardedDensity", "Sweep", "cross_validate", "sample", "shards", "sweep"]

#: Draws of each chain unless told otherwise: chains on many machines share no clock.
_DRAWS = 250
#: Seconds that chains are waited for which were asked to stop.
_STOP_WITHIN = 30.0


def __getattr__(name: str) -> Any:
    if name == "ShardedDensity":
        # needs Dask, which the names above do not
        from reprior.distributed._shards import ShardedDensity

        return ShardedDensity
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class ChainsFailed(RunError):
    """Chains failed three times without getting any further; ``failures`` has their errors by number, ``run`` the run of the others, if there are any."""

    def __init__(self, text: str, failures: dict[int, BaseException], run: Run | None) -> None:
        super().__init__(text)
        self.failures, self.run = failures, run


@dataclass(frozen=True)
class Point:
    """A run of a sweep: the settings that are its own, and the run, or why there is none."""

    settings: dict[str, Any]
    run: Run | None
    error: BaseException | None = None


@dataclass(frozen=True)
class Sweep(Sequence[Point]):
    """Runs of different settings, in the order of the grid."""

    points: tuple[Point, ...]

    def __getitem__(self, index: Any) -> Any:
        return self.points[index]

    def __len__(self) -> int:
        return len(self.points)

    def to_frame(self) -> pandas.DataFrame:
        """A row for every point: its settings, and every number of its summary. Needs pandas."""
        import pandas

        rows = []
        for point in self.points:
            row = pandas.DataFrame([point.settings])
            if point.run is not None:
                # its settings have names of the summary's: `method`, `chains`
                summary = point.run.summary().to_frame().drop(columns=list(point.settings), errors="ignore")
                row = pandas.concat([row, summary], axis=1)
            rows.append(row.assign(error=None if point.error is None else str(point.error)))
        return pandas.concat(rows, ignore_index=True)


@dataclass(frozen=True)
class CrossValidation:
    """Runs that were each made without a part of the rows, and how well they predict it."""

    runs: tuple[Run, ...]
    metrics: dict[str, np.ndarray]

    @property
    def mean(self) -> dict[str, float]:
        """Of every metric, over the parts."""
        return {name: float(values.mean()) for name, values in self.metrics.items()}

    @property
    def standard_error(self) -> dict[str, float]:
        """Of every mean, from how much parts differ."""
        return {name: float(values.std(ddof=1) / np.sqrt(len(values))) for name, values in self.metrics.items()}


def sample(
    X: Any = None,
    y: Any = None,
    *,
    chains: int = 4,
    client: Any = None,
    out: str | os.PathLike[str] | None = None,
    threads: int = 1,
    checkpoint_seconds: float = 10.0,
    progress: bool | Callable[[Progress], None] | None = None,
    **settings: Any,
) -> Run:
    """Draws as :func:`reprior.sample` does, each chain on a worker of its own.

    ``client`` is a ``distributed.Client``; without one a ``LocalCluster`` with a process for each core is started and closed again. ``out`` is where the run is made:
    a folder that all workers see, or an address for fsspec such as ``s3://bucket/run``. Without a client it may be left out, and the run is in memory.
    ``threads`` is of each chain. Lengths are given by ``warmup``, ``draws`` and ``thin``: 250 draws of each chain unless told otherwise.

    What is kept of a chain is bounded by ``keep_mb``, or given by numbers (``keep=50``), for each chain.

    Chains whose worker is lost go on elsewhere. Ctrl-C stops all of them and keeps what is drawn: the same call goes on, if ``out`` is given.

    Raises ValueError for what is refused, :class:`ChainsFailed` naming the chains that failed three times without getting any further; the others are kept.
    """
    found = _many([_Request("run", settings, chains)], [(X, y)], client, out, threads, checkpoint_seconds, progress, is_one=True)
    run = found[0]
    if isinstance(run, BaseException):
        raise run
    return run


def sweep(
    X: Any,
    y: Any,
    grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]],
    *,
    chains: int = 4,
    client: Any = None,
    out: str | os.PathLike[str] | None = None,
    threads: int = 1,
    checkpoint_seconds: float = 10.0,
    progress: bool | Callable[[Progress], None] | None = None,
    **settings: Any,
) -> Sweep:
    """A run for every point of a grid: of all combinations of ``{"network": ["fcn:32", "fcn:64"], "noise": [0.1, "learn"]}``, or of a list of settings.

    All chains of all points are tasks beside each other. In ``out`` the runs are called ``point-00000`` and so on. A point that is refused or fails has
    its error; the others are made.
    """
    if isinstance(grid, Mapping):
        points = [dict(zip(grid, values)) for values in itertools.product(*grid.values())]
    else:
        points = [dict(point) for point in grid]
    if not points:
        raise ValueError("the grid has no points: give every setting one value at least")
    requests = []
    for at, point in enumerate(points):
        own = {**settings, "chains": chains, **point}
        requests.append(_Request(f"point-{at:05}", own, own.pop("chains")))
    found = _many(requests, [(X, y)], client, out, threads, checkpoint_seconds, progress)
    made = [(None, run) if isinstance(run, BaseException) else (run, None) for run in found]
    return Sweep(tuple(Point(point, run, error) for point, (run, error) in zip(points, made)))


def cross_validate(
    X: Any,
    y: Any,
    *,
    cv: Any = 5,
    chains: int = 4,
    client: Any = None,
    out: str | os.PathLike[str] | None = None,
    threads: int = 1,
    checkpoint_seconds: float = 10.0,
    progress: bool | Callable[[Progress], None] | None = None,
    **settings: Any,
) -> CrossValidation:
    """Runs that each leave a part of the rows out, and their metrics on it.

    ``cv`` is a number of parts, into which rows go at random by ``seed``, or a splitter of scikit-learn's. In ``out`` the runs are called ``fold-00`` and so on.
    """
    for name in ("train", "test", "watch", "shuffle", "no_shuffle"):
        if settings.get(name) is not None:
            raise TypeError(f"cross_validate() says which rows train: leave `{name}` out")
    rows = len(y)
    requests, data = [], []
    for at, (train, test) in enumerate(_parts(cv, X, y, rows, int(settings.get("seed") or 0))):
        order = np.concatenate([train, test])
        requests.append(_Request(f"fold-{at:02}", {**settings, "train": len(train), "test": len(test), "no_shuffle": True}, chains))
        data.append((_rows(X, order), _rows(y, order)))
    found = _many(requests, data, client, out, threads, checkpoint_seconds, progress)
    for run in found:
        if isinstance(run, BaseException):
            raise run
    metrics = [run.summary().metrics or {} for run in found]
    return CrossValidation(tuple(found), {name: np.array([own[name] for own in metrics]) for name in metrics[0]})


def shards(
    X: Any,
    y: Any = None,
    *,
    client: Any,
    count: int | None = None,
    classes: Sequence[Any] | None = None,
    **settings: Any,
) -> ShardedDensity:
    """A posterior whose rows are on many workers, as a density for :func:`reprior.sample_density`.

    ``X`` (rows, columns) and ``y`` (rows) or (rows, outputs) are split into ``count`` shards, one for each thread of the workers unless told otherwise. Without ``y``, ``X`` is a list
    of shards: pairs ``(X, y)``, or functions that give one and are called on a worker, so that the rows never are in one place.

    Nothing is chosen by the data, scaled or held out, since no shard sees the other rows: inputs and targets are taken as they are, numbers of order one, and ``network``, ``likelihood`` and (where there
    is one) ``noise`` are given, in the words of :func:`reprior.sample`. ``classes`` lists the classes of ``y`` for a categorical or bernoulli likelihood. Coordinates are ``marginal``
    with a gaussian likelihood and ``standard`` with others; ``precision`` is f32 unless it is f64.

    Every evaluation sends a position to all shards and adds what they send back, in an order that hangs on the number of shards alone: the same draws on any workers of one instruction
    set. A worker that is lost costs the evaluation that it was in; its rows are brought to another one.

    ::

        with shards(X, y, network="fcn:64", likelihood="gaussian", noise="learn", client=client) as density:
            found = reprior.sample_density(density, density.dim, relative=True, method="hmc-infinite")
            predicted = density.predict(found, X_new)

    Raises ValueError and TypeError for what is refused.
    """
    from reprior.distributed._shards import sharded

    return sharded(client, X, y, count, classes, settings)


def _parts(cv: Any, X: Any, y: Any, rows: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    if hasattr(cv, "split") and not isinstance(cv, str):
        yield from cv.split(X, y)
        return
    if isinstance(cv, bool) or not isinstance(cv, (int, np.integer)) or not 2 <= cv <= rows:
        raise ValueError(f"cv is {cv!r}: it must be a splitter, or a number of parts from 2 to the {rows} rows")
    order = np.random.default_rng(seed).permutation(rows)
    for part in np.array_split(order, int(cv)):
        yield np.setdiff1d(order, part), np.sort(part)


def _rows(values: Any, rows: np.ndarray) -> Any:
    return values.iloc[rows] if hasattr(values, "iloc") else np.asarray(values)[rows]


# inside


@dataclass(frozen=True)
class _Request:
    """A run that is asked for."""

    name: str
    settings: dict[str, Any]
    chains: int

    def checked(self) -> dict[str, Any]:
        """Its settings, with lengths."""
        if isinstance(self.chains, bool) or not isinstance(self.chains, (int, np.integer)):
            raise TypeError(f"chains is {self.chains!r}: it must be a whole number")
        if self.chains < 1:
            raise ValueError(f"chains is {self.chains}: it must be at least 1")
        for name in ("minutes", "until"):
            if self.settings.get(name) is not None:
                raise ValueError(f"{name} is of chains that share a clock, which those on many machines do not: give warmup and draws")
        if self.settings.get("first_chain") is not None:
            raise TypeError("chains are numbered from 0 here: leave `first_chain` out")
        own = dict(self.settings)
        if all(own.get(name) is None for name in ("draws", "warmup", "thin", "epochs")):
            own["draws"] = _DRAWS
        return own


def _columns(X: Any, y: Any, settings: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Data as a worker takes them, and settings that name them."""
    if X is None:
        data = settings.get("data")
        own = {} if data is None else {"data": os.path.abspath(data) if os.path.exists(str(data)) else data}
        return None, {**settings, **own}
    if y is None:
        raise TypeError("there is X but no y: give the targets too")
    return with_targets(X, y, settings)


def _many(
    requests: list[_Request],
    data: list[tuple[Any, Any]],
    client: Any,
    out: str | os.PathLike[str] | None,
    threads: int,
    checkpoint_seconds: float,
    progress: bool | Callable[[Progress], None] | None,
    is_one: bool = False,
) -> list[Run | BaseException]:
    """Runs of requests, of the same data or each of its own, in order; an error in place of one that there is not."""
    if client is not None and out is None:
        raise ValueError("out is left out: give a folder that all workers see, or an address such as s3://bucket/run")
    place = _Destination(out, is_one)
    try:
        return _made(place, requests, data, client, threads, checkpoint_seconds, progress)
    finally:
        place.end()


def _made(
    place: _Destination,
    requests: list[_Request],
    data: list[tuple[Any, Any]],
    client: Any,
    threads: int,
    checkpoint_seconds: float,
    progress: bool | Callable[[Progress], None] | None,
) -> list[Run | BaseException]:
    try:
        from reprior.distributed._dask import DaskPool, Job, part
    except ImportError as error:
        raise ImportError('chains on many machines need Dask: pip install "reprior[distributed]"') from error
    for request in requests:
        place.refuse(request.name)
    prepared = [(_columns(*data[at % len(data)], request.checked()), request) for at, request in enumerate(requests)]
    store = Store(place.store)
    store.remove(STOP)
    jobs = []
    for (columns, settings), request in prepared:
        name = None
        if columns is not None:
            content = pickle.dumps(columns, protocol=5)
            # by their content: workers keep data that they have read
            name = f"data-{hashlib.sha256(content).hexdigest()[:24]}.pickle"
            if not store.has(name):
                store.write(name, content)
        jobs.append(Job(request.name, name, settings))
    chains = [(at, chain) for at, request in enumerate(requests) for chain in range(request.chains)]
    with _connected(client) as connected:
        watched = _Watched(len(chains), progress)
        pool = DaskPool(connected, place.store, jobs, threads=threads, checkpoint_seconds=checkpoint_seconds, look=watched.look)
        try:
            failed = make_all(pool, chains)
        except BaseException as error:
            store.write(STOP, b"")
            _wait_for_end(pool)
            if isinstance(error, KeyboardInterrupt):
                place.keep()
                further = "the same call goes on with them" if place.out is not None else "with `out` the same call would go on with them"
                error.add_note(f"the chains were stopped; their draws are in {place.store}, and {further}")
            raise
        finally:
            watched.end()
            pool.close()
    results: list[Run | BaseException] = []
    for at, (job, request) in enumerate(zip(jobs, requests)):
        failures = {chain: error for (own, chain), error in failed.items() if own == at}
        refused = next((error for error in failures.values() if isinstance(error, (ValueError, TypeError))), None)
        if refused is not None:
            results.append(refused)
            continue
        parts = [part(job, chain) for chain in range(request.chains) if chain not in failures]
        run = place.merged(store, job.name, parts) if parts else None
        if failures:
            named = "; ".join(f"chain {chain}: {error}" for chain, error in failures.items())
            text = f"{len(failures)} of {request.chains} chains failed three times without getting any further: {named}"
            results.append(ChainsFailed(text, failures, run))
        elif run is not None:
            results.append(run)
    if not failed:
        place.close(store)
    return results


@contextmanager
def _connected(client: Any) -> Iterator[Any]:
    """The client, or one of a cluster of this machine for as long as it is needed."""
    if client is not None:
        yield client
        return
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=os.cpu_count(), threads_per_worker=1, processes=True, dashboard_address=":0") as cluster, Client(cluster) as own:
        yield own


def _wait_for_end(pool: Any) -> None:
    until = time.monotonic() + _STOP_WITHIN
    while time.monotonic() < until and any(not future.done() for future in pool.futures.values()):
        time.sleep(0.05)


class _Destination:
    """Where runs are in the end, and where their chains are until then."""

    def __init__(self, out: str | os.PathLike[str] | None, is_one: bool) -> None:
        self.out = None if out is None else os.fspath(out)
        self.is_one = is_one
        self._temporary: str | None = None
        if self.out is None:
            self._temporary = tempfile.mkdtemp(prefix="reprior-")
        self.store = self._temporary if self._temporary is not None else f"{os.fspath(out).rstrip('/')}-chains"  # type: ignore[arg-type]

    def name(self, job: str) -> str:
        """Where the run of a job is, below ``out``."""
        assert self.out is not None
        return self.out if self.is_one else f"{self.out.rstrip('/')}/{job}"

    def refuse(self, job: str) -> None:
        """Refuses to replace a run."""
        if self.out is None:
            return
        place = self.name(job)
        if Store(place).has("config.toml"):
            raise ValueError(f"`{place}` holds a run already: open it, remove it, or choose another out")

    def merged(self, store: Store, job: str, parts: list[str]) -> Run:
        """The run of all chains that there are."""
        if self.out is not None and not is_address(self.out):
            place = self.name(job)
            Path(place).parent.mkdir(parents=True, exist_ok=True)
            return merge_parts([store.path(part) for part in parts], place)
        with tempfile.TemporaryDirectory(prefix="reprior-") as temporary:
            folders = []
            for part in parts:
                if store.is_remote:
                    folder = Path(temporary) / part
                    store.fetch(part, folder)
                    folders.append(os.fspath(folder))
                else:
                    folders.append(store.path(part))
            whole = Path(temporary) / "merged"
            run = merge_parts(folders, whole)
            if self.out is not None:
                Store(self.name(job)).send(whole)
            return _of_files(run._inner.to_files(""))

    def keep(self) -> None:
        """Leaves the chains where they are."""
        self._temporary = None

    def close(self, store: Store) -> None:
        """Removes the chains: they are in the runs now."""
        if self.out is not None:
            store.remove()

    def end(self) -> None:
        """Removes the chains that no later call finds."""
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)


class _Watched:
    """How all chains get on, for who wants to see it."""

    def __init__(self, chains: int, progress: bool | Callable[[Progress], None] | None) -> None:
        self.chains = chains
        self.shown = Shown() if progress is True or progress is None and Shown.is_wanted() else None
        self.call = progress if callable(progress) else None
        self.began = time.monotonic()

    def look(self, said: dict[Any, dict[str, Any]]) -> None:
        if self.shown is None and self.call is None:
            return
        own = list(said.values())
        rates = [one["acceptance_rate"] for one in own if one["acceptance_rate"] is not None]
        total = max((one["total"] for one in own), default=0) * self.chains
        now = Progress(
            chains=self.chains,
            made=sum(one["made"] for one in own),
            total=total,
            seconds=time.monotonic() - self.began,
            is_warmup=any(one["is_warmup"] for one in own),
            acceptance_rate=float(np.mean(rates)) if rates else None,
            diverging=sum(one["diverging"] for one in own),
            is_finished=total > 0 and all(one["made"] == one["total"] for one in own) and len(own) == self.chains,
        )
        if self.shown is not None:
            self.shown.update(now)
        if self.call is not None:
            self.call(now)

    def end(self) -> None:
        if self.shown is not None:
            self.shown.end()
