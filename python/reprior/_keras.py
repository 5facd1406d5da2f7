"""Sequences of Keras as those of torch: dense layers, whose ``get_weights()`` are a kernel (inputs, units) and a bias.

Keras is not needed for it. Layers of images are not taken: flattened pixels are in another order there.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from reprior._graph import Layer

KNOWN = "Dense, ReLU, Activation and Dropout, with the activations linear, relu, tanh and gelu, and softmax or sigmoid at the end, one after another in a Sequential"
_NOTHING = ("Dropout", "GaussianDropout", "GaussianNoise", "InputLayer")
_MODULES = {"relu": "ReLU", "tanh": "Tanh", "gelu": "GELU"}
#: They make probabilities of the last layer's outputs, which these likelihoods do themselves.
LINKS = {"softmax": "categorical", "sigmoid": "bernoulli"}


class Linear:
    """A dense layer as torch has it."""

    def __init__(self, kernel: np.ndarray, bias: np.ndarray | None) -> None:
        self.out_features = kernel.shape[1]
        self.bias = bias
        self._tensors = {"weight": kernel.T, **({} if bias is None else {"bias": bias})}

    def state_dict(self) -> dict[str, np.ndarray]:
        """Its weights."""
        return self._tensors


def is_keras(model: Any) -> bool:
    """Whether it is a network of Keras."""
    return hasattr(model, "get_weights") and hasattr(model, "layers")


def layers(model: Any) -> list[Layer]:
    """The layers of a sequence. Raises TypeError for what is not known, naming it."""
    kind = type(model).__name__
    if kind != "Sequential":
        raise TypeError(f"the network is a {kind} of Keras: known are {KNOWN}")
    found: list[Layer] = []
    last = next((at for at in reversed(range(len(model.layers))) if type(model.layers[at]).__name__ not in _NOTHING), 0)
    for at, layer in enumerate(model.layers):
        name = type(layer).__name__
        place = f"layer {at} ({name})"
        function = "linear"
        if name in _NOTHING:
            continue
        if name == "Dense":
            kernel, *bias = layer.get_weights()
            found.append(Layer(place, Linear(np.asarray(kernel), np.asarray(bias[0]) if bias else None)))
            function = _function(layer)
        elif name == "Activation":
            function = _function(layer)
        elif name == "ReLU":
            if any(getattr(layer, setting, None) for setting in ("max_value", "negative_slope", "threshold")):
                raise TypeError(f"{place} has settings of its own, which are not known: known are {KNOWN}")
            function = "relu"
        else:
            raise TypeError(f"{place} is not known: known are {KNOWN}")
        if function in _MODULES:
            found.append(Layer(place, type(_MODULES[function], (), {"state_dict": lambda self: {}})()))
        elif function != "linear" and not (function in LINKS and at == last):
            raise TypeError(f"{place} has the activation {function!r}, which is not known: known are {KNOWN}")
    return found


def link(model: Any) -> str | None:
    """The activation at the end that :func:`layers` leaves out, if there is one."""
    last = next((layer for layer in reversed(model.layers) if type(layer).__name__ not in _NOTHING), None)
    name = _function(last) if hasattr(last, "activation") else None
    return name if name in LINKS else None


def _function(layer: Any) -> str:
    return getattr(layer.activation, "__name__", type(layer.activation).__name__)
