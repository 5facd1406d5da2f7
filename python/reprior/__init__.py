"""Samples the posterior of Bayesian neural networks.

``BNNRegressor`` and ``BNNClassifier`` are estimators as scikit-learn's; ``sample`` makes a run with the settings of the program, and
``open`` opens one that was made before, and ``merge`` puts several together; ``sample_density`` samples a density of one's own. What needs scikit-learn, pandas, xarray
or zarr imports it where it is used, and not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from reprior._lib import RunError, __version__

if TYPE_CHECKING:
    from reprior._density import Density, sample_density
    from reprior._prediction import ClassPrediction, Prediction
    from reprior._progress import Progress
    from reprior._run import Run, merge, open, sample
    from reprior._summary import LeaveOneOut, Summary, Verdict
    from reprior.estimators import BNNClassifier, BNNRegressor, ConvergenceWarning

__all__ = [
    "BNNClassifier",
    "BNNRegressor",
    "ClassPrediction",
    "ConvergenceWarning",
    "Density",
    "LeaveOneOut",
    "Prediction",
    "Progress",
    "Run",
    "RunError",
    "Summary",
    "Verdict",
    "__version__",
    "merge",
    "open",
    "sample",
    "sample_density",
]

#: Modules of their own, with what they need.
_MODULES = ("distributed", "torch")
_PLACES = {
    "BNNClassifier": "estimators",
    "BNNRegressor": "estimators",
    "ClassPrediction": "_prediction",
    "ConvergenceWarning": "estimators",
    "Density": "_density",
    "LeaveOneOut": "_summary",
    "Prediction": "_prediction",
    "Progress": "_progress",
    "Run": "_run",
    "Summary": "_summary",
    "Verdict": "_summary",
    "merge": "_run",
    "open": "_run",
    "sample": "_run",
    "sample_density": "_density",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"reprior.{name}")
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'reprior' has no attribute {name!r}")
    value = getattr(import_module(f"reprior.{place}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
