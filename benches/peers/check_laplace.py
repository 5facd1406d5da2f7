"""Checks on a few pictures that what `laplace.py` times of its peers is the same thing.

    python check_laplace.py

Diagonal and last-layer precisions of laplace-torch with either backend, and their linearised
covariances, agree with Jacobians formed here; so do all products, in every way that is timed.
Kronecker factors of both backends agree in the dense layers. They are not the same in convolutions,
where BackPACK sums the inputs' factor over positions (which makes it 576 and 64 times as large here)
and makes the outputs' of gradients already summed: covariances of it are checked to be finite and
positive only. Ritz values of PyTorch, JAX and matfree agree.
"""

import itertools

import torch_laplace  # first: it takes care that `laplace` is the package

import numpy as np
import torch

import jax_lanczos
import laplace_work as work
import lenet
import torch_lenet

ROWS, SIZE, RANK = 20, 10, 12
# weights of dense layers, and of the last of them
DENSE, LAST = 41_854, 850
BACKENDS = ["laplace-torch", "backpack"]


def near(title, found, reference, tolerance=2e-3):
    found, reference = (np.asarray(array, np.float64) for array in (found, reference))
    assert found.shape == reference.shape, (title, found.shape, reference.shape)
    assert np.isfinite(found).all(), title
    difference = np.linalg.norm(found - reference) / np.linalg.norm(reference)
    print(f"{title}: {difference:.1e} from the reference")
    assert difference < tolerance, title


def jacobians():
    """Outputs and Jacobians of all pictures: rows × outputs × weights."""
    at = torch_laplace.weights()
    outputs, parts = [], []
    for x in torch_laplace.Rows(ROWS, 1).pictures:
        network = lambda *w, x=x: torch_lenet.network(w, x)[0]  # noqa: E731
        outputs.append(network(*at))
        each = torch.func.jacrev(network, tuple(range(len(at))))(*at)
        parts.append(torch.cat([j.flatten(1) for j in each], 1))
    return torch.stack(outputs), torch.stack(parts).double()


def precision(structure, made):
    """Its entries; of Kronecker factors the diagonal's of dense layers."""
    if structure == "kron":
        return made.posterior_precision.diag()[-DENSE:]
    return made.posterior_precision.flatten()


def expected(structure, outputs, of):
    """The precision and the covariances, dense; nothing of the Kronecker factors."""
    if structure == "last-layer":
        of = of[:, :, -LAST:]
    p = torch.softmax(outputs.double(), 1)
    hessians = torch.diag_embed(p) - p[:, :, None] * p[:, None]
    if structure == "last-layer":
        whole = torch.einsum("ncp,nck,nkq->pq", of, hessians, of)
        whole += work.PRIOR_PRECISION * torch.eye(LAST)
        return whole.flatten(), of @ torch.linalg.inv(whole) @ of.transpose(1, 2)
    diagonal = torch.einsum("ncp,nck,nkp->p", of, hessians, of) + work.PRIOR_PRECISION
    return diagonal, (of / diagonal) @ of.transpose(1, 2)


def approximations():
    outputs, of = jacobians()
    for structure in work.STRUCTURES:
        made = {b: torch_laplace.fitting(structure, b, ROWS)(SIZE)() for b in BACKENDS}
        pictures = torch.cat(torch_laplace.Rows(ROWS, SIZE).pictures)
        first = None
        for backend, one in made.items():
            covariances = one._glm_predictive_distribution(pictures)[1]
            assert covariances.shape == (ROWS, 10, 10)
            assert torch.linalg.eigvalsh(covariances.double()).min() > 0
            if structure == "kron":
                first = first or (precision(structure, one), None)
            else:
                first = expected(structure, outputs, of)
                near(f"{structure}, {backend}: covariances", covariances, first[1])
            near(f"{structure}, {backend}: precision", precision(structure, one), first[0])
        for name in (f"linearised-{structure}", f"sampled-{structure}"):
            for backend in BACKENDS:
                found = torch_laplace.predicting(name, backend, ROWS)(SIZE)()
                assert found.shape == (ROWS, 10) and torch.isfinite(found).all()
                near(f"{name}, {backend}: sums", found.sum(1), np.ones(ROWS))


