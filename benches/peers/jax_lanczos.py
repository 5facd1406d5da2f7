"""Times Gauss-Newton products of LeNet and Lanczos with them in JAX, and prints a line of JSON.

    python jax_lanczos.py lanczos --rows 1000

Ways that are tried: how many pictures at a time; whether every product passes over the network anew,
by jvp and vjp, or the network is linearised once; convolutions and maxima as in `jax_lenet.py`;
vectors of a block with vmap, in a loop of XLA's or one of Python's; Lanczos with either loop, or
matfree's. All of it is compiled.
"""

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree
from matfree import decomp, eig

import fastest
import jax_lenet
import laplace_work as work
import lenet


def anew(function, weights):
    """A product that passes over the network each time."""
    return lambda vector: jax_lenet.by_both_modes(function, weights, vector)


def linearised(function, weights):
    """A product of what is kept from one pass."""
    outputs, push = jax.linearize(function, weights)
    pull = jax.linear_transpose(push, weights)
    return lambda vector: pull(jax_lenet.curvature(outputs, push(vector)))[0]


PRODUCTS = {"linearize": linearised, "jvp and vjp": anew}


def products(weights, pieces, product, settings):
    """The Gauss-Newton matrix times a flat vector."""
    _, unravel = ravel_pytree(weights)
    each = [
        PRODUCTS[product](lambda w, x=x: jax_lenet.network(w, x, **settings), weights)
        for x in pieces
    ]

    def multiply(vector):
        parts = unravel(vector)
        return sum(ravel_pytree(one(parts))[0] for one in each)

    return multiply


def step(multiply, index, state):
    """Of Lanczos, every vector orthogonalised twice against all before it."""
    basis, diagonal, beside, vector = state
    basis = basis.at[index].set(vector)
    vector = multiply(vector)
    diagonal = diagonal.at[index].set(vector @ basis[index])
    for _ in range(2):  # rows of the basis that are not there yet are zero
        vector = vector - basis.T @ (basis @ vector)
    norm = jnp.linalg.norm(vector)
    return basis, diagonal, beside.at[index].set(norm), vector / norm


def first_state(start, rank):
    zeros = jnp.zeros((rank, len(start))), jnp.zeros(rank), jnp.zeros(rank)
    return *zeros, start / jnp.linalg.norm(start)


def ritz(state):
    """Ritz values and vectors."""
    basis, diagonal, beside, _ = state
    beside = beside[:-1]
    tridiagonal = jnp.diag(diagonal) + jnp.diag(beside, 1) + jnp.diag(beside, -1)
    values, vectors = jnp.linalg.eigh(tridiagonal)
    return values, vectors.T @ basis


def by_xla(multiply, start, rank):
    state = first_state(start, rank)
    return ritz(jax.lax.fori_loop(0, rank, lambda index, s: step(multiply, index, s), state))


def by_matfree(multiply, start, rank):
    return eig.eigh_partial(decomp.tridiag_sym(rank, reortho="full"))(multiply, start)


ITERATIONS = {"xla": by_xla, "matfree": by_matfree}
BLOCKS = {"vmap": jax.vmap, "xla": lambda multiply: lambda v: jax.lax.map(multiply, v)}


def operation(name, rows, rank=work.RANK):
    """What makes an operation of a way."""
    weights = [jnp.asarray(w) for w in lenet.parameters(0)]
    images = jnp.asarray(lenet.pictures(rows)[0])
    vectors = jnp.asarray(work.directions(work.BLOCK, lenet.PARAMETERS))

    def make(size, product="jvp and vjp", loop="xla", **settings):
        def product_of(weights, images):
            pieces = [images[k : k + size] for k in range(0, rows, size)]
            return products(weights, pieces, product, settings)

        def compiled(function, *given, **flags):
            # before anything is timed, so that no first run is longer for it
            return jax.jit(function, **flags).lower(*given).compile()

        if name == "gauss-newton" or loop != "python":

            def once(weights, images, vectors):
                multiply = product_of(weights, images)
                if name == "lanczos":
                    return ITERATIONS[loop](multiply, vectors[0], rank)
                if name == "gauss-newton":
                    return multiply(vectors[0])
                return BLOCKS[loop](multiply)(vectors)

            whole = compiled(once, weights, images, vectors)
            return lambda: jax.block_until_ready(whole(weights, images, vectors))

        if product == "linearize":
            raise ValueError("Python's loop passes over the network each time")
        if name == "gauss-newton-block":
            multiply = lambda w, x, v: product_of(w, x)(v)  # noqa: E731
            one = compiled(multiply, weights, images, vectors[0])
            return lambda: jax.block_until_ready([one(weights, images, v) for v in vectors])

        def advance(weights, images, index, state):
            return step(product_of(weights, images), index, state)

        state = first_state(vectors[0], rank)
        following = compiled(advance, weights, images, 0, state, donate_argnums=3)
        last = compiled(ritz, state)

        def run():
            state = first_state(vectors[0], rank)
            for index in range(rank):
                state = following(weights, images, index, state)
            return jax.block_until_ready(last(state))

        return run

    return make


def main():
    options = work.arguments(fastest.parser(__doc__))
    if options.work not in work.PRODUCTS:
        raise SystemExit(f"JAX has no {options.work} here")
    choices = {"size": work.sizes(options.rows)}
    if options.work == "gauss-newton-block":
        choices |= {"loop": ["vmap", "python", "xla"]}
    if options.work == "lanczos":
        choices |= {"loop": ["python", "xla", "matfree"]}
    choices |= {"convolution": ["xla", "windows"], "maximum": ["windows", "reshaped"]}
    choices |= {"product": ["jvp and vjp", "linearize"]}
    packages = ["jax", "matfree"] if options.work == "lanczos" else ["jax"]
    work.report(operation(options.work, options.rows), choices, options, packages)


if __name__ == "__main__":
    main()
