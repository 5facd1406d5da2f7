"""Times Laplace approximations of LeNet in PyTorch's libraries and prints a line of JSON.

    python torch_laplace.py laplace-torch fit-kron --rows 1000
    python torch_laplace.py backpack linearised-kron
    python torch_laplace.py curvlinops gauss-newton
    python torch_laplace.py torch lanczos

`laplace-torch` is that library with the backend it takes by itself, `backpack` the same library with
BackPACK's. Ways that are tried: how many pictures at a time; of products how they are made as well.
Predictives are fitted before they are timed, in small pieces, which need little memory.
"""

import functools
import sys

# laplace.py here is not the package of this name
sys.path.append(sys.path.pop(0))

import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.func import jvp, linearize, vjp, vmap  # noqa: E402

import fastest  # noqa: E402
import laplace_work as work  # noqa: E402
import lenet  # noqa: E402
import torch_lenet  # noqa: E402

PEERS = {
    "laplace-torch": ["torch", "laplace-torch", "curvlinops-for-pytorch"],
    "backpack": ["torch", "laplace-torch", "backpack-for-pytorch"],
    "curvlinops": ["torch", "curvlinops-for-pytorch"],
    "torch": ["torch"],
}
STRUCTURES = {
    "diagonal": ("all", "diag"), "kron": ("all", "kron"), "last-layer": ("last_layer", "full"),
}  # fmt: skip
FITTED_SIZE = 10