def to_jax(rows):
    """Rows of a matrix from PyTorch's order of weights to JAX's, which both are LeNet's."""
    at = torch_laplace.weights()
    made = []
    for row in torch.as_tensor(np.array(rows)):
        parts = [part[0] for part in torch_laplace.unravelled(row[None], at)]
        made.append(np.concatenate([w.ravel() for w in torch_lenet.from_torch(parts)]))
    return np.stack(made)


def to_torch(rows):
    """The inverse of `to_jax`."""
    made = []
    for row in rows:
        parts = np.split(row, np.cumsum([np.prod(s) for s in lenet.SHAPES])[:-1])
        parts = [part.reshape(shape) for part, shape in zip(parts, lenet.SHAPES)]
        made.append(np.concatenate([w.numpy().ravel() for w in torch_lenet.to_torch(parts)]))
    return np.stack(made)


def products():
    """Products of the same vectors: those of JAX are given in its own order."""
    vectors = work.directions(work.BLOCK, lenet.PARAMETERS)
    of = {"torch": torch.tensor(vectors), "jax": torch.tensor(to_torch(vectors))}
    outputs, jacobian = jacobians()
    reference = {}
    for name, block in of.items():
        tangents = torch.einsum("ncp,kp->knc", jacobian, block.double())
        p = torch.softmax(outputs.double(), 1)
        cotangents = p * (tangents - (p * tangents).sum(2, keepdim=True))
        reference[name] = torch.einsum("ncp,knc->kp", jacobian, cotangents).numpy()
    for name in ("gauss-newton", "gauss-newton-block"):
        count = 1 if name == "gauss-newton" else work.BLOCK
        found = torch_laplace.curvlinops(name, ROWS)(SIZE)().numpy()
        near(f"{name}, curvlinops", found.T.reshape(count, -1), reference["torch"][:count])
        make = torch_laplace.multiplying(name, ROWS)
        for how, together in itertools.product([*torch_lenet.PRODUCTS, "linearize"], [False, True]):
            if how == "one pass" and together:
                continue
            found = make(SIZE, how, together)().numpy()
            near(f"{name}, torch, {how}, {together}", found, reference["torch"][:count])
        make = jax_lanczos.operation(name, ROWS)
        for way in jax_ways(["vmap", "xla", "python"] if count > 1 else ["xla"]):
            found = np.stack(make(SIZE, **way)()).reshape(count, -1)
            near(f"{name}, JAX, {way}", to_torch(found), reference["jax"][:count])


def jax_ways(loops):
    for product, loop in itertools.product(jax_lanczos.PRODUCTS, loops):
        if (product, loop) != ("linearize", "python"):
            yield {"product": product, "loop": loop}


def ritz():
    """Ritz values and how far the vectors are from orthonormal."""
    starts = work.directions(work.BLOCK, lenet.PARAMETERS)
    first = None
    pairs = {"torch": torch_laplace.multiplying("lanczos", ROWS, RANK)(SIZE)()}
    for way in jax_ways(["xla", "python", "matfree"]):
        pairs[f"JAX, {way}"] = jax_lanczos.operation("lanczos", ROWS, RANK)(SIZE, **way)()
    _, jacobian = jacobians()
    for title, (values, vectors) in pairs.items():
        values, vectors = np.asarray(values), np.asarray(vectors, np.float64)
        assert vectors.shape == (RANK, lenet.PARAMETERS) and starts.shape[1] == lenet.PARAMETERS
        near(f"lanczos, {title}: orthonormal", vectors @ vectors.T, np.eye(RANK), 1e-4)
        # the two orders of weights start differently: what has converged is the same
        first = values[-4:] if first is None else first
        near(f"lanczos, {title}: largest values", values[-4:], first, 1e-2)


def main():
    torch.manual_seed(0)
    approximations()
    products()
    ritz()
    print("check_laplace.py: all agree")


if __name__ == "__main__":
    main()
