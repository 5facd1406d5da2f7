"""Networks of torch as the program takes them: a description layer by layer, and the weights as a safetensors file.

Nothing of torch is imported: modules are known by the names of their classes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: Modules that change nothing once a network is trained.
_NOTHING = ("Dropout", "Dropout1d", "Dropout2d", "Identity")
_KNOWN = (
    "Linear, Conv2d, BatchNorm1d, BatchNorm2d, ReLU, GELU (exact), Tanh, LeakyReLU, AvgPool2d, MaxPool2d, AdaptiveAvgPool2d(1), Flatten, "
    "Dropout, Identity and Sequential of these"
)


@dataclass
class Described:
    """A network: the text of its TOML description, the bytes of its weights, and the flags of its readout."""

    toml: str
    weights: bytes
    settings: dict[str, Any]
    outputs: int


@dataclass
class _Parts:
    layers: list[str] = field(default_factory=list)
    tensors: dict[str, np.ndarray] = field(default_factory=dict)


def described(model: Any) -> Described:
    """The description of an ``nn.Sequential``, in evaluation mode, whose last module with weights is a ``Linear``.

    Raises TypeError for a module that is not known, naming it, and ValueError for one whose settings are not.
    """
    modules = [(place, module) for place, module in _flat(model, "") if _name(module) not in _NOTHING]
    if not modules or _name(modules[-1][1]) != "Linear":
        last = f"{modules[-1][0]} ({_name(modules[-1][1])})" if modules else "nothing"
        raise ValueError(f"the network ends with {last}: the last module must be a Linear, whose outputs are logits or predictions")
    parts = _Parts()
    for index, (place, module) in enumerate(modules[:-1]):
        _add(parts, index, place, module)
    readout = modules[-1][1]
    _tensors(parts, len(modules) - 1, readout)
    return Described(
        toml="layers = [\n" + "".join(f"    {{ {layer} }},\n" for layer in parts.layers) + "]\n",
        weights=safetensors(parts.tensors),
        settings={
            "readout_weight_variance": 1,
            "readout_bias_variance": 0 if readout.bias is None else 1,
        },
        outputs=int(readout.out_features),
    )


def safetensors(tensors: dict[str, np.ndarray]) -> bytes:
    """Tensors in the format of safetensors: the length of a JSON header, the header, the numbers."""
    names = {"float32": "F32", "float64": "F64"}
    header, numbers, at = {}, [], 0
    for name, array in tensors.items():
        data = np.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": names[array.dtype.name], "shape": list(array.shape), "data_offsets": [at, at + len(data)]}
        numbers.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + b"".join(numbers)


def _name(module: Any) -> str:
    return type(module).__name__


def _flat(module: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Modules one after another, those of inner sequences in their places."""
    if _name(module) == "Sequential":
        for name, child in module.named_children():
            yield from _flat(child, f"{place}.{name}" if place else name)
    elif list(module.children()) or not place:
        raise TypeError(
            f"{place or 'the network'} is a {_name(module)}, whose order of layers is not known: give an nn.Sequential. Known are {_KNOWN}"
        )
    else:
        yield place, module


def _pair(value: Any) -> list[int]:
    return [int(one) for one in value] if isinstance(value, (tuple, list)) else [int(value)] * 2


def _add(parts: _Parts, index: int, place: str, module: Any) -> None:
    name = _name(module)

    def refuse(what: str) -> ValueError:
        return ValueError(f"{place} ({name}) has {what}, which is not known: known are {_KNOWN}")

    if name in ("ReLU", "Tanh", "GELU", "LeakyReLU"):
        if name == "GELU" and getattr(module, "approximate", "none") != "none":
            raise refuse(f"approximate={module.approximate!r}")
        function = f"leaky_relu({module.negative_slope})" if name == "LeakyReLU" else name.lower()
        parts.layers.append(f'type = "activation", function = "{function}"')
    elif name == "Linear":
        parts.layers.append(f'type = "dense", units = {module.out_features}, {_scale(module)}')
        _tensors(parts, index, module)
    elif name == "Conv2d":
        if module.groups != 1 or _pair(module.dilation) != [1, 1] or module.padding_mode != "zeros":
            raise refuse("groups, dilation or a padding_mode")
        size, stride = _pair(module.kernel_size), _pair(module.stride)
        padding = _padding(module.padding, size)
        if padding is None:
            raise refuse(f"padding={module.padding}")
        parts.layers.append(
            f'type = "convolution", channels = {module.out_channels}, size = {size}, stride = {stride}, padding = "{padding}", {_scale(module)}'
        )
        _tensors(parts, index, module)
    elif name in ("BatchNorm1d", "BatchNorm2d"):
        if not module.track_running_stats:
            raise refuse("no running statistics")
        _tensors(parts, index, module)
        # in the description too: chains on all data have its statistics
        mean, variance = (parts.tensors[f"{index}.{part}"].tolist() for part in ("running_mean", "running_var"))
        parts.layers.append(f'type = "batch-norm", epsilon = {module.eps!r}, mean = {mean}, variance = {variance}')
    elif name in ("AvgPool2d", "MaxPool2d"):
        if _pair(module.padding) != [0, 0] or module.ceil_mode or _pair(getattr(module, "dilation", 1)) != [1, 1]:
            raise refuse("padding, dilation or ceil_mode")
        stride = module.kernel_size if module.stride is None else module.stride
        kind = "average-pool" if name == "AvgPool2d" else "max-pool"
        parts.layers.append(f'type = "{kind}", size = {_pair(module.kernel_size)}, stride = {_pair(stride)}, padding = "valid"')
    elif name == "AdaptiveAvgPool2d":
        if _pair(module.output_size) != [1, 1]:
            raise refuse(f"output_size={module.output_size}")
        parts.layers.append('type = "global-average-pool"')
    elif name == "Flatten":
        if (module.start_dim, module.end_dim) != (1, -1):
            raise refuse("dimensions of its own")
        parts.layers.append('type = "flatten"')
    else:
        raise TypeError(f"{place} is a {name}, which is not known: known are {_KNOWN}")


def _padding(padding: Any, size: list[int]) -> str | None:
    if padding == "valid" or padding != "same" and _pair(padding) == [0, 0]:
        return "valid"
    if padding == "same":
        return "same"
    return "half" if all(size_ % 2 == 1 for size_ in size) and _pair(padding) == [size_ // 2 for size_ in size] else None


def _scale(module: Any) -> str:
    return f"scale = {{ weight = 1.0, bias = {0.0 if module.bias is None else 1.0} }}"


def _tensors(parts: _Parts, index: int, module: Any) -> None:
    for name, tensor in module.state_dict().items():
        if name == "num_batches_tracked":
            continue
        array = tensor.detach().cpu().numpy()
        parts.tensors[f"{index}.{name}"] = array if array.dtype == np.float64 else array.astype(np.float32)
