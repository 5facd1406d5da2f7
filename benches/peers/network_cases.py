"""What `networks.py` compares: for each case the peers' commands and reprior's benchmark."""

import dataclasses


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """Some rows of the table, one for each peer."""

    title: str
    rows: int
    peers: dict  # a script and its arguments by the peer's name
    bench: str
    name: str  # of the benchmark's case
    operation: str
    epoch: int = 0  # rows of an epoch, where there is one


def lenet(title, peers_operation, operation, rows, epoch=0):
    """A case of LeNet, with PyTorch and JAX."""
    flags = [peers_operation, "--rows", rows]
    peers = {"PyTorch": ["torch_lenet.py", *flags], "JAX": ["jax_lenet.py", *flags]}
    return Case(f"LeNet: {title}", rows, peers, "networks", "lenet", operation, epoch)


def kernels(title, peers_case, rows, name, operation):
    """A case of infinitely wide networks, with neural-tangents."""
    peers = {"neural-tangents": ["nt_kernels.py", peers_case]}
    return Case(title, rows, peers, "infinite", name, operation)


def epoch(operation, title=None):
    """A case of an epoch of minibatches of 100, with SGD in PyTorch and JAX."""
    peers = {"PyTorch": ["torch_minibatch.py", "sgd"], "JAX": ["jax_minibatch.py", "sgd"]}
    title = f"epoch, 784-400-400-10: {title or operation}"
    return Case(title, 60_000, peers, "minibatch", "784-400-400-10", operation)


GRADIENT = ("outputs and gradient", "gradient", "outputs and gradient")
PRODUCT = ("Gauss-Newton product", "gauss-newton", "Gauss-Newton product")
BOTH = "NNGP and NTK"
CASES = {
    "gradient-128": lenet(*GRADIENT, 128, 60_000),
    "gradient-1000": lenet(*GRADIENT, 1000),
    "product-1000": lenet(*PRODUCT, 1000),
    "product-10000": lenet(*PRODUCT, 10_000),
    "kernels-relu": kernels(f"{BOTH}: 3 × dense, relu", "relu", 1024, "3 × dense relu", BOTH),
    "kernels-erf": kernels(f"{BOTH}: 3 × dense, erf", "erf", 1024, "3 × dense erf", BOTH),
    "kernels-pool": kernels(
        "NNGP: 3 × convolution 3 × 3, relu, mean of 16 × 16", "pool", 64, "conv relu, pool", "NNGP"
    ),
    "sgd": epoch("SGD"),
    "quasi-diagonal": epoch("quasi-diagonal SGLD", "quasi-diagonal SGLD here, SGD there"),
}
