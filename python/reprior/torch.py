"""Posteriors around networks that torch has trained, or Keras.

``Laplace`` has the words of laplace-torch; ``sample`` starts chains at a trained network. Both take a network of layers that the program knows, one
after another or in branches that are added up, and name the one that it does not. A ``Sequential`` of Keras is taken where its layers are dense. torch itself is needed for nothing but the network and the tensors that come back.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from reprior import _images, _table
from reprior._keras import LINKS
from reprior._network import Described, described
from reprior._run import Run, _started, sample_table

__all__ = ["Laplace", "sample"]

_LIKELIHOODS = ("classification", "regression")
_PREDICTIONS = ("glm", "nn")
_LINKS = ("probit", "bridge", "mc")
_SUBSETS = {"all": "all", "last_layer": "last-layer"}
#: Methods that begin at all weights of a network.
_MINIBATCHES = ("sgld", "sghmc", "sgnht", "map", "dropout", "swag")


class Laplace:
    """A Laplace approximation around a trained network, as laplace-torch has it.

    Parameters
    ----------
    model : torch.nn.Module
        The trained network, an ``nn.Sequential`` or a residual network, or a ``Sequential`` of dense layers of Keras; its outputs are logits for classes (of
        Keras a softmax at the end is left out).
    likelihood : str
        "classification" (with one output, the logit of the second, of two classes) or "regression".
    subset_of_weights : str
        "all" or "last_layer".
    hessian_structure : str
        "kron" (with the bias as one more input of its layer), "kron-separate" (biases as blocks of their own: laplace-torch's "kron"), "full", "diag" or
        "lowrank" with ``rank``.
    prior_precision : float
        Of a Gaussian prior on every weight.
    sigma_noise : float
        Standard deviation of the observation noise of a regression, in the target's own units.
    settings : dict
        Other settings of ``reprior sample``, with underscores: ``{"rank": 200, "curvature_rows": 1000}``.
    """

    def __init__(
        self,
        model: Any,
        likelihood: str,
        *,
        subset_of_weights: str = "last_layer",
        hessian_structure: str = "kron",
        prior_precision: float = 1.0,
        sigma_noise: float = 1.0,
        settings: dict[str, Any] | None = None,
    ) -> None:
        for name, value, known in (
            ("likelihood", likelihood, _LIKELIHOODS),
            ("subset_of_weights", subset_of_weights, _SUBSETS),
        ):
            if value not in known:
                raise ValueError(f"{name} is {value!r}: it must be {' or '.join(repr(one) for one in known)}")
        self.model = model
        self.likelihood = likelihood
        self.subset_of_weights = subset_of_weights
        self.hessian_structure = hessian_structure
        self.prior_precision = prior_precision
        self.sigma_noise = sigma_noise
        self.settings = dict(settings or {})
        self._data: tuple[np.ndarray, np.ndarray] | None = None
        self._network: Described | None = None
        #: Runs by their settings, so that what is set anew is computed anew.
        self._runs: dict[str, Run] = {}

    def fit(self, train_loader: Any, y: Any = None) -> Laplace:
        """Takes the training data: a loader of batches (inputs, targets), or two arrays or tensors, and computes the curvature.

        Raises TypeError for a network with a layer that the program does not know, which it names; ValueError for data that do not go with it.
        """
        self._data = _data(train_loader, y)
        # the weights as they are now
        self._network = described(self.model)
        self._runs = {}
        self._run()
        return self

    def optimize_prior_precision(
        self,
        method: str = "marglik",
        *,
        val_loader: Any = None,
        pred_type: str = "glm",
        link_approx: str = "probit",
        log_prior_prec_min: float = -4.0,
        log_prior_prec_max: float = 4.0,
        grid_size: int = 21,
    ) -> None:
        """Sets ``prior_precision``: to the one with the largest marginal likelihood ("marglik"), or to that of a grid ("gridsearch") under which the
        data of ``val_loader``, batches or a pair of arrays, have the lowest negative log-likelihood.

        The grid is of powers of ten from ``log_prior_prec_min`` to ``log_prior_prec_max``. Each of its points is a fit of its own.
        """
        if method == "marglik":
            found = self._fitted("optimize_prior_precision")._run(prior_precision="marglik")
            self.prior_precision = float(self._laplace(found)["prior_precision"][0])
            return
        if method != "gridsearch":
            raise ValueError(f"method is {method!r}: it must be 'marglik' or 'gridsearch'")
        if val_loader is None:
            raise ValueError("method='gridsearch' needs val_loader: data that did not train the network, as a loader or a pair (X, y)")
        if grid_size < 1:
            raise ValueError(f"grid_size is {grid_size}: it must be at least 1")
        self._fitted("optimize_prior_precision")
        X, y = _data(*val_loader) if isinstance(val_loader, tuple) else _data(val_loader, None)
        before, losses, runs = self.prior_precision, {}, self._runs
        try:
            for precision in np.logspace(log_prior_prec_min, log_prior_prec_max, grid_size):
                self.prior_precision, self._runs = float(precision), {}
                losses[self.prior_precision] = self._loss(X, y, pred_type, link_approx)
        finally:
            self.prior_precision, self._runs = before, runs
        self.prior_precision = min(losses, key=losses.__getitem__)

    def _loss(self, X: np.ndarray, y: np.ndarray, pred_type: str, link_approx: str) -> float:
        """The mean negative log-likelihood of rows."""
        found = self(X, pred_type=pred_type, link_approx=link_approx)
        if self.likelihood == "classification":
            chosen = np.asarray(found)[np.arange(len(y)), y.astype(int)]
            return float(-np.log(np.maximum(chosen, np.finfo(float).tiny)).mean())
        mean, variance = found
        total = np.reshape(variance, mean.shape) + self.sigma_noise**2
        residual = np.reshape(y, mean.shape) - mean
        return float(0.5 * (np.log(2 * np.pi * total) + residual**2 / total).mean())

    def log_marginal_likelihood(self) -> float:
        """Of the training rows, in nats."""
        return float(self._laplace(self._fitted("log_marginal_likelihood")._run())["log_marginal_likelihood"])

    @property
    def run(self) -> Run:
        """The run that was fitted last: its summary, its report."""
        return self._fitted("run")._run()

    def __call__(self, x: Any, pred_type: str = "glm", link_approx: str = "probit") -> Any:
        """Predictions for inputs, as tensors if ``x`` is one.

        Of classes their probabilities (rows, classes); of a regression the mean (rows, outputs) and the variance of the function, without the noise,
        (rows, 1, 1) of one output and (rows, outputs) of several. ``pred_type`` is "glm" (the linearised network, in closed form) or "nn" (draws of
        weights); ``link_approx``, of classes in closed form, "probit", "bridge" or "mc".

        Raises ValueError before ``fit``, for other words, and for inputs of another size than the training data's.
        """
        is_classes = self.likelihood == "classification"
        for name, value, known in (("pred_type", pred_type, _PREDICTIONS), ("link_approx", link_approx, _LINKS)):
            if value not in known:
                raise ValueError(f"{name} is {value!r}: it must be {' or '.join(repr(one) for one in known)}")
        choices: dict[str, Any] = {}
        if pred_type != "glm":
            choices["pred_type"] = pred_type
        elif is_classes and link_approx != "probit":
            choices["link_approx"] = link_approx
        run = self._fitted("a prediction")._run(**choices)
        inputs = _array(x)
        inputs = _last_channels(inputs)
        found = run.predict(inputs, **({} if is_classes else {"noise": False}))
        if is_classes:
            return _like(x, found.probabilities)
        rows = len(inputs)
        mean, variance = np.reshape(found.mean, (rows, -1)), np.reshape(found.sd, (rows, -1)) ** 2
        if mean.shape[1] == 1:
            variance = variance[:, :, None]
        return _like(x, mean), _like(x, variance)

    # inside

    def _fitted(self, what: str) -> Laplace:
        if self._data is None:
            raise ValueError(f"{what} needs data: call fit(train_loader) first")
        return self

    def _laplace(self, run: Run) -> dict[str, Any]:
        return run.summary().all["minibatch"]["laplace"][0]

    def _run(self, **choices: Any) -> Run:
        """The run with these choices, made once."""
        assert self._data is not None and self._network is not None
        settings: dict[str, Any] = {
            "method": "laplace",
            "likelihood": _named(self.likelihood, self._network.outputs),
            "hessian_structure": self.hessian_structure,
            "subset_of_weights": _SUBSETS[self.subset_of_weights],
            "parametrisation": "standard",
            "prior_precision": self.prior_precision,
            "epochs": 0,
            "precision": "f64",
            **choices,
            **self.settings,
        }
        if self.likelihood == "regression":
            settings["noise"] = self.sigma_noise
        # in the words of this class
        instead = {_named(word, self._network.outputs): word for word in _LIKELIHOODS}
        _check_link(self._network.link, settings["likelihood"], instead)
        key = repr(sorted(settings.items()))
        if key not in self._runs:
            self._runs[key] = _made(self._network, *self._data, settings, "weights", threads=None, progress=False)
        return self._runs[key]


def sample(
    model: Any,
    X: Any,
    y: Any,
    *,
    likelihood: str | None = None,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    checkpoint_seconds: float | None = None,
    threads: int | None = None,
    progress: Any = None,
    **settings: Any,
) -> Run:
    """Draws from the posterior of the network that ``model`` is, beginning at its weights.

    ``out``, ``overwrite``, ``checkpoint_seconds``, ``threads``, ``progress`` and ``settings`` are those of :func:`reprior.sample`. Chains on all data (the default) begin at the weights below the readout, those on minibatches
    (``method="sgld"``) at all of them. Inputs and targets are taken as they are. ``likelihood`` goes with the outputs if it is left open: gaussian, or
    gaussian-heteroscedastic where there are two outputs for each target; categorical for whole numbers, bernoulli with one output. A softmax or sigmoid at the end of a network of
    Keras is left out where the likelihood is categorical or bernoulli, and refused otherwise.
    """
    for name in ("network", "activation", "start", "weights"):
        if settings.get(name) is not None:
            raise TypeError(f"sample() has a model, and `{name}`, which the model says: leave it out")
    network = described(model)
    inputs, targets = _data(X, y)
    likelihood = likelihood or _likelihood(network.outputs, targets)
    _check_link(network.link, likelihood, {name: name for name in LINKS.values()})
    settings = {**settings, "likelihood": likelihood}
    start = "weights" if settings.get("method") in _MINIBATCHES else "start"
    driving = {"out": out, "overwrite": overwrite, "checkpoint_seconds": checkpoint_seconds, "threads": threads, "progress": progress}
    if inputs.ndim != 2:
        return _made(network, inputs, targets, settings, start, **driving)
    # of a table some rows can be watched, to see whether chains agree
    if all(settings.get(name) is None for name in ("train", "test", "shuffle", "no_shuffle")):
        settings.setdefault("watch", min(100, len(inputs)))
    with _files(network, settings, start) as own:
        return sample_table(_table.inputs(inputs), targets, own, **driving)


def _likelihood(outputs: int, y: np.ndarray) -> str:
    """The one that goes with so many outputs and such targets."""
    if y.dtype.kind in "iub":
        return "bernoulli" if outputs == 1 else "categorical"
    targets = 1 if y.ndim == 1 else y.shape[1]
    return "gaussian-heteroscedastic" if outputs == 2 * targets else "gaussian"


def _named(word: str, outputs: int) -> str:
    """What the program calls a likelihood of :class:`Laplace`, of a network with so many outputs."""
    if word == "regression":
        return "gaussian"
    return "bernoulli" if outputs == 1 else "categorical"


def _check_link(link: str | None, likelihood: str, instead: dict[str, str]) -> None:
    """Refuses an activation at a network's end that the likelihood does not have. ``instead`` has what a user calls likelihoods that can be chosen."""
    if link is None or LINKS[link] == likelihood:
        return
    chosen = instead.get(LINKS[link])
    raise ValueError(
        f"the network ends with {link}, which the {likelihood} likelihood does not have: "
        f"take it off the network{'' if chosen is None else f', or use likelihood={chosen!r}'}"
    )


def _made(network: Described, X: np.ndarray, y: np.ndarray, settings: dict[str, Any], start: str, **driving: Any) -> Run:
    """A run of a network on data that all train, beginning at its weights."""
    likelihood = settings.get("likelihood")
    classes = len(np.unique(y))
    if likelihood == "categorical" and classes != network.outputs:
        raise ValueError(f"y has {classes} classes and the network {network.outputs} outputs: every class must be among the training rows")
    if likelihood == "bernoulli" and classes != 2:
        raise ValueError(
            f"y has {classes} {'class' if classes == 1 else 'classes'} and the network 1 output, which is of two classes: both must be among the training "
            "rows, and more take one output each"
        )
    with _files(network, settings, start) as own:
        return _started(_images.archive(_last_channels(X), y, ("x_train", "y_train")), own, **driving)


@contextmanager
def _files(network: Described, settings: dict[str, Any], start: str) -> Iterator[dict[str, Any]]:
    """The settings with the network's files, which are there while the run is made; it keeps what it needs of them."""
    likelihood = settings["likelihood"]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "network.toml").write_text(network.toml, encoding="utf-8")
        (place / "network.safetensors").write_bytes(network.weights)
        yield {
            "standardise": "off",
            **network.settings,
            **settings,
            # whole numbers may be both
            "task": "classification" if likelihood in LINKS.values() else "regression",
            "network": place / "network.toml",
            start: place / "network.safetensors",
        }


