"""Where runs of chains are: a folder that all workers see, or an object store by its address (``s3://...``, through fsspec).

In a shared folder a chain is made in its place. Of an object store it is made in a folder of the worker's own, and what is new there is copied after every
checkpoint: first what has been drawn, last the checkpoint that says so, so that what is there can be gone on with at any moment.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

#: The file that asks workers to stop.
STOP = "stop"
_CHECKPOINT = "checkpoint"
#: Bytes that are sent to a store side by side.
AT_ONCE = 1 << 26


def is_address(place: str) -> bool:
    """Whether this is an address rather than a path."""
    return "://" in place


class Store:
    """Files below a place, by names with slashes."""

    def __init__(self, place: str) -> None:
        self.place = place
        self._files: Any = None
        self._root = place
        if is_address(place):
            import fsspec

            self._files, self._root = fsspec.core.url_to_fs(place)

    @property
    def is_remote(self) -> bool:
        return self._files is not None

    def path(self, name: str) -> str:
        """Where a file or folder is; without a name, all of it."""
        if not name:
            return self._root
        return f"{self._root.rstrip('/')}/{name}" if self.is_remote else os.path.join(self._root, name)

    def write(self, name: str, data: bytes) -> None:
        if self.is_remote:
            self.write_all({name: data})
            return
        path = self.path(name)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        # whole or not at all
        part = Path(f"{path}.{os.getpid()}.part")
        part.write_bytes(data)
        part.replace(path)

    def write_all(self, data: dict[str, bytes]) -> None:
        """Files of an object store by their names, in no order, side by side where it can."""
        by_path = {self.path(name): own for name, own in data.items()}
        try:
            self._files.pipe(by_path)
        except FileNotFoundError:
            # where there are folders
            for folder in sorted({os.path.dirname(path) for path in by_path}):
                self._files.makedirs(folder, exist_ok=True)
            self._files.pipe(by_path)

    def read(self, name: str) -> bytes:
        path = self.path(name)
        return self._files.cat_file(path) if self.is_remote else Path(path).read_bytes()

    def has(self, name: str) -> bool:
        path = self.path(name)
        if not self.is_remote:
            return os.path.exists(path)
        # others write there too: what was listed before is forgotten
        self._files.invalidate_cache()
        return self._files.exists(path)

    def remove(self, name: str = "") -> None:
        path = self.path(name)
        if not self.has(name):
            return
        if self.is_remote:
            self._files.rm(path, recursive=True)
        elif os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            Path(path).unlink(missing_ok=True)

    def send(self, folder: Path) -> None:
        """Copies a folder of this machine there."""
        Copy(self, folder, "").push()

    def fetch(self, name: str, folder: Path) -> None:
        """Copies what an object store has below a name into a folder of this machine."""
        path = self.path(name)
        if not self.has(name):
            return
        root = self._files._strip_protocol(path).rstrip("/")
        sources = self._files.find(path)
        targets = [folder / source[len(root) :].lstrip("/") for source in sources]
        for parent in {target.parent for target in targets}:
            parent.mkdir(parents=True, exist_ok=True)
        if self._files.async_impl:
            self._files.get(sources, [os.fspath(target) for target in targets])
            return
        # a get of files one after another looks through all the store for each
        for source, target in zip(sources, targets):
            target.write_bytes(self._files.cat_file(source))


class Copy:
    """A run in a folder of this machine, and its copy in a store."""

    def __init__(self, store: Store, folder: Path, name: str) -> None:
        self.store, self.folder, self.name = store, folder, name
        self._sent: dict[str, tuple[int, int]] = {}

    def push(self) -> None:
        """Sends what has changed: what checkpoints say is there, and then the checkpoints."""
        checkpoints = {name: path.read_bytes() for name, path in self._below(self.folder / _CHECKPOINT)}
        changed: dict[str, bytes] = {}
        states: dict[str, tuple[int, int]] = {}
        size = 0
        for name, path in self._below(self.folder):
            if name.split("/")[0] == _CHECKPOINT:
                continue
            try:
                found = path.stat()
                state = (found.st_mtime_ns, found.st_size)
                if self._sent.get(name) == state:
                    continue
                changed[name] = path.read_bytes()
            except FileNotFoundError:
                # replaced as a whole at this moment: it is sent the next time
                continue
            states[name] = state
            size += len(changed[name])
            if size > AT_ONCE:
                self._write(changed)
                changed, size = {}, 0
        self._write(changed)
        self._sent.update(states)
        self._write(checkpoints)

    def _write(self, data: dict[str, bytes]) -> None:
        self.store.write_all({f"{self.name}/{name}" if self.name else name: own for name, own in data.items()})

    def _below(self, folder: Path) -> list[tuple[str, Path]]:
        """Files by their names; those that begin with a dot are the lock and what is half written."""
        paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
        return [(path.relative_to(self.folder).as_posix(), path) for path in paths]


class Workplace:
    """Where a chain of a store is made on this machine."""

    def __init__(self, store: Store, name: str) -> None:
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._copy: Copy | None = None
        if not store.is_remote:
            self.folder = Path(store.path(name))
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            return
        self._temporary = tempfile.TemporaryDirectory(prefix="reprior-")
        self.folder = Path(self._temporary.name) / "run"
        # without a checkpoint it was lost while it was first sent: something may be missing, and nothing is lost by a new start
        if store.has(f"{name}/{_CHECKPOINT}"):
            store.fetch(name, self.folder)
        self._copy = Copy(store, self.folder, name)

    def push(self) -> None:
        """Makes what is there safe."""
        if self._copy is not None:
            self._copy.push()

    def close(self) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()
