"""Networks that are not sequences, as torch.fx traces them: layers one after another, with sums of two branches among them.

What is read is a graph of calls. Functions that stand for a module (``torch.relu``, ``flatten``) become that module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class Layer:
    """A module, and what it is called in the network."""

    place: str
    module: Any


@dataclass
class Parallel:
    """A sum of two branches."""

    branches: list[list[Layer | Parallel]]


#: Functions and methods by their names, and the modules that do the same; arguments after the first, in this order, are the module's.
_FUNCTIONS = {
    "relu": ("ReLU", ("inplace",)),
    "relu_": ("ReLU", ()),
    "tanh": ("Tanh", ()),
    "gelu": ("GELU", ("approximate",)),
    "leaky_relu": ("LeakyReLU", ("negative_slope", "inplace")),
    "flatten": ("Flatten", ("start_dim", "end_dim")),
    "max_pool2d": ("MaxPool2d", ("kernel_size", "stride", "padding", "dilation", "ceil_mode", "return_indices")),
    "avg_pool2d": ("AvgPool2d", ("kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override")),
    "adaptive_avg_pool2d": ("AdaptiveAvgPool2d", ("output_size",)),
    "dropout": ("Identity", ("p", "training", "inplace")),
}
_SUMS = ("add", "iadd", "add_")


def traced(model: Any, known: str) -> list[Layer | Parallel]:
    """The layers of a network of torch. Raises TypeError where the order of layers cannot be seen, or is not one of layers and sums."""
    kind = type(model).__name__
    modes: list[tuple[Any, bool]] = []
    try:
        from torch import fx, nn

        # as it predicts; every module is in its own mode afterwards
        modes = [(module, module.training) for module in model.modules()]
        nodes = list(fx.symbolic_trace(model.eval()).graph.nodes)
    except Exception as error:
        raise TypeError(f"the network is a {kind}, whose order of layers cannot be traced ({error}). Known are {known}") from error
    finally:
        for module, mode in modes:
            module.training = mode
    return layers(nodes, dict(model.named_modules()), nn, known)


def layers(nodes: list[Any], modules: dict[str, Any], nn: Any, known: str) -> list[Layer | Parallel]:
    """The layers of a graph: from its one input to its output. ``nn`` has the modules that functions stand for."""
    inputs = [node for node in nodes if node.op == "placeholder"]
    if len(inputs) != 1:
        raise TypeError(f"the network takes {len(inputs)} inputs ({', '.join(node.name for node in inputs)}): it must take one")
    output = next(node for node in nodes if node.op == "output").args[0]
    if not hasattr(output, "op"):
        raise TypeError("the network returns more than one tensor: it must return one")
    graph = _Graph(nodes, modules, nn, known)
    return graph.between(inputs[0], output)


class _Graph:
    def __init__(self, nodes: list[Any], modules: dict[str, Any], nn: Any, known: str) -> None:
        self.order = {node.name: at for at, node in enumerate(nodes)}
        self.modules, self.nn, self.known = modules, nn, known
        self.used: set[str] = set()

    def between(self, start: Any, end: Any) -> list[Layer | Parallel]:
        """What is computed on the way from one node to another."""
        found: list[Layer | Parallel] = []
        node = end
        while node is not start:
            if _function(node) in _SUMS:
                one, other = self.summands(node)
                meeting = self.meeting(one, other)
                found.append(Parallel([self.between(meeting, one), self.between(meeting, other)]))
                node = meeting
            else:
                found.append(self.layer(node))
                node = node.args[0]
            if self.order[node.name] < self.order[start.name]:
                raise TypeError(f"{end.name} takes what was computed before {start.name}: branches must meet before they are added")
        return found[::-1]

    def summands(self, node: Any) -> tuple[Any, Any]:
        if len(node.args) != 2 or node.kwargs or not all(hasattr(one, "op") for one in node.args):
            raise TypeError(f"{node.name} is a sum that is not one of two branches")
        return node.args

    def meeting(self, one: Any, other: Any) -> Any:
        """The last node that both come from."""
        while one is not other:
            if self.order[one.name] > self.order[other.name]:
                one = self.before(one)
            else:
                other = self.before(other)
        return one

    def before(self, node: Any) -> Any:
        """The node that all of a node's ways back go through first."""
        if _function(node) in _SUMS:
            return self.meeting(*self.summands(node))
        if node.op == "placeholder" or not node.args or not hasattr(node.args[0], "op"):
            raise TypeError(f"{node.name} is computed from no layer: branches must begin at one")
        return node.args[0]

    def layer(self, node: Any) -> Layer:
        """The module that a node stands for."""
        if node.op == "call_module" and len(node.args) == 1 and not node.kwargs:
            module = self.modules[node.target]
            if module.state_dict() and node.target in self.used:
                raise TypeError(f"{node.target} ({type(module).__name__}) is used twice: layers that share their weights are not known")
            self.used.add(node.target)
            return Layer(node.target, module)
        name = _function(node)
        if name in ("view", "reshape") and _keeps_rows(node):
            return Layer(node.name, self.nn.Flatten())
        if name == "mean" and _axes(node) == [2, 3]:
            return Layer(node.name, self.nn.AdaptiveAvgPool2d(1))
        if name in _FUNCTIONS and node.args and hasattr(node.args[0], "op"):
            kind, own = _FUNCTIONS[name]
            arguments = {**dict(zip(own, node.args[1:])), **node.kwargs}
            arguments.pop("inplace", None)
            # more than there are names for would go unseen
            is_known = len(node.args) - 1 <= len(own) and not arguments.pop("return_indices", False)
            if name == "dropout":
                # what drops units when it predicts, too, is another network
                is_known = arguments.get("training", True) is False
                arguments = {}
            if kind == "Flatten":
                arguments = {"start_dim": 0, **arguments}
            if is_known and not any(hasattr(value, "op") for value in arguments.values()):
                return Layer(node.name, getattr(self.nn, kind)(**arguments))
        raise TypeError(f"the network computes {name or node.target} ({node.name}), which is not known. Known are {self.known}")


def _function(node: Any) -> str:
    """The name of a function or method that a node calls."""
    if node.op == "call_function":
        return getattr(node.target, "__name__", str(node.target))
    return node.target if node.op == "call_method" else ""


def _keeps_rows(node: Any) -> bool:
    """Whether ``x.view(x.size(0), -1)`` or the like is computed."""
    shape = node.args[1:]
    if len(shape) == 1 and isinstance(shape[0], (tuple, list)):
        shape = tuple(shape[0])
    if len(shape) != 2 or shape[1] != -1 or not hasattr(shape[0], "op"):
        return False
    rows = shape[0]
    if _function(rows) == "getitem" and rows.args[1] == 0:
        # x.shape[0], whose shape is that of anything: the number of rows is the same all along
        return _function(rows.args[0]) == "getattr" and rows.args[0].args[1] == "shape" or _function(rows.args[0]) == "size"
    return _function(rows) == "size" and rows.args[1:] == (0,)


def _axes(node: Any) -> list[int]:
    """Axes of a mean that leaves rows and channels."""
    axes = node.kwargs.get("dim", node.args[1] if len(node.args) == 2 else ())
    if node.kwargs.keys() - {"dim"} or not isinstance(axes, (tuple, list)):
        return []
    return sorted(axis % 4 for axis in axes)
