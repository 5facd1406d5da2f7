"""Modules with the names and attributes of torch's, as far as ``reprior.torch`` looks at them, so that its tests need no torch.

Their weights are sines, so that the same numbers can be made anywhere: ``golden/laplace_torch.py`` makes the same networks with torch.
"""

from types import SimpleNamespace

import numpy as np


def numbers(shape, phase, scale=1.0):
    """Numbers of moderate size: the sine of 1.7 times their index, and a phase."""
    count = int(np.prod(shape))
    return scale * np.sin(phase + 1.7 * np.arange(count)).reshape(shape)


class Tensor:
    def __init__(self, array):
        self._array = np.asarray(array)

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self._array


class Module:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)
        self._tensors = {}

    def children(self):
        return iter(())

    def named_children(self):
        return iter(())

    def state_dict(self):
        return {name: Tensor(array) for name, array in self._tensors.items()}


class Sequential(Module):
    """As torch's, children are each module once, under the first of its names."""

    def __init__(self, *modules):
        super().__init__()
        self._modules = {str(at): module for at, module in enumerate(modules)}

    def children(self):
        return (module for _, module in self.named_children())

    def named_children(self):
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module


class Linear(Module):
    def __init__(self, inputs, outputs, phase, bias=True):
        super().__init__(in_features=inputs, out_features=outputs, bias=None)
        self._tensors["weight"] = numbers((outputs, inputs), phase, 1.5 / np.sqrt(inputs))
        if bias:
            self.bias = self._tensors["bias"] = numbers((outputs,), phase + 0.5, 0.5)


class Conv2d(Module):
    def __init__(self, inputs, outputs, size, phase, stride=1, padding=0, **others):
        attributes = {"groups": 1, "dilation": (1, 1), "padding_mode": "zeros"} | others
        super().__init__(out_channels=outputs, kernel_size=(size, size), stride=(stride, stride), padding=padding, bias=True, **attributes)
        self._tensors["weight"] = numbers((outputs, inputs, size, size), phase, 1.5 / np.sqrt(inputs * size * size))
        self._tensors["bias"] = numbers((outputs,), phase + 0.5, 0.5)


class BatchNorm2d(Module):
    def __init__(self, channels, phase):
        super().__init__(eps=1e-5, track_running_stats=True)
        for at, name in enumerate(("weight", "bias", "running_mean")):
            self._tensors[name] = numbers((channels,), phase + at, 0.5) + (1.0 if name == "weight" else 0.0)
        self._tensors["running_var"] = 1.0 + numbers((channels,), phase + 3, 0.5)
        self._tensors["num_batches_tracked"] = np.array(7)


class Tanh(Module):
    pass


class ReLU(Module):
    pass


class Dropout(Module):
    pass


class Identity(Module):
    pass


class Softmax(Module):
    pass


class LSTM(Module):
    pass


class Flatten(Module):
    def __init__(self, start_dim=1):
        super().__init__(start_dim=start_dim, end_dim=-1)


class MaxPool2d(Module):
    def __init__(self, size):
        super().__init__(kernel_size=size, stride=size, padding=0, dilation=1, ceil_mode=False)


class AvgPool2d(Module):
    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None):
        super().__init__(kernel_size=kernel_size, stride=stride, padding=padding, ceil_mode=ceil_mode)
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override


class AdaptiveAvgPool2d(Module):
    def __init__(self, output_size):
        super().__init__(output_size=output_size)


def dense(outputs):
    """Three inputs, five units."""
    return Sequential(Linear(3, 5, 0.1), Tanh(), Dropout(), Sequential(Linear(5, 4, 0.2), Tanh()), Linear(4, outputs, 0.3))


def convolutions(outputs):
    """Images of 2 x 8 x 8."""
    return Sequential(
        Conv2d(2, 3, 3, 0.1, padding=1),
        BatchNorm2d(3, 0.4),
        ReLU(),
        MaxPool2d(2),
        Conv2d(3, 4, 3, 0.2, stride=2, padding=1),
        Tanh(),
        Flatten(),
        Linear(16, 6, 0.6),
        Tanh(),
        Linear(6, outputs, 0.3),
    )


class Node:
    """What torch.fx calls a node, from its words in golden/laplace_torch.json."""

    def __init__(self, name, op, target, args=(), kwargs=None):
        self.name, self.op, self.args, self.kwargs = name, op, tuple(args), kwargs or {}
        # of a function torch.fx has the function
        self.target = SimpleNamespace(__name__=target) if op == "call_function" else target


def nodes(recorded):
    """The nodes of a graph; where an argument is another node, its record is {"node": name}."""
    found = {}

    def value(own):
        if isinstance(own, dict) and own.keys() == {"node"}:
            return found[own["node"]]
        return [value(one) for one in own] if isinstance(own, list) else own

    for one in recorded:
        args, kwargs = value(one["args"]), {name: value(own) for name, own in one["kwargs"].items()}
        found[one["name"]] = Node(one["name"], one["op"], one["target"], args, kwargs)
    return list(found.values())


class Residual(Module):
    """A network that is no sequence: a stem, a block with nothing beside it, a block with a convolution beside it, a readout."""

    def __init__(self, outputs):
        super().__init__()
        self.parts = {
            "stem": Conv2d(2, 3, 3, 0.1, padding=1),
            "norm": BatchNorm2d(3, 0.4),
            "first": Conv2d(3, 3, 3, 0.7, padding=1),
            "first_norm": BatchNorm2d(3, 0.9),
            "second": Conv2d(3, 4, 3, 0.2, stride=2, padding=1),
            "third": Conv2d(4, 4, 3, 1.2, padding=1),
            "beside": Conv2d(3, 4, 1, 0.8, stride=2),
            "readout": Linear(4, outputs, 0.3),
        }

    def children(self):
        return iter(self.parts.values())

    def named_children(self):
        return self.parts.items()


def table(rows):
    """Inputs, real targets, classes."""
    X = 1.5 * numbers((rows, 3), 0.9)
    target = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * numbers((rows,), 2.1)
    return X, target, (np.abs(7 * X).sum(axis=1).astype(int)) % 3


def images(rows):
    """Images of two channels, which torch has first."""
    return numbers((rows, 2, 8, 8), 0.7)
