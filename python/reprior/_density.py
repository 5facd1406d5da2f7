"""Densities of one's own, as Python functions."""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reprior import _lib
from reprior._progress import Progress, Shown
from reprior._run import _LOOK_EVERY, _STOP_WITHIN, _check_or_resume, _checked_threads, absolute

if TYPE_CHECKING:
    import pandas
    import xarray


@dataclass(frozen=True)
class Density:
    """Draws of a density: ``draws`` are (chains, draws, dimensions). Rates and step sizes are of each chain after warm-up; ``is_stopped`` says that there are
    fewer draws than were asked for."""

    draws: np.ndarray = field(repr=False)
    names: list[str]
    acceptance_rate: list[float]
    step_size: list[float | None]
    divergences: list[int]
    n_gradients: int
    is_stopped: bool
    folder: Path | None = None

    def summary(self) -> dict[str, dict[str, float]]:
        """Of every dimension: mean, sd, mcse_mean, ess_bulk, ess_tail, r_hat."""
        parts = ("mean", "sd", "mcse_mean", "ess_bulk", "ess_tail", "r_hat")
        chains = len(self.draws)
        found = {}
        for at, name in enumerate(self.names):
            values = np.ascontiguousarray(self.draws[:, :, at]).reshape(-1)
            found[name] = dict(zip(parts, _lib.diagnose(values, chains)))
        return found

    def to_frame(self) -> pandas.DataFrame:
        """The summary with a row for each dimension. Needs pandas."""
        import pandas

        return pandas.DataFrame.from_dict(self.summary(), orient="index")

    def to_datatree(self) -> xarray.DataTree:
        """The draws as an xarray DataTree with the group ``posterior``, as ArviZ takes it. Needs xarray."""
        import xarray

        values = {"z": (("chain", "draw", "dimension"), self.draws)}
        posterior = xarray.Dataset(values, coords={"dimension": self.names})
        return xarray.DataTree.from_dict({"posterior": posterior})


