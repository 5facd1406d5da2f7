"""Estimators as scikit-learn's: ``BNNRegressor`` and ``BNNClassifier``."""

from __future__ import annotations

import multiprocessing
import numbers
import os
import re
import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_consistent_length, check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import assert_all_finite, check_is_fitted, column_or_1d, validate_data

from reprior import _table
from reprior._run import Run, sample_table

if TYPE_CHECKING:
    import xarray

    from reprior._summary import Summary

__all__ = ["BNNClassifier", "BNNRegressor", "ConvergenceWarning"]

#: Training rows whose predictions are watched, to see whether chains agree.
_WATCHED = 100


class _BNN(BaseEstimator):
    """What both estimators have."""

    def __init__(
        self,
        hidden_layer_sizes: int | Sequence[int] | str = "auto",
        *,
        activation: str = "gelu",
        likelihood: str = "auto",
        noise: float | str | None = None,
        scales: str | None = None,
        method: str = "auto",
        budget: float | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        out: str | os.PathLike[str] | None = None,
        verbose: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.likelihood = likelihood
        self.noise = noise
        self.scales = scales
        self.method = method
        self.budget = budget
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.out = out
        self.verbose = verbose
        self.settings = settings

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # missing cells of inputs are filled in as in the program's tables
        tags.input_tags.allow_nan = True
        return tags

    # fitting

    def _inputs(self, X: Any, *, reset: bool) -> _table.Table:
        """The columns of rows: those of an array of numbers, or of a data frame as they are where they are not all numbers."""
        if _has_other_than_numbers(X):
            validate_data(self, X, reset=reset, skip_check_array=True)
            return _table.inputs(X)
        numbers_only = validate_data(
            self,
            X,
            reset=reset,
            dtype=np.float64,
            ensure_all_finite="allow-nan",
            ensure_min_samples=2 if reset else 1,
        )
        names = getattr(self, "feature_names_in_", None)
        names = None if names is None else [str(name) for name in names]
        return _table.inputs(numbers_only, names)

    def _sample(self, table: _table.Table, y: Any, task: str) -> None:
        """Makes the run, and says what speaks against believing it."""
        rows = len(y)
        settings = self._settings_of()
        others = {} if self.settings is None else self.settings
        if not isinstance(others, Mapping):
            raise TypeError(f"settings is {others!r}: it must be a dict, such as {{'draws': 200}}")
        for name, value in others.items():
            if name in ("task", "target") and value is not None:
                raise ValueError(f"`{name}` is in `settings`, and the estimator and y say it: leave it out")
            if settings.get(name) is not None:
                raise ValueError(f"`{name}` is given as a parameter and in `settings`: give it once")
            settings[name] = value
        # reduced inputs draw what new rows need beyond them for those rows together: predictions of a row would hang on the others
        settings.setdefault("input_reduction", "off")
        splits = ("train", "test", "shuffle", "no_shuffle")
        if not any(settings.get(name) is not None for name in splits):
            settings.setdefault("watch", min(rows, _WATCHED))
        self.run_: Run = sample_table(
            table,
            y,
            {**settings, "task": task},
            out=self.out,
            overwrite=self.out is not None,
            threads=self._threads(),
            progress=bool(self.verbose),
        )
        self.notes_: list[str] = self.run_.notes
        summary = self.run_.summary()
        against = [
            check
            for check in summary.verdict.checks
            if check["level"] in ("caution", "bad") and check["name"] != "weights"
        ]
        if against:
            found = "; ".join(f"{check['name']}: {check['value']}: {check['meaning']}" for check in against)
            advice = next((check["advice"] for check in against if check["advice"]), "")
            # an estimator has its time by its constructor
            advice = advice.replace("with `reprior resume RUN --minutes 10`", "with a larger `budget`")
            text = f"{summary.verdict} {found}{'; ' + advice if advice else ''}"
            warnings.warn(_in_python(text), ConvergenceWarning, stacklevel=3)

    def _settings_of(self) -> dict[str, Any]:
        return {
            "network": _network(self.hidden_layer_sizes),
            "activation": self.activation,
            "likelihood": None if self.likelihood == "auto" else self.likelihood,
            "noise": self.noise,
            "scales": self.scales,
            "method": None if self.method == "auto" else self.method,
            "minutes": None if self.budget is None else _seconds(self.budget) / 60.0,
            "seed": _seed(self.random_state),
        }

    def _threads(self) -> int | None:
        jobs = self.n_jobs
        if jobs is None:
            # the workers of joblib and their like share the machine
            return 1 if multiprocessing.parent_process() is not None else None
        if not isinstance(jobs, numbers.Integral) or isinstance(jobs, bool):
            raise TypeError(f"n_jobs is {jobs!r}: it must be a whole number or None")
        if jobs == 0:
            raise ValueError("n_jobs is 0: it must be at least 1, or negative to leave cores out")
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return max(1, cores + 1 + int(jobs)) if jobs < 0 else int(jobs)

    # what is known of a fit

    @property
    def summary_(self) -> Summary:
        """Diagnostics and the verdict."""
        check_is_fitted(self, "run_")
        return self.run_.summary()

    @property
    def inference_data_(self) -> xarray.DataTree:
        """The draws as an xarray DataTree in ArviZ's groups, read when they are used. Needs xarray and zarr."""
        check_is_fitted(self, "run_")
        return self.run_.draws

    def report_(self, path: str | os.PathLike[str] | None = None) -> str:
        """One HTML page on the fit: written to ``path``, whose name is returned; without one the page itself."""
        check_is_fitted(self, "run_")
        return self.run_.report(path)

    def _predicting(self, X: Any) -> tuple[Any, list[_table.Column]]:
        """What predicts, and the columns of some rows."""
        check_is_fitted(self, "run_")
        table = self._inputs(X, reset=False)
        return self.run_._predictor_now(), table.columns


class BNNRegressor(RegressorMixin, _BNN):
    """Bayesian neural network for real targets: the posterior is sampled, and predictions are means over it.

    All rows train; the chains' agreement is judged by their predictions for up to 100 of them, and how well left-out rows are predicted by
    leave-one-out cross-validation (``summary_``). Where something speaks against the predictions, ``fit`` warns with a
    ConvergenceWarning.

    Parameters
    ----------
    hidden_layer_sizes : "auto", int or sequence of int
        Units of the hidden layers; "auto" chooses by the data, () is a linear model.
    activation : str
        gelu, relu, erf, tanh, identity, leaky_relu(a) or sin.
    likelihood : str
        "auto", gaussian, gaussian-heteroscedastic, student-t, student-t-heteroscedastic or poisson.
    noise : None, float or str
        In units of the standardised target: a number, learn, learn-each, or (gaussian) auto; None chooses.
    scales : None or str
        Where the prior's scales come from: evidence, learn, learn-half-normal or none.
    method : str
        "auto", hmc-infinite, nuts, nngp (closed form), laplace, sgld, ...
    budget : None or float
        Seconds for chains, which draw as much as there is time for; None takes a minute at most, and ends as soon as the chains agree.
    random_state : None, int or RandomState
        The same number gives the same draws, if time does not cut them short.
    n_jobs : None or int
        Threads; None takes one for each core (one in worker processes), -1 all cores.
    out : None or path
        A folder for the run, which replaces an earlier run there; None keeps it in memory.
    verbose : bool
        Whether a line shows how the fit gets on.
    settings : None or dict
        Any other settings of ``reprior sample``, with underscores: ``{"warmup": 100, "draws": 200}``.

    Attributes
    ----------
    run_ : Run
        The run. ``summary_``, ``inference_data_`` and ``report_()`` are of it.
    notes_ : list of str
        What was chosen for the data.
    n_features_in_, feature_names_in_ :
        As of every estimator.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def fit(self, X: Any, y: Any) -> BNNRegressor:
        """Samples the posterior for rows ``X`` (array or data frame, cells may be missing) with targets ``y``: (rows,) or (rows, targets).

        Raises ValueError for data and settings that are refused, TypeError for values of a wrong kind, RunError for a run that fails. Ctrl-C stops the
        run and raises KeyboardInterrupt, whose attribute ``run`` has what was drawn.
        """
        if y is None:
            raise ValueError(_REQUIRES_Y.format(type(self).__name__))
        table = self._inputs(X, reset=True)
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y", estimator=self)
        check_consistent_length(X, y)
        self._is_flat = y.ndim == 1
        self._sample(table, y, "regression")
        return self

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Means; with ``return_std`` also standard deviations, with ``return_cov`` covariances between rows, the observation noise included.

        Shapes are those of GaussianProcessRegressor: (rows,) or (rows, targets), covariances (rows, rows) or (rows, rows, targets). The
        variances are exact sums over draws; correlations between rows are of the functions that draws are.

        Raises ValueError for rows that the estimator was not fitted to, NotFittedError before ``fit``.
        """
        if return_std and return_cov:
            raise RuntimeError("At most one of return_std or return_cov can be requested.")
        predictor, columns = self._predicting(X)
        mean, sd = (self._shaped(values) for values in predictor.moments(columns, False))
        if return_std:
            return mean, sd
        if not return_cov:
            return mean
        _, function_sd = predictor.moments(columns, True)
        outputs = len(predictor.output_names())
        shape = (-1, outputs)
        covariances = _covariances(
            self._joint(predictor, columns), function_sd.reshape(shape), np.reshape(sd, shape)
        )
        return mean, covariances[:, :, 0] if self._is_flat else covariances

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Targets drawn for all rows together, noise included: (rows, samples), of several targets (rows, targets, samples).

        Each sample has the function of one draw, chosen at random, so that there are as many functions as draws were kept; of a
        method in closed form every function is new.
        """
        random = check_random_state(random_state)
        predictor, columns = self._predicting(X)
        functions, noise, covariance = self._joint(predictor, columns)
        found = _targets_of(functions, noise, covariance, n_samples, random, predictor.likelihood())
        found = np.moveaxis(found, 0, -1)
        return found[:, 0, :] if self._is_flat else found

    def predict_quantiles(self, X: Any, alpha: float | Sequence[float]) -> np.ndarray:
        """Quantiles at ``alpha``, one probability or several: (rows, probabilities), without the last axis for one number; of several targets
        (rows, targets, probabilities). Raises ValueError for probabilities that are not between 0 and 1."""
        alphas = np.atleast_1d(np.asarray(alpha, dtype=np.float64))
        if not ((alphas > 0) & (alphas < 1)).all():
            raise ValueError(f"alpha is {alpha!r}: probabilities are between 0 and 1")
        predictor, columns = self._predicting(X)
        outputs = len(predictor.output_names())
        found = predictor.quantiles(columns, alphas.tolist(), False).reshape(-1, outputs, len(alphas))
        found = found[:, 0, :] if self._is_flat else found
        return found[..., 0] if np.ndim(alpha) == 0 else found

    def predict_interval(self, X: Any, coverage: float = 0.9) -> np.ndarray:
        """The central interval that has the target with probability ``coverage``: (rows, 2), of several targets (rows, targets, 2)."""
        if not 0 < coverage < 1:
            raise ValueError(f"coverage is {coverage!r}: it must be between 0 and 1")
        return self.predict_quantiles(X, [(1 - coverage) / 2, (1 + coverage) / 2])

    def log_predictive_density(self, X: Any, y: Any) -> np.ndarray:
        """The logarithm of the predictive density of each row's target (all targets of a row together), in nats and the target's own units.

        Raises ValueError for another number of rows or targets.
        """
        predictor, columns = self._predicting(X)
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y", estimator=self)
        check_consistent_length(X, y)
        targets, own = len(predictor.output_names()), 1 if y.ndim == 1 else y.shape[1]
        if own != targets:
            raise ValueError(f"y has {own} target(s), and the estimator was fitted to {targets}: give as many")
        return predictor.log_densities(columns, np.ascontiguousarray(y).reshape(-1))

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values if self._is_flat else values.reshape(-1, len(self.run_._predictor_now().output_names()))

    def _joint(self, predictor: Any, columns: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Functions and squared noise scales (draws, rows, targets), and of a closed form the covariance (targets, rows, rows)."""
        draws, functions, noise, covariance = predictor.joint(columns)
        outputs = len(predictor.output_names())
        shape = (draws, -1, outputs)
        functions = functions.reshape(shape)
        if covariance is not None:
            rows = functions.shape[1]
            covariance = covariance.reshape(outputs, rows, rows)
        return functions, noise.reshape(shape), covariance


class BNNClassifier(ClassifierMixin, _BNN):
    """Bayesian neural network for classes: the posterior is sampled, and probabilities are means over it.

    Parameters and attributes are those of :class:`BNNRegressor`; likelihoods are bernoulli (the default of two classes), categorical (of
    more) and gaussian, which regresses on codes of the classes and has the closed form ``method="nngp"``. ``classes_`` are the classes.
    """

    def fit(self, X: Any, y: Any) -> BNNClassifier:
        """Samples the posterior for rows ``X`` (array or data frame, cells may be missing) with classes ``y``: (rows,), of any kind.

        Raises what :meth:`BNNRegressor.fit` raises, and ValueError where there is one class.
        """
        if y is None:
            raise ValueError(_REQUIRES_Y.format(type(self).__name__))
        table = self._inputs(X, reset=True)
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y")
        check_classification_targets(y)
        check_consistent_length(X, y)
        classes, labels = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                f"the target has a single class, `{classes[0]}`: there is nothing to tell apart; give records of the other classes as well"
            )
        self.classes_ = classes
        names = _names_of_classes(self.classes_)
        called = _numbers_of_classes(self.classes_) if names is None else np.array(names, dtype=object)
        self._sample(table, called[labels], "classification")
        # where each class is among the run's
        own = self.run_._predictor_now().output_names()
        if names is None:
            own = [float(name) for name in own]
        lost = [label for label, name in zip(self.classes_, called) if name not in own]
        if lost:
            # it cannot predict them
            del self.run_
            raise ValueError(
                f"the run has no row of the class `{lost[0]}`: leave out settings that drop its rows, such as missing='drop', or give more of them"
            )
        self._order = [own.index(name) for name in called]
        return self

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of probabilities, (rows, classes), in the order of ``classes_``."""
        predictor, columns = self._predicting(X)
        logarithms = predictor.log_probabilities(columns)
        return logarithms.reshape(-1, len(self.classes_))[:, self._order]

    def predict_proba(self, X: Any) -> np.ndarray:
        """Probabilities, (rows, classes), in the order of ``classes_``."""
        probabilities = np.exp(self.predict_log_proba(X))
        return probabilities / probabilities.sum(axis=1, keepdims=True)

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        logarithms = self.predict_log_proba(X)
        return self.classes_[logarithms.argmax(axis=1)]

    def log_predictive_density(self, X: Any, y: Any) -> np.ndarray:
        """The logarithm of the probability of each row's class, in nats. Raises ValueError for a class that no training row has."""
        logarithms = self.predict_log_proba(X)
        y = column_or_1d(y)
        check_consistent_length(X, y)
        at = np.searchsorted(self.classes_, y).clip(0, len(self.classes_) - 1)
        if not (self.classes_[at] == y).all():
            unknown = y[self.classes_[at] != y][0]
            raise ValueError(f"y has the class {unknown!r}, which no training row has: leave such rows out")
        return logarithms[np.arange(len(y)), at]


