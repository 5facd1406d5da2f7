"""LeNet's weights and made-up pictures, the same for all peers.

Convolutions 5 x 5 of 6 and 16 channels without padding, each with tanh and a 2 x 2 maximum, then
120, 84 and 10 units: 44,426 parameters for 28 x 28 x 1. Weights of a convolution are height x width
x inputs x outputs, of a dense layer inputs x outputs; pictures are rows x height x width x channels
and are flattened in this order.
"""

import numpy as np

SHAPES = [
    (5, 5, 1, 6), (6,), (5, 5, 6, 16), (16,), (256, 120), (120,), (120, 84), (84,), (84, 10), (10,),
]  # fmt: skip
PARAMETERS = 44_426
OPERATIONS = ["outputs", "gradient", "gauss-newton"]


def parameters(seed):
    """Weights of variance 1/inputs and biases of variance 0.01."""
    generator = np.random.default_rng(seed)
    made = []
    for shape in SHAPES:
        scale = 0.1 if len(shape) == 1 else np.prod(shape[:-1]) ** -0.5
        made.append((scale * generator.normal(size=shape)).astype(np.float32))
    assert sum(array.size for array in made) == PARAMETERS
    return made


def pictures(rows):
    """Pictures and cotangents of their outputs."""
    generator = np.random.default_rng(rows)
    shapes = [(rows, 28, 28, 1), (rows, 10)]
    return [generator.normal(size=shape).astype(np.float32) for shape in shapes]


def batches(rows):
    """How many pictures at a time are worth a trial."""
    sizes = [size for size in (1000, 500, 250, 125) if rows % size == 0]
    return sizes or [rows]


def arguments(parser):
    parser.add_argument("operation", choices=OPERATIONS)
    parser.add_argument("--rows", type=int, default=128)
    return parser.parse_args()