def _data(X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    if y is not None:
        return _array(X), _targets(_array(y))
    if not isinstance(X, Iterable):
        raise TypeError("the training data are neither a loader nor arrays: give a loader of batches (inputs, targets), or X and y")
    batches = [(_array(inputs), _array(targets)) for inputs, targets in X]
    if not batches:
        raise ValueError("the loader has no batches")
    inputs, targets = (np.concatenate(parts) for parts in zip(*batches))
    return inputs, _targets(targets)


def _targets(y: np.ndarray) -> np.ndarray:
    """One output on one axis."""
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def _array(values: Any) -> np.ndarray:
    if hasattr(values, "detach"):
        values = values.detach().cpu().numpy()
    return np.asarray(values)


def _last_channels(X: np.ndarray) -> np.ndarray:
    """Images of torch have their channels first.

    Raises ValueError for those of which the program would take the rows for channels.
    """
    if X.ndim != 4:
        return X
    _, channels, height, width = X.shape
    if height <= 4 and channels > 4:
        raise ValueError(
            f"X has images of {height} x {width} with {channels} channels: with more than 4 channels images must have more than 4 rows, "
            "or their rows are taken for channels"
        )
    return np.moveaxis(X, 1, -1)


def _like(x: Any, values: np.ndarray) -> Any:
    if not hasattr(x, "detach"):
        return values
    import torch

    return torch.as_tensor(values, dtype=x.dtype if x.dtype.is_floating_point else None, device=x.device)