def sample_density(
    logp_and_grad: Callable[[np.ndarray], tuple[float, Any]],
    dim: int,
    *,
    method: str = "nuts",
    relative: bool = False,
    chains: int = 4,
    warmup: int | None = None,
    draws: int | None = None,
    thin: int | None = None,
    seed: int = 0,
    threads: int | None = None,
    names: Sequence[str] | None = None,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    or_resume: bool = False,
    checkpoint_seconds: float | None = None,
    progress: bool | Callable[[Progress], None] | None = None,
    step_size: float | None = None,
    target_acceptance: float | None = None,
    energy_variance: float | None = None,
    damping: float | None = None,
    metropolis: bool = True,
    trajectory: float | None = None,
    max_steps: int | None = None,
    arrival: int | None = None,
    replicas: int = 0,
) -> Density:
    """Draws from a density of one's own by chains of the library.

    ``logp_and_grad`` gets a position, an array of ``dim`` numbers, and returns the logarithm of the density there, up to a constant, and
    its gradient. With ``relative`` the logarithm is that of the density divided by the standard normal's, which every method of the
    library is written for: pcn, elliptical and hmc-infinite are exact where it is constant. Positions start at draws of the standard normal, so
    that coordinates should be of order one.

    ``method``: nuts, hmc, hmc-infinite, mala, langevin, pcn, pcnl, elliptical, rwm, mams or mclmc. Lengths, and the settings of the sampler (from
    ``step_size`` on, which are those of ``reprior sample``), are the method's own unless given; ``replicas`` are copies of each chain at higher temperatures.

    ``out`` is a folder for the run, which ArviZ opens (``draws.zarr``) and :func:`reprior.open` too; without one it is in memory. ``overwrite``, ``or_resume`` - the same
    call again goes on with a run that was stopped or killed, to the same draws, if the function is the same -, ``checkpoint_seconds`` and ``progress`` are those of
    :func:`reprior.sample`.

    The function is called by threads in turn. Ctrl-C stops the chains and raises KeyboardInterrupt, whose attribute ``run`` has the draws that
    every chain has made; it does not wait for a function that takes long.

    Raises ValueError for settings that are refused, TypeError for values of a wrong kind and for a function that returns no pair, what the function raises, and RunError for a run that fails.
    """
    if not callable(logp_and_grad):
        raise TypeError(f"logp_and_grad is {logp_and_grad!r}: it must be a function")
    dim = _whole("dim", dim, 1)
    names = [f"z{at}" for at in range(dim)] if names is None else [str(name) for name in names]
    if len(names) != dim:
        raise ValueError(f"names has {len(names)} names, and there are {dim} dimensions: give one for each")
    _check_or_resume(out, overwrite, or_resume)
    out = absolute(out)
    settings = {
        "step_size": _real("step_size", step_size),
        "target_acceptance": _real("target_acceptance", target_acceptance),
        "energy_variance": _real("energy_variance", energy_variance),
        "damping": _real("damping", damping),
        "metropolis": bool(metropolis),
        "trajectory": _real("trajectory", trajectory),
        "max_steps": None if max_steps is None else _whole("max_steps", max_steps, 1),
        "arrival": None if arrival is None else _whole("arrival", arrival, 0),
        "replicas": _whole("replicas", replicas, 0),
    }
    chains, seed = _whole("chains", chains, 1), _whole("seed", seed, 0)
    asked = {"dimensions": names, "method": method, "relative": bool(relative), **settings, "chains": chains, "seed": seed}
    place = {
        "out": None if out is None else os.fspath(out),
        "overwrite": bool(overwrite),
        "or_resume": bool(or_resume),
        "checkpoint_seconds": _real("checkpoint_seconds", checkpoint_seconds),
        "names": names,
        # values as JSON has them are values of TOML
        "config": "[density]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in asked.items() if value is not None),
    }
    run = _lib.DensityRun.start(
        logp_and_grad,
        bool(relative),
        method,
        settings,
        place,
        chains,
        None if warmup is None else _whole("warmup", warmup, 0),
        None if draws is None else _whole("draws", draws, 1),
        None if thin is None else _whole("thin", thin, 1),
        seed,
        _checked_threads(threads),
    )
    folder = None if out is None else Path(out)
    process = os.getpid()
    shown = Shown() if progress is True or progress is None and Shown.is_wanted() else None
    call = progress if callable(progress) else None
    try:
        while not run.wait(_LOOK_EVERY if shown or call else None):
            now = Progress(**run.progress())
            if shown is not None:
                shown.update(now)
            if call is not None:
                call(now)
    except BaseException as stop:
        run.stop()
        if isinstance(stop, KeyboardInterrupt) and os.getpid() == process:
            run.wait(_STOP_WITHIN)
            stop.run = _drawn(run, names, True, folder)  # type: ignore[attr-defined]
        raise
    finally:
        if shown is not None:
            shown.end()
    run.check()
    return _drawn(run, names, False, folder)


def is_density(path: str | os.PathLike[str]) -> bool:
    """Whether a folder is one of a run of a density."""
    config = Path(path) / "config.toml"
    return config.is_file() and config.read_text(encoding="utf-8", errors="replace").startswith("[density]")


def opened(path: str | os.PathLike[str]) -> Density:
    """The draws in the folder of a run of a density."""
    asked = tomllib.loads((Path(path) / "config.toml").read_text(encoding="utf-8"))["density"]
    names = asked["dimensions"]
    path = os.path.abspath(path)
    found = _drawn(_lib.DensityRun.open(path, asked["chains"], len(names)), names, False, Path(path))
    return replace(found, is_stopped=found.draws.shape[1] < asked["draws"])


def _drawn(run: _lib.DensityRun, names: list[str], is_stopped: bool, folder: Path | None) -> Density:
    count, values = run.positions()
    rates, steps, divergences, gradients = run.statistics()
    return Density(
        draws=values.reshape(-1, count, len(names)) if count else np.empty((0, 0, len(names))),
        names=names,
        acceptance_rate=rates,
        step_size=steps,
        divergences=divergences,
        n_gradients=gradients,
        is_stopped=is_stopped,
        folder=folder,
    )


def _real(name: str, value: Any) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise TypeError(f"{name} is {value!r}: it must be a number")
    return float(value)


def _whole(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{name} is {value!r}: it must be a whole number")
    if value < least:
        raise ValueError(f"{name} is {value}: it must be at least {least}")
    return int(value)
