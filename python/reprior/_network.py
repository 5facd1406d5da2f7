"""Networks of torch, and dense ones of Keras, as the program takes them: a description layer by layer, and the weights as a safetensors file.

A sequence is read module by module, anything else as torch.fx traces it (``_graph``), where branches that are added up are allowed. Modules are known by
the names of their classes, so that a sequence needs nothing of torch.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reprior import _keras
from reprior._graph import Layer, Parallel, traced

#: Modules that change nothing once a network is trained.
_NOTHING = ("Dropout", "Dropout1d", "Dropout2d", "Identity")
_KNOWN = (
    "Linear, Conv2d, BatchNorm1d, BatchNorm2d, ReLU, GELU (exact), Tanh, LeakyReLU, AvgPool2d, MaxPool2d, AdaptiveAvgPool2d(1), Flatten, "
    "Dropout, Identity, Sequential of these, and sums of two branches of these"
)


@dataclass
class Described:
    """A network: the text of its TOML description, the bytes of its weights, the flags of its readout, and the activation that is left out after it."""

    toml: str
    weights: bytes
    settings: dict[str, Any]
    outputs: int
    link: str | None


@dataclass
class _Parts:
    layers: list[str] = field(default_factory=list)
    tensors: dict[str, np.ndarray] = field(default_factory=dict)


def described(model: Any) -> Described:
    """The description of a network, in evaluation mode, whose last module with weights is a ``Linear``.

    Raises TypeError for a module that is not known, naming it, and ValueError for one whose settings are not.
    """
    layers = _pruned(_flat(model))
    readout = layers[-1] if layers else None
    if not isinstance(readout, Layer) or _name(readout.module) != "Linear":
        last = "nothing" if readout is None else "a sum" if isinstance(readout, Parallel) else f"{readout.place} ({_name(readout.module)})"
        raise ValueError(f"the network ends with {last}: the last module must be a Linear, whose outputs are logits or predictions")
    parts = _Parts()
    _all(parts, layers[:-1], _names(layers[:-1]))
    blocks = any(_is_block(layer) for layer in layers)
    _tensors(parts, f"output_net.{len(layers)}" if blocks else str(len(layers) - 1), readout.module)
    return Described(
        toml="layers = [\n" + "".join(f"    {{ {layer} }},\n" for layer in parts.layers) + "]\n",
        weights=safetensors(parts.tensors),
        settings={
            "readout_weight_variance": 1,
            "readout_bias_variance": 0 if readout.module.bias is None else 1,
        },
        outputs=int(readout.module.out_features),
        link=_keras.link(model) if _keras.is_keras(model) else None,
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


def _flat(model: Any) -> list[Layer | Parallel]:
    """Layers one after another: a sequence's as they stand, those of anything else as they are traced."""
    if _keras.is_keras(model):
        return list(_keras.layers(model))
    return list(_sequence(model, "", {})) if _is_sequence(model) else traced(model, _KNOWN)


def _is_sequence(module: Any) -> bool:
    return _name(module) == "Sequential" and all(_is_sequence(child) or not list(child.children()) for child in module.children())


def _sequence(module: Any, place: str, weighted: dict[int, str]) -> Iterator[Layer]:
    """Its modules in order, and where each with weights was found, by its id."""
    # named_children() has a module that is used again only once
    for name, child in module._modules.items():
        if child is None:
            continue
        inner = f"{place}.{name}" if place else name
        if _name(child) == "Sequential":
            yield from _sequence(child, inner, weighted)
            continue
        if child.state_dict():
            before = weighted.setdefault(id(child), inner)
            if before != inner:
                raise TypeError(f"{inner} ({_name(child)}) is {before} again: layers that share their weights are not known")
        yield Layer(inner, child)


def _pruned(layers: list[Layer | Parallel]) -> list[Layer | Parallel]:
    """Without modules that change nothing."""
    kept: list[Layer | Parallel] = []
    for layer in layers:
        if isinstance(layer, Parallel):
            kept.append(Parallel([_pruned(branch) for branch in layer.branches]))
        elif _name(layer.module) not in _NOTHING:
            kept.append(layer)
    return kept


