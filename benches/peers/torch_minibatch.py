"""Times an epoch of SGD or Adam in PyTorch, single precision, and prints a line of JSON.

    python torch_minibatch.py sgd

Ways that are tried: all cores or one, the optimiser's fused or foreach loop, and the forward pass
plain or through torch.compile. Batches are taken by index, without a DataLoader.
"""

import torch
from torch.nn.functional import cross_entropy, relu

import fastest
import minibatch


def outputs(weights, x):
    first, first_bias, second, second_bias, last, last_bias = weights
    x = relu(torch.addmm(first_bias, x, first))
    x = relu(torch.addmm(second_bias, x, second))
    return torch.addmm(last_bias, x, last)


def epochs(method):
    inputs, labels = (torch.from_numpy(array) for array in minibatch.rows())
    orders = minibatch.orders()
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam}[method]

    def make(threads=None, loop="foreach", compiled=False):
        torch.set_num_threads(threads or fastest.cores())
        weights = [torch.from_numpy(w).requires_grad_() for w in minibatch.parameters()]
        step = minibatch.STEP_SIZE if method == "sgd" else 1e-3
        optimiser = kind(weights, lr=step, **{loop: True})
        loss = lambda x, y: cross_entropy(outputs(weights, x), y)  # noqa: E731
        loss = torch.compile(loss) if compiled else loss

        def run():
            for batch in torch.from_numpy(next(orders)):
                optimiser.zero_grad(set_to_none=True)
                loss(inputs[batch], labels[batch]).backward()
                optimiser.step()

        return run

    return make


def main():
    options = minibatch.arguments(fastest.parser(__doc__))
    choices = {"threads": [None, 1], "loop": ["foreach", "fused"], "compiled": [False, True]}
    fastest.report(epochs(options.method), choices, options, ["torch"])


if __name__ == "__main__":
    main()
