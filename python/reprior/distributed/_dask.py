"""Chains as tasks of Dask: one task is one chain, which goes on from its last checkpoint wherever it is made."""

from __future__ import annotations

import pickle
import queue
import time
import uuid
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from reprior._lib import RunError
from reprior._run import Run, _started
from reprior.distributed._chains import Ended
from reprior.distributed._store import STOP, Store, Workplace

#: Seconds between two looks at a chain that is being made.
_LOOK_EVERY = 0.2
#: Seconds between two looks at whether there are workers.
_COUNT_EVERY = 10.0
#: Seconds that a chain is waited for which a worker still holds that was given up.
_HELD = 60.0
#: What a refusal says of it.
_BY_ANOTHER = "is being written by another process"


@dataclass(frozen=True)
class Job:
    """A run whose chains are made one by one: its place among others, its data and its settings."""

    name: str
    data: str | None
    settings: dict[str, Any]


@dataclass(frozen=True)
class Place:
    """What all tasks of a call share."""

    store: str
    topic: str
    threads: int
    checkpoint_seconds: float


class Stopped(Exception):
    """A chain was stopped before its end."""


def part(job: Job, chain: int) -> str:
    """The name of the run of a chain."""
    return f"{job.name}/chain-{chain:05}"


@lru_cache(maxsize=2)
def _data(store: str, name: str) -> Any:
    return pickle.loads(Store(store).read(name))


def make_chain(place: Place, job: Job, chain: int) -> int:
    """Makes a chain, or goes on with it, on a worker; the transitions that it has."""
    _tell(place.topic, {"job": job.name, "chain": chain})
    store = Store(place.store)
    workplace = Workplace(store, part(job, chain))
    data = None if job.data is None else _data(place.store, job.data)
    settings = {**job.settings, "chains": 1, "first_chain": chain}
    try:
        run = _begun(place, workplace, data, settings)
        pushed = time.monotonic()
        while not run.wait(_LOOK_EVERY):
            _say(place.topic, job.name, chain, run)
            if store.has(STOP):
                run.stop()
                break
            if time.monotonic() - pushed > place.checkpoint_seconds:
                workplace.push()
                pushed = time.monotonic()
        workplace.push()
        _say(place.topic, job.name, chain, run)
        if run.is_stopped:
            raise Stopped(part(job, chain))
        return run.progress.made
    finally:
        workplace.close()


def _begun(place: Place, workplace: Workplace, data: Any, settings: dict[str, Any]) -> Run:
    """The run, once it is begun; a worker that is taken for lost may hold it for a while."""
    until = time.monotonic() + _HELD
    while True:
        try:
            return _started(
                data,
                settings,
                out=workplace.folder,
                or_resume=True,
                checkpoint_seconds=place.checkpoint_seconds,
                threads=place.threads,
                wait=False,
                # the merged run is summarised
                is_part=True,
            )
        except ValueError as error:
            if _BY_ANOTHER not in str(error) or time.monotonic() > until:
                raise
            time.sleep(1.0)


def _say(topic: str, job: str, chain: int, run: Run) -> None:
    """Tells who asked how the chain gets on."""
    now = run.progress
    said = {
        "job": job,
        "chain": chain,
        "made": now.made,
        "total": now.total,
        "is_warmup": now.is_warmup,
        "acceptance_rate": now.acceptance_rate,
        "diverging": now.diverging,
    }
    _tell(topic, said)


def _tell(topic: str, said: dict[str, Any]) -> None:
    from distributed import get_worker

    get_worker().log_event(topic, said)


class DaskPool:
    """Makes chains of jobs on the workers of a client."""

    def __init__(self, client: Any, store: str, jobs: list[Job], *, threads: int, checkpoint_seconds: float, look: Callable[[dict[Any, Any]], None]) -> None:
        self.client, self.jobs, self.look = client, jobs, look
        self.place = Place(store, f"reprior-{uuid.uuid4().hex}", threads, checkpoint_seconds)
        self.futures: dict[Any, Any] = {}
        self.said: dict[tuple[str, int], dict[str, Any]] = {}
        #: Chains that a worker has come to since they were last submitted.
        self.begun: set[tuple[str, int]] = set()
        self._ended: queue.Queue[tuple[tuple[int, int], Any]] = queue.Queue()
        self._counted = time.monotonic()
        client.subscribe_topic(self.place.topic, self._heard)

    def _heard(self, event: tuple[Any, dict[str, Any]]) -> None:
        said = event[1]
        named = said["job"], said["chain"]
        self.begun.add(named)
        if "made" in said:
            self.said[named] = said

    def submit(self, chain: tuple[int, int]) -> None:
        job = self.jobs[chain[0]]
        self.begun.discard((job.name, chain[1]))
        future = self.client.submit(make_chain, self.place, job, chain[1], key=f"reprior-{part(job, chain[1])}-{uuid.uuid4().hex}", pure=False)
        self.futures[chain] = future
        future.add_done_callback(lambda ended: self._ended.put((chain, ended)))

    def wait(self) -> Ended[tuple[int, int]] | None:
        from distributed import KilledWorker

        self.look(self.said)
        try:
            chain, future = self._ended.get(timeout=_LOOK_EVERY)
        except queue.Empty:
            self._count()
            return None
        if self.futures.get(chain) is not future:
            return None
        named = self.jobs[chain[0]].name, chain[1]
        made = self.said.get(named, {}).get("made", 0)
        if future.status == "finished":
            self.futures.pop(chain)
            return Ended(chain, made=made)
        error = future.exception() if future.status == "error" else RunError("the task was cancelled")
        # Dask takes all chains of a worker that is lost for its victims, those too that waited for their turn there
        has_begun = named in self.begun or not isinstance(error, KilledWorker)
        # what is refused once is refused again
        return Ended(chain, error=error, made=made, is_final=isinstance(error, (ValueError, TypeError, Stopped)), has_begun=has_begun)

    def _count(self) -> None:
        """Says so where chains wait and no worker is left, as after workers died while they started."""
        now = time.monotonic()
        if now - self._counted < _COUNT_EVERY:
            return
        self._counted = now
        if not self.client.scheduler_info()["workers"]:
            warnings.warn("the cluster has no worker: chains go on when it has one, as by cluster.scale(n)", RuntimeWarning, stacklevel=2)

    def close(self) -> None:
        self.client.unsubscribe_topic(self.place.topic)
        for future in self.futures.values():
            future.cancel()
