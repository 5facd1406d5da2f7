"""Runs: made, waited for, read, predicted from."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reprior import _images, _lib, _table
from reprior._prediction import ClassPrediction, Prediction
from reprior._progress import Progress, Shown
from reprior._settings import to_flags
from reprior._summary import LeaveOneOut, Summary

if TYPE_CHECKING:
    import xarray

    from reprior._density import Density

#: Seconds between two looks at how a run gets on.
_LOOK_EVERY = 0.1
#: Seconds that a run that is stopped by Ctrl-C is waited for.
_STOP_WITHIN = 0.1


class Run:
    """A run: its draws, what they predict, and whether to believe them.

    Made by :func:`sample`, :func:`open` or the estimators. It can be pickled, with its draws.
    """

    def __init__(self, inner: _lib.Run) -> None:
        self._inner = inner
        self._process = os.getpid()
        self._has_ended = False
        #: Whether it is read from its files.
        self._is_read = False
        #: Whether it was stopped in the process that pickled it.
        self._was_stopped = False
        self._predictor: _lib.Predictor | None = None

    # how it gets on

    @property
    def is_finished(self) -> bool:
        """Whether it has come to its end, was stopped or has failed."""
        self._has_ended = self._own().is_finished()
        return self._has_ended

    @property
    def is_stopped(self) -> bool:
        """Whether it was stopped before its end; the draws until then are there."""
        return self._was_stopped or self._own().is_stopped()

    @property
    def folder(self) -> Path | None:
        """The folder that it is in; None in memory."""
        folder = self._own().folder()
        return None if folder is None else Path(folder)

    @property
    def progress(self) -> Progress:
        """How it gets on."""
        return Progress(**self._own().progress())

    @property
    def notes(self) -> list[str]:
        """What was chosen for the data, and what there is to know of them."""
        notes = self._own().notes()
        # of a run that is read from its files they are with its data
        return self._inner.description()[2] if not notes and self._is_read else notes

    @property
    def settings(self) -> dict[str, Any]:
        """Its settings, every default written out, by section."""
        import tomllib

        return tomllib.loads(self._own().settings_toml())

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for its end, or for ``timeout`` seconds; whether it has ended.

        Raises ValueError for data or settings that were refused, RunError for a run that failed. Ctrl-C ends the waiting, not the run.
        """
        self._has_ended = self._own().wait(timeout)
        if self._has_ended:
            self._inner.check()
        return self._has_ended

    def stop(self, timeout: float | None = None) -> bool:
        """Stops it and waits for its end, or for ``timeout`` seconds; whether it has ended. The draws are kept."""
        self._own().stop()
        self._has_ended = self._inner.wait(timeout)
        return self._has_ended

    def resume(
        self,
        *,
        minutes: float | None = None,
        until: str | None = None,
        threads: int | None = None,
        wait: bool = True,
        progress: bool | Callable[[Progress], None] | None = None,
    ) -> Run:
        """Goes on with a run that was stopped, or with ``minutes`` or ``until`` beyond its end, as ``reprior resume``.

        A run in a folder goes on there; one in memory stays as it is, and a longer copy is returned. Ctrl-C stops it again and raises KeyboardInterrupt, whose
        attribute ``run`` it is.

        Raises ValueError for ``minutes`` and ``until`` that are refused, RunError for a run that is still going or fails.
        """
        minutes = None if minutes is None else float(minutes)
        run = Run(self._own().resume(minutes, until, threads))
        if wait:
            _wait_showing(run, progress)
        return run

    # what it says

    def summary(self) -> Summary:
        """Diagnostics, metrics and the verdict; of a run that is still going, of its draws so far."""
        return Summary.of_json(self._begun().summary_json())

    def loo(self) -> LeaveOneOut:
        """Leave-one-out cross-validation of the training rows, by PSIS or in closed form; densities in nats and the target's own units.

        Raises ValueError for a run that kept no log-likelihoods.
        """
        rows, log_densities, text = self._begun().loo()
        found = json.loads(text)
        names = ("elpd_loo", "se", "p_loo", "pareto_k_max", "rows_above_07")
        own = {name: found[name] for name in names}
        return LeaveOneOut(rows=rows, log_densities=log_densities, **own, all=found)

    def predict(self, X: Any, *, noise: bool = True) -> Prediction | ClassPrediction:
        """Predictions for new rows: a data frame with the columns of the training rows, or an array with them in order; for images an array of them.

        ``noise=False`` leaves the observation noise out: the uncertainty of the function itself. Computed in double precision.

        Raises ValueError for rows with other columns, or images of another size, than the run was made with, and for ``noise=False`` of classes.
        """
        predictor, data = self._predicting(X)
        names = predictor.output_names()
        if predictor.is_classification():
            if not noise:
                raise ValueError("noise=False has no meaning for class probabilities: leave it out")
            logarithms = predictor.log_probabilities(data)
            return ClassPrediction(np.exp(logarithms).reshape(-1, len(names)), names)
        moments = predictor.moments(data, not noise)
        return Prediction.of(moments, predictor.quantiles(data, [0.05, 0.5, 0.95], not noise), names)

    def report(self, path: str | os.PathLike[str] | None = None) -> str:
        """One HTML page that loads nothing: written to ``path``, whose name is returned; without one the page itself."""
        with tempfile.TemporaryDirectory() as place:
            folder = self.folder
            if folder is None:
                folder = Path(place) / "run"
                self._begun().save(folder)
            out = Path(place) / "report.html" if path is None else Path(path)
            _lib.Run.write_report(folder, out, self.folder is not None)
            return out.read_text(encoding="utf-8") if path is None else os.fspath(path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes all of it into a new folder, which :func:`open` and the program open. Raises ValueError where there is a run already."""
        self._begun().save(path)

    @property
    def draws(self) -> xarray.DataTree:
        """The draws as an xarray DataTree in ArviZ's groups: of a run in a folder read when they are used, of one in memory a copy of those that there are. Needs
        xarray and zarr."""
        import xarray

        if self.folder is not None:
            return xarray.open_datatree(self.folder / "draws.zarr", engine="zarr")
        from zarr.core.buffer import default_buffer_prototype
        from zarr.storage import MemoryStore

        buffer = default_buffer_prototype().buffer
        start = "draws.zarr/"
        files = self._begun().to_files(start).items()
        own = {name[len(start) :]: buffer.from_bytes(data) for name, data in files}
        return xarray.open_datatree(MemoryStore(own), engine="zarr")

    def __repr__(self) -> str:
        if self._is_elsewhere:
            return "<reprior.Run of the process that started it>"
        place = "in memory" if self.folder is None else f"in {str(self.folder)!r}"
        if not self.is_finished:
            return f"<reprior.Run {place}, {self.progress}>"
        return f"<reprior.Run {place}>"

    def _repr_html_(self) -> str:
        if not self.is_finished:
            return f"<p>{escape(repr(self))}</p>"
        try:
            summary = self.summary()
        except (ValueError, RuntimeError) as error:
            return f"<p>{escape(repr(self))}: {escape(str(error))}</p>"
        rows = "".join(
            f"<tr><td>{escape(check['name'])}</td><td>{escape(check['value'])}</td>"
            f"<td>{escape(check['meaning'])}</td><td>{escape(check['level'])}</td></tr>"
            for check in summary.verdict.checks
        )
        title = f"{summary.method}: {summary.chains} chains of {summary.draws} draws"
        return f"<p>{escape(title)}. <b>{escape(str(summary.verdict))}</b></p><table>{rows}</table>"

    def __reduce__(self) -> tuple[Any, ...]:
        if not self.is_finished:
            raise ValueError("the run is still going: wait for it or stop it before it is pickled")
        return _of_files, (self._begun().to_files(""), self.is_stopped)

    # inside

    @property
    def _is_elsewhere(self) -> bool:
        """Whether a fork may have left its thread behind, with what that held."""
        return os.getpid() != self._process and not self._has_ended

    def _own(self) -> _lib.Run:
        if self._is_elsewhere:
            raise _lib.RunError("the run goes on in the process that started it, not in this fork of it")
        return self._inner

    def _begun(self) -> _lib.Run:
        self._own().wait_for_start(None)
        self._inner.check()
        return self._inner

    def _predictor_now(self) -> _lib.Predictor:
        """What predicts, kept once the run has ended."""
        predictor = self._predictor
        if predictor is None:
            is_finished = self.is_finished
            predictor = self._begun().predictor()
            if is_finished:
                self._predictor = predictor
        return predictor

    def _predicting(self, X: Any) -> tuple[_lib.Predictor, list[_table.Column] | bytes]:
        """What predicts, and some rows as it takes them."""
        predictor = self._predictor_now()
        image = predictor.image()
        if image is not None:
            if not _images.is_images(X):
                raise ValueError("X is no array of images: the run takes images of {} x {} x {}".format(*image))
            return predictor, _images.archive(X)
        names = None
        if not _table.is_frame(X):
            array = np.asarray(X)
            names = predictor.columns()
            if array.ndim == 2 and array.shape[1] != len(names):
                # the training rows have those too that were left out
                encoding = json.loads(self._begun().description()[0]).get("encoding") or {"columns": []}
                whole = [column["column"] for column in encoding["columns"]]
                if array.shape[1] != len(whole):
                    raise ValueError(
                        f"X has {array.shape[1]} columns, but the run was made with {len(names)}: {_listed(names)}"
                    )
                names = whole
        return predictor, _table.inputs(X, names).columns


def _listed(names: list[str]) -> str:
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def _ended(inner: _lib.Run) -> Run:
    run = Run(inner)
    run._has_ended = run._is_read = True
    return run


def _of_files(files: dict[str, bytes], was_stopped: bool = False) -> Run:
    run = _ended(_lib.Run.from_files(files))
    run._was_stopped = was_stopped
    return run


def sample(
    X: Any = None,
    y: Any = None,
    *,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    or_resume: bool = False,
    checkpoint_seconds: float | None = None,
    threads: int | None = None,
    wait: bool = True,
    progress: bool | Callable[[Progress], None] | None = None,
    **settings: Any,
) -> Run:
    """Draws from the posterior of a network for the rows ``X`` with targets ``y``.

    ``X`` is a data frame, whose columns may be numbers, text, dates and categories with cells missing, or an array of two dimensions; ``y``
    a series or array, of several targets a frame or an array of two dimensions. An array of three or four dimensions is of images, with whole numbers
    in ``y`` for their classes. Instead of both, ``data="table.csv"`` names a file, as
    ``target="column"`` its target. Settings are those of ``reprior sample`` with underscores: ``method="nuts"``, ``network="fcn:64,64"``,
    ``noise=0.1``, ``minutes=10``, ``chains=4``, ``draws=500``, ``seed=1``, ``watch=100``.

    ``out`` is a folder for the run; without one it is in memory. A run that is there already is replaced with ``overwrite``, and gone on with by
    ``or_resume`` if its settings are the same. A run in a folder can go on after a crash from ``checkpoint_seconds`` before it, 10 unless given. ``threads``: one for each core unless given. ``wait=False`` returns while
    the run goes on. ``progress``: True shows a line, and a function is called with a :class:`Progress`, ten times a second; None shows a
    line where stderr is a terminal or a notebook.

    Ctrl-C stops the run, keeps the draws and raises KeyboardInterrupt, whose attribute ``run`` is the run.

    Raises ValueError for data and settings that are refused, TypeError for values of a wrong kind, RunError for a run that fails.
    """
    driving = {
        "out": out,
        "overwrite": overwrite,
        "or_resume": or_resume,
        "checkpoint_seconds": checkpoint_seconds,
        "threads": threads,
        "wait": wait,
        "progress": progress,
    }
    if X is None:
        if y is not None:
            raise TypeError("sample() has y but no X: give the inputs too")
        return _started(None, settings, **driving)
    if y is None:
        raise TypeError("sample() has X but no y: give the targets too")
    for name in ("data", "target", "ignore", "config"):
        if settings.get(name) is not None:
            raise TypeError(f"sample() has X and y, and `{name}`, which is of files: leave one of them out")
    data, settings = with_targets(X, y, settings)
    return _started(data, settings, **driving)


def with_targets(X: Any, y: Any, settings: dict[str, Any]) -> tuple[list[_table.Column] | bytes, dict[str, Any]]:
    """Images or a table with their targets, as the extension takes them, and what the settings are with them."""
    if not _images.is_images(X):
        return table_with_targets(_table.inputs(X), y, settings)
    if all(settings.get(name) is None for name in ("train", "test", "shuffle", "no_shuffle")):
        # as tables are: a share of the images tests, at random
        settings = {**settings, "shuffle": settings.get("seed") or 0}
    return _images.archive(X, y), settings


def sample_table(table: _table.Table, y: Any, settings: dict[str, Any], **driving: Any) -> Run:
    """The same of a table with its targets."""
    columns, settings = table_with_targets(table, y, settings)
    return _started(columns, settings, **driving)


def table_with_targets(table: _table.Table, y: Any, settings: dict[str, Any]) -> tuple[list[_table.Column], dict[str, Any]]:
    """The columns of a table and of its targets; the names of targets and of levels, and the task that they say, are added to the settings."""
    targets, task = _table.targets(y, table.names, settings.get("task"))
    rows = {len(values) for _, _, values in table.columns}
    lengths = {len(values) for _, _, values in targets}
    if rows and lengths and rows != lengths:
        raise ValueError(f"X has {rows.pop()} rows and y has {lengths.pop()}: give one target for each row")
    names = [name for name, _, _ in targets]
    for name in (*table.categorical, *names):
        if "," in name:
            raise ValueError(f"column `{name}` has a comma in its name, which separates names in settings: rename it")
    categorical = [*table.categorical, *_as_list(settings.get("categorical"))]
    settings = {**settings, "target": names, "categorical": categorical or None, "task": task}
    return [*table.columns, *targets], settings


def _started(
    data: list[_table.Column] | bytes | None,
    settings: dict[str, Any],
    *,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    or_resume: bool = False,
    checkpoint_seconds: float | None = None,
    threads: int | None = None,
    wait: bool = True,
    progress: bool | Callable[[Progress], None] | None = None,
    is_part: bool = False,
) -> Run:
    _check_or_resume(out, overwrite, or_resume)
    flags = to_flags(settings, "sample()")
    run = Run(_lib.Run.start(flags, data, absolute(out), overwrite, or_resume, checkpoint_seconds, _checked_threads(threads), is_part))
    if wait:
        _wait_showing(run, progress)
    else:
        with _stopping(run):
            run._inner.wait_for_start(None)
        run._inner.check()
    return run


def absolute(path: str | os.PathLike[str] | None) -> str | os.PathLike[str] | None:
    """A path that stays the same wherever the process goes."""
    return os.path.abspath(path) if path is not None and os.fspath(path) else path


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _check_or_resume(out: Any, overwrite: bool, or_resume: bool) -> None:
    if or_resume and (out is None or overwrite):
        raise TypeError("or_resume is for a run in a folder that is not overwritten: give out, and no overwrite")


def _checked_threads(threads: int | None) -> int | None:
    if threads is None:
        return None
    if isinstance(threads, bool) or not isinstance(threads, (int, np.integer)):
        raise TypeError(f"threads is {threads!r}: it must be a whole number")
    if threads < 1:
        raise ValueError(f"threads is {threads}: it must be at least 1")
    return int(threads)


class _stopping:
    """Stops a run where waiting for it is interrupted, and puts it into the exception."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None:
            return
        self.run._inner.stop()
        if isinstance(error, KeyboardInterrupt):
            # waits without looking at signals
            until = time.monotonic() + _STOP_WITHIN
            while not self.run._inner.is_finished() and time.monotonic() < until:
                time.sleep(0.005)
            error.run = self.run  # type: ignore[attr-defined]
            error.add_note("the run was stopped; its draws are in the exception's attribute `run`")


def _wait_showing(run: Run, progress: bool | Callable[[Progress], None] | None) -> None:
    """Waits for the end of a run, and shows how it gets on."""
    shown = Shown() if progress is True or progress is None and Shown.is_wanted() else None
    call = progress if callable(progress) else None
    with _stopping(run):
        if shown is None and call is None:
            run._inner.wait(None)
        try:
            while not run._inner.wait(_LOOK_EVERY):
                if shown is not None:
                    shown.update(run.progress)
                if call is not None:
                    call(run.progress)
            if call is not None:
                call(run.progress)
        finally:
            if shown is not None:
                shown.end()
    run._has_ended = True
    run._inner.check()


def merge(
    runs: Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    allow_gaps: bool = False,
    allow_overlaps: bool = False,
) -> Run:
    """Puts runs of other chains of the same posterior together into a run in the folder ``out``, as ``reprior merge``: the run that all of their
    chains would have been, byte for byte. They were made with different ``first_chain``.

    ``allow_gaps`` leaves out chains that no run has, ``allow_overlaps`` takes those that several have from the first.

    Raises ValueError for runs of other settings or data, runs that are not complete, chains that are missing or there twice.
    """
    return _ended(_lib.Run.merge(list(runs), out, overwrite, allow_gaps, allow_overlaps, shares_files=False))


def merge_parts(parts: Iterable[str | os.PathLike[str]], out: str | os.PathLike[str]) -> Run:
    """The run of all chains that there are, of runs that are removed afterwards: their draws need not be copied."""
    return _ended(_lib.Run.merge(list(parts), out, overwrite=False, allow_gaps=True, allow_overlaps=False, shares_files=True))


def open(path: str | os.PathLike[str]) -> Run | Density:  # noqa: A001 - the name of what it does
    """Opens the run in a folder: finished, stopped, or still going in another process, of which the draws so far are there.

    For this process it has ended, whatever another one does with it: ``summary().status`` says whether its draws are complete.

    That of a density of one's own (:func:`sample_density`) is opened as a :class:`Density`.

    Raises ValueError for a folder that is none of a run.
    """
    from reprior import _density

    if _density.is_density(path):
        return _density.opened(path)
    return _ended(_lib.Run.open(absolute(path)))
