"""What `laplace.py` compares: for each work the peers' scripts and arguments."""

import laplace_work as work

TITLES = {
    "fit-diagonal": "fit: diagonal",
    "fit-kron": "fit: Kronecker factors",
    "fit-last-layer": "fit: last layer, full",
    "linearised-kron": "linearised predictive: Kronecker factors",
    "linearised-diagonal": "linearised predictive: diagonal",
    "linearised-last-layer": "linearised predictive: last layer, full",
    "sampled-kron": f"predictive of {work.SAMPLES} samples: Kronecker factors",
    "sampled-diagonal": f"predictive of {work.SAMPLES} samples: diagonal",
    "sampled-last-layer": f"predictive of {work.SAMPLES} samples: last layer, full",
    "gauss-newton": "Gauss-Newton product",
    "gauss-newton-block": f"Gauss-Newton product, of {work.BLOCK} together",
    "lanczos": f"Lanczos, {work.RANK} products",
}
LAPLACE_TORCH = {
    "laplace-torch": ["torch_laplace.py", "laplace-torch"],
    "laplace-torch, BackPACK": ["torch_laplace.py", "backpack"],
}
CURVLINOPS = {"curvlinops": ["torch_laplace.py", "curvlinops"]}
PLAIN = {"PyTorch": ["torch_laplace.py", "torch"], "JAX": ["jax_lanczos.py"]}


def peers(name):
    """Scripts and their first arguments by the peers' names."""
    if name not in work.PRODUCTS:
        return LAPLACE_TORCH
    return PLAIN if name == "lanczos" else CURVLINOPS | PLAIN
