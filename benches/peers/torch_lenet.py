"""Times LeNet in PyTorch, single precision on all cores, and prints a line of JSON.

    python torch_lenet.py gradient --rows 128

Ways that are tried: pictures in PyTorch's two layouts, how many at a time, for the Gauss-Newton
product torch.func's or forward and reverse mode in one pass, all cores or one, and all but this
one pass through torch.compile.
"""

import functools

import torch
import torch.autograd.forward_ad as forward
from torch.func import jvp, vjp
from torch.nn.functional import conv2d, max_pool2d

import fastest
import lenet


def to_torch(arrays):
    """Weights in PyTorch's order, where pictures are flattened channel by channel."""
    made = []
    for index, array in enumerate(arrays):
        if array.ndim == 4:
            array = array.transpose(3, 2, 0, 1)
        elif index == 4:
            array = array.reshape(4, 4, 16, 120).transpose(3, 2, 0, 1).reshape(120, 256)
        elif array.ndim == 2:
            array = array.T
        made.append(torch.tensor(array.copy()))
    return tuple(made)


def from_torch(tensors):
    """The inverse of `to_torch`, as NumPy arrays."""
    made = []
    for index, tensor in enumerate(tensors):
        array = tensor.detach().numpy()
        if array.ndim == 4:
            array = array.transpose(2, 3, 1, 0)
        elif index == 4:
            array = array.reshape(120, 16, 4, 4).transpose(2, 3, 1, 0).reshape(256, 120)
        elif array.ndim == 2:
            array = array.T
        made.append(array)
    return made


def laid_out(tensor, layout):
    """Pictures and weights of convolutions in memory as `layout` says, others as they are."""
    if tensor.ndim < 4:
        return tensor
    return tensor.contiguous(memory_format=getattr(torch, layout))


def network(weights, x):
    """The outputs of LeNet."""
    first, first_bias, second, second_bias, *dense = weights
    x = max_pool2d(torch.tanh(conv2d(x, first, first_bias)), 2)
    x = max_pool2d(torch.tanh(conv2d(x, second, second_bias)), 2)
    x = torch.tanh(torch.addmm(dense[1], x.flatten(1), dense[0].T))
    x = torch.tanh(torch.addmm(dense[3], x, dense[2].T))
    return torch.addmm(dense[5], x, dense[4].T)


def curvature(outputs, tangent):
    """The softmax's Hessian times a tangent of its inputs."""
    p = torch.softmax(outputs, 1)
    return p * (tangent - (p * tangent).sum(1, keepdim=True))


def gradient(weights, x, cotangent, of=network):
    """Cotangents of the weights."""
    weights = [w.detach().requires_grad_() for w in weights]
    return torch.autograd.grad(of(weights, x), weights, cotangent)


def by_functions(weights, x, direction):
    """The Gauss-Newton product by torch.func."""
    outputs, pull_back = vjp(lambda w: network(w, x), weights)
    _, tangent = jvp(lambda w: network(w, x), (weights,), (direction,))
    return pull_back(curvature(outputs, tangent))[0]


def in_one_pass(weights, x, direction):
    """The same with both modes in one pass over the network."""
    weights = [w.detach().requires_grad_() for w in weights]
    with forward.dual_level():
        duals = [forward.make_dual(w, t) for w, t in zip(weights, direction)]
        outputs, tangent = forward.unpack_dual(network(duals, x))
        cotangent = curvature(outputs.detach(), tangent.detach())
        return torch.autograd.grad(outputs, weights, cotangent)


PRODUCTS = {"torch.func": by_functions, "one pass": in_one_pass}


def sums(function, pieces):
    """The sum over pieces of the rows."""
    total = None
    for piece in pieces:
        part = function(*piece)
        total = part if total is None else [a + b for a, b in zip(total, part)]
    return total


def operation(name, weights, images, cotangents, direction):
    """What makes an operation of a way."""

    def make(layout, size, product="torch.func", threads=None, compiled=False):
        if compiled and product == "one pass":
            raise ValueError("torch.compile takes forward mode only from torch.func")
        torch.set_num_threads(threads or fastest.cores())
        laid = tuple(laid_out(w, layout) for w in weights)
        pictures = torch.tensor(images.transpose(0, 3, 1, 2).copy())
        pictures = torch.split(laid_out(pictures, layout), size)
        cotangent = torch.split(torch.tensor(cotangents), size)
        whole = torch.compile if compiled else lambda function: function
        if name == "gradient":
            chosen = functools.partial(gradient, of=whole(network))
        else:
            chosen = whole(network if name == "outputs" else PRODUCTS[product])

        def outputs():
            with torch.no_grad():
                return [chosen(laid, x) for x in pictures]

        def derivative():
            seconds = cotangent if name == "gradient" else [direction] * len(pictures)
            return sums(lambda x, second: chosen(laid, x, second), zip(pictures, seconds))

        return outputs if name == "outputs" else derivative

    return make


def main():
    options = lenet.arguments(fastest.parser(__doc__))
    images, cotangents = lenet.pictures(options.rows)
    weights, direction = (to_torch(lenet.parameters(seed)) for seed in (0, 1))
    choices = {"layout": ["contiguous_format", "channels_last"]}
    choices |= {"size": lenet.batches(options.rows)}
    if options.operation == "gauss-newton":
        choices |= {"product": list(PRODUCTS)}
    choices |= {"threads": [fastest.cores(), 1], "compiled": [False, True]}
    make = operation(options.operation, weights, images, cotangents, direction)
    fastest.report(make, choices, options, ["torch"])


if __name__ == "__main__":
    main()