#: Text of a cell that is missing, as the program reads tables, which a class cannot be called.
_MISSING = {"?", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "nat", "null"}
_REQUIRES_Y = "requires y to be passed, but the target y is None: {} learns from targets"


def _has_other_than_numbers(X: Any) -> bool:
    """Whether this is a data frame with text, dates, categories, yes and no, or cells that arrays of numbers do not have."""
    if not _table.is_frame(X):
        return False
    if not hasattr(X, "iloc"):
        return True
    return any(getattr(dtype, "kind", "O") not in "iuf" for dtype in X.dtypes)


def _names_of_classes(classes: np.ndarray) -> list[str] | None:
    """What the run may call the classes; None where they would not be read back as they are: then they are numbered."""
    names = [str(name) for name in classes]
    are_plain = all(isinstance(name, str) and re.fullmatch(r"[^\W\d][\w .+/()-]*\w|[^\W\d]", name) for name in classes)
    are_words = not any(name.lower() in _MISSING for name in names)
    return names if are_plain and are_words and len(set(names)) == len(names) else None


#: A flag of the program, with the value that may follow it.
_FLAG = re.compile(r"--(?:(method|likelihood|noise) ([a-z][a-z0-9-]*)|([a-z][a-z-]*[a-z])(?: ([0-9]+(?:\.[0-9]+)?))?)")