def module():
    """LeNet as a module, its weights in the order of `torch_lenet.to_torch`."""
    net = nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.Tanh(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.Tanh(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(256, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10),
    )  # fmt: skip
    with torch.no_grad():
        for parameter, weight in zip(net.parameters(), weights(), strict=True):
            parameter.copy_(weight)
    return net.eval()


def weights():
    return torch_lenet.to_torch(lenet.parameters(0))


class Rows:
    """Pictures and labels, so many at a time: a data loader without a loader's cost."""

    def __init__(self, rows, size):
        pictures, _ = lenet.pictures(rows)
        self.dataset = range(rows)
        self.pictures = torch.tensor(pictures.transpose(0, 3, 1, 2).copy()).split(size)
        self.labels = torch.tensor(work.labels(rows)).split(size)

    def __iter__(self):
        return zip(self.pictures, self.labels)


def approximation(structure, peer):
    """Of laplace-torch, not fitted."""
    from laplace import Laplace
    from laplace.curvature import BackPackGGN

    subset, hessian = STRUCTURES[structure]
    return Laplace(
        module(), "classification", subset_of_weights=subset, hessian_structure=hessian,
        prior_precision=work.PRIOR_PRECISION,
        **({"backend": BackPackGGN} if peer == "backpack" else {}),
    )  # fmt: skip


def fitting(structure, peer, rows):
    """What makes a fit of a way."""

    def make(size):
        made, data = approximation(structure, peer), Rows(rows, size)

        def run():
            made.fit(data)
            return made

        return run

    return make


def predicting(name, peer, rows):
    """What makes a predictive of a way: probabilities of all pictures."""
    structure = work.structure(name)
    fitted = fitting(structure, peer, rows)(min(FITTED_SIZE, rows))()
    if name in work.LINEARISED:
        settings = {"pred_type": "glm", "link_approx": "probit"}
    else:
        settings = {"pred_type": "nn", "link_approx": "mc", "n_samples": work.SAMPLES}

    def make(size):
        data = Rows(rows, size)

        @torch.no_grad()
        def run():
            return torch.cat([fitted(x, **settings) for x in data.pictures])

        return run

    return make


def unravelled(matrix, like):
    """Tensors of the weights' shapes, with the matrix's rows as first axis."""
    parts = matrix.split([w.numel() for w in like], dim=1)
    return [part.reshape(len(matrix), *w.shape) for part, w in zip(parts, like)]


def ravelled(tensors):
    return torch.cat([t.flatten(1) for t in tensors], dim=1)


def linearised(at, x):
    """Product with many vectors after one pass over the network; none if a version cannot."""
    outputs, push = linearize(lambda w: torch_lenet.network(w, x), at)
    _, pull = vjp(lambda w: torch_lenet.network(w, x), at)
    return lambda v: pull(torch_lenet.curvature(outputs, push(v)))[0]


def one_by_one(at, x, how):
    return lambda v: torch_lenet.PRODUCTS[how](at, x, v)


def products(at, pieces, how, together):
    """The Gauss-Newton matrix times rows of a matrix, one after another or with vmap."""
    if how == "linearize":
        each = [linearised(at, x) for x in pieces]
    else:
        each = [one_by_one(at, x, how) for x in pieces]

    def multiply(matrix):
        total = torch.zeros_like(matrix)
        for product in each:
            if together:
                total += ravelled(vmap(product)(tuple(unravelled(matrix, at))))
                continue
            for row, vector in zip(total, matrix):
                parts = product(tuple(part[0] for part in unravelled(vector[None], at)))
                row += torch.cat([part.flatten() for part in parts])
        return total

    return multiply


def lanczos(multiply, start, rank):
    """Ritz values and vectors, every vector orthogonalised twice against all before it."""
    basis = torch.zeros(rank, len(start))
    diagonal, beside = torch.zeros(rank), torch.zeros(rank - 1)
    vector = start / start.norm()
    for index in range(rank):
        basis[index] = vector
        vector = multiply(vector[None])[0]
        diagonal[index] = vector @ basis[index]
        for _ in range(2):
            vector = vector - basis[: index + 1].T @ (basis[: index + 1] @ vector)
        if index + 1 < rank:
            beside[index] = vector.norm()
            vector = vector / beside[index]
    tridiagonal = torch.diag(diagonal) + torch.diag(beside, 1) + torch.diag(beside, -1)
    values, vectors = torch.linalg.eigh(tridiagonal)
    return values, vectors.T @ basis


def multiplying(name, rows, rank=None):
    """What makes products or Ritz pairs of a way, in PyTorch itself."""
    at, vectors = weights(), torch.tensor(work.directions(work.BLOCK, lenet.PARAMETERS))

    def make(size, product="one pass", together=False, threads=None):
        if together and product == "one pass":
            raise ValueError("vmap takes torch.func's derivatives only")
        torch.set_num_threads(threads or fastest.cores())
        pieces = Rows(rows, size).pictures

        def run():
            multiply = products(at, pieces, product, together)
            if name == "lanczos":
                return lanczos(multiply, vectors[0], rank or work.RANK)
            return multiply(vectors[:1] if name == "gauss-newton" else vectors)

        return run

    return make


def curvlinops(name, rows):
    """What makes a product of a way by curvlinops."""
    from curvlinops import GGNLinearOperator

    vectors = torch.tensor(work.directions(work.BLOCK, lenet.PARAMETERS)).T.contiguous()

    def make(size):
        net = module()
        operator = GGNLinearOperator(
            net, nn.CrossEntropyLoss(reduction="sum"), list(net.parameters()),
            list(Rows(rows, size)), check_deterministic=False, num_data=rows,
        )  # fmt: skip

        def run():
            return operator @ (vectors[:, 0] if name == "gauss-newton" else vectors)

        return run

    return make


def sizes(peer, name, rows):
    """How many pictures at a time are worth a trial."""
    jacobians = name in ("linearised-kron", "linearised-diagonal")
    if peer == "laplace-torch" and (jacobians or name == "fit-diagonal"):
        # time and memory of its Jacobians grow with the square of pictures at a time
        return work.sizes(rows, [10, 5, 25])
    if peer == "backpack" and jacobians:
        return work.sizes(rows, [50, 10, 250])
    return work.sizes(rows)


def operation(peer, name, rows):
    """What makes an operation of a way, and the choices."""
    choices = {"size": sizes(peer, name, rows)}
    if peer in ("laplace-torch", "backpack") and name not in work.PRODUCTS:
        if name in work.FITS:
            return fitting(work.structure(name), peer, rows), choices
        return predicting(name, peer, rows), choices
    if peer == "curvlinops" and name in ("gauss-newton", "gauss-newton-block"):
        return curvlinops(name, rows), choices
    if peer == "torch" and name in work.PRODUCTS:
        choices |= {"product": [*torch_lenet.PRODUCTS, "linearize"]}
        if name == "gauss-newton-block":
            choices |= {"together": [False, True]}
        return multiplying(name, rows), choices
    raise SystemExit(f"{peer} has no {name} here")


def main():
    parser = fastest.parser(__doc__)
    parser.add_argument("peer", choices=list(PEERS))
    options = work.arguments(parser)
    torch.manual_seed(0)
    make, choices = operation(options.peer, options.work, options.rows)
    work.report(make, choices, options, PEERS[options.peer])


if __name__ == "__main__":
    main()