def _has_weights(layer: Layer | Parallel) -> bool:
    if isinstance(layer, Parallel):
        return any(_has_weights(inner) for branch in layer.branches for inner in branch)
    return bool(layer.module.state_dict())


def _is_block(layer: Layer | Parallel) -> bool:
    """Whether it is a sum with weights in its branches: without, nothing in the file is of it."""
    return isinstance(layer, Parallel) and _has_weights(layer)


def _names(layers: list[Layer | Parallel]) -> list[str]:
    """What the layers' tensors are called in the file: by their number, or, where there are blocks, before, in and after them."""
    blocks = [at for at, layer in enumerate(layers) if _is_block(layer)]
    if not blocks:
        return [str(at) for at in range(len(layers))]
    first, last = blocks[0], blocks[-1]
    between = [layer for layer in layers[first:last] if isinstance(layer, Layer) and _has_weights(layer)]
    if between:
        raise ValueError(
            f"{between[0].place} ({_name(between[0].module)}) stands between two sums: weights may be before the first, in the branches, and after the last"
        )
    names = []
    for at, _ in enumerate(layers):
        names.append(f"blocks.{blocks.index(at)}" if at in blocks else f"{'input' if at < first else 'output'}_net.{at}")
    return names


def _all(parts: _Parts, layers: list[Layer | Parallel], names: list[str]) -> None:
    for layer, name in zip(layers, names):
        if isinstance(layer, Layer):
            _add(parts, name, layer.place, layer.module)
            continue
        # of two branches the program takes the one with fewer layers for the shortcut
        branches = sorted(layer.branches, key=len)
        texts = []
        for branch, role in zip(branches, ("downsample", "net")):
            if any(isinstance(inner, Parallel) for inner in branch):
                raise ValueError("a branch has a sum in it: sums must stand one after another")
            own = _Parts(tensors=parts.tensors)
            _all(own, branch, [f"{name}.{role}.{at}" for at in range(len(branch))])
            texts.append("{ layers = [" + ", ".join(f"{{ {inner} }}" for inner in own.layers) + "] }")
        parts.layers.append(f'type = "parallel", branches = [{", ".join(texts)}]')


def _pair(value: Any) -> list[int]:
    return [int(one) for one in value] if isinstance(value, (tuple, list)) else [int(value)] * 2


def _add(parts: _Parts, own: str, place: str, module: Any) -> None:
    """A layer, whose tensors are called `own` in the file."""
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
        _tensors(parts, own, module)
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
        _tensors(parts, own, module)
    elif name in ("BatchNorm1d", "BatchNorm2d"):
        if not module.track_running_stats:
            raise refuse("no running statistics")
        _tensors(parts, own, module)
        # in the description too: chains on all data have its statistics
        mean, variance = (parts.tensors[f"{own}.{part}"].tolist() for part in ("running_mean", "running_var"))
        parts.layers.append(f'type = "batch-norm", epsilon = {module.eps!r}, mean = {mean}, variance = {variance}')
    elif name in ("AvgPool2d", "MaxPool2d"):
        if _pair(module.padding) != [0, 0] or module.ceil_mode or _pair(getattr(module, "dilation", 1)) != [1, 1]:
            raise refuse("padding, dilation or ceil_mode")
        if getattr(module, "divisor_override", None) is not None:
            raise refuse(f"divisor_override={module.divisor_override}")
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


def _tensors(parts: _Parts, own: str, module: Any) -> None:
    for name, tensor in module.state_dict().items():
        if name == "num_batches_tracked":
            continue
        array = tensor.detach().cpu().numpy() if hasattr(tensor, "detach") else np.asarray(tensor)
        parts.tensors[f"{own}.{name}"] = array if array.dtype == np.float64 else array.astype(np.float32)