def _in_python(text: str) -> str:
    """Flags of the program as settings: --chains 4 is chains=4."""

    def setting(found: re.Match[str]) -> str:
        name, word, other, number = found.groups()
        value = repr(word) if word else number
        return f"`{(name or other).replace('-', '_')}{'' if value is None else '=' + value}`"

    return _FLAG.sub(setting, text)


def _numbers_of_classes(classes: np.ndarray) -> np.ndarray:
    """Numbers in the order of the classes: they themselves where they are numbers, their places otherwise."""
    if classes.dtype.kind in "iuf":
        found = classes.astype(np.float64)
        if np.isfinite(found).all() and (np.diff(found) > 0).all():
            return found
    return np.arange(len(classes), dtype=np.float64)


def _network(sizes: int | Sequence[int] | str) -> str | None:
    if isinstance(sizes, str):
        # a network of the program's, such as `lenet`
        return None if sizes == "auto" else sizes
    if isinstance(sizes, numbers.Integral):
        sizes = [sizes]
    if not isinstance(sizes, (Sequence, np.ndarray)):
        raise TypeError(f"hidden_layer_sizes is {sizes!r}: it must be a whole number, or a list of them")
    sizes = list(sizes)
    if not all(isinstance(size, numbers.Integral) and size > 0 for size in sizes):
        raise ValueError(f"hidden_layer_sizes is {sizes!r}: units of layers are whole numbers, at least 1")
    return "fcn:" + ",".join(str(int(size)) for size in sizes) if sizes else "linear"


