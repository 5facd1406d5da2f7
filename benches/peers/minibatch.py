"""Made-up rows of MNIST's shape and a network 784-400-400-10, the same for all peers."""

import numpy as np

ROWS, BATCH, STEP_SIZE = 60_000, 100, 0.01
SIZES = [784, 400, 400, 10]


def rows():
    """Inputs, as many of which are zero as of MNIST's pixels, and labels."""
    generator = np.random.default_rng(0)
    inputs = generator.normal(size=(ROWS, SIZES[0])).astype(np.float32)
    inputs = np.maximum(inputs, np.float32(0.88)) - np.float32(0.88)
    return inputs, (np.arange(ROWS) % SIZES[-1]).astype(np.int64)


def parameters():
    """Weights of variance 1/inputs, inputs × outputs, and biases of zero."""
    generator = np.random.default_rng(1)
    made = []
    for inputs, outputs in zip(SIZES, SIZES[1:]):
        weight = generator.normal(size=(inputs, outputs)) * inputs**-0.5
        made += [weight.astype(np.float32), np.zeros(outputs, np.float32)]
    return made


def orders():
    """Rows of each batch of an epoch, a new order each time."""
    generator = np.random.default_rng(2)
    while True:
        yield generator.permutation(ROWS).reshape(-1, BATCH)


def arguments(parser):
    parser.add_argument("method", choices=["sgd", "adam"])
    return parser.parse_args()