def _seconds(budget: Any) -> float:
    if not isinstance(budget, numbers.Real) or isinstance(budget, bool):
        raise TypeError(f"budget is {budget!r}: it must be a number of seconds")
    if not budget > 0:
        raise ValueError(f"budget is {budget!r}: it must be above 0, in seconds")
    return float(budget)


def _seed(random_state: Any) -> int:
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool) and random_state >= 0:
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


def _covariances(joint: tuple[np.ndarray, np.ndarray, Any], function_sd: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """(rows, rows, targets): the function's covariance and the noise's variances on its diagonal."""
    functions, _, closed = joint
    rows, outputs = function_sd.shape
    found = np.empty((rows, rows, outputs))
    for output in range(outputs):
        if closed is not None:
            covariance = closed[output].copy()
        else:
            deviations = functions[:, :, output] - functions[:, :, output].mean(axis=0)
            norms = np.sqrt((deviations**2).sum(axis=0))
            scaled = np.divide(deviations, norms, out=np.zeros_like(deviations), where=norms > 0)
            covariance = (scaled.T @ scaled) * np.outer(function_sd[:, output], function_sd[:, output])
        np.fill_diagonal(covariance, sd[:, output] ** 2)
        found[:, :, output] = covariance
    return found


def _targets_of(
    functions: np.ndarray,
    noise: np.ndarray,
    closed: np.ndarray | None,
    count: int,
    random: np.random.RandomState,
    likelihood: tuple[str, float | None],
) -> np.ndarray:
    """(samples, rows, targets): functions of draws chosen at random, with noise of the likelihood's law."""
    chosen = random.randint(len(functions), size=count)
    location, scale = functions[chosen], np.sqrt(noise[chosen])
    if closed is not None:
        location = location.copy()
        for output, covariance in enumerate(closed):
            values, vectors = np.linalg.eigh(covariance)
            root = vectors * np.sqrt(values.clip(min=0.0))
            location[:, :, output] += random.standard_normal((count, len(values))) @ root.T
    name, degrees_of_freedom = likelihood
    if name == "poisson":
        return random.poisson(location.clip(min=0.0)).astype(np.float64)
    if degrees_of_freedom is not None:
        return location + scale * random.standard_t(degrees_of_freedom, size=location.shape)
    return location + scale * random.standard_normal(location.shape)
