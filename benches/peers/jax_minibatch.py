"""Times an epoch of SGD or Adam in JAX, single precision on all cores, and prints a line of JSON.

    python jax_minibatch.py sgd

An epoch is one compiled scan over its batches, weights donated. Ways that are tried: rows gathered
inside the scan batch by batch, or all of them in the new order before it.
"""

import functools

import jax
import jax.numpy as jnp

import fastest
import minibatch


def outputs(weights, x):
    first, first_bias, second, second_bias, last, last_bias = weights
    x = jax.nn.relu(x @ first + first_bias)
    x = jax.nn.relu(x @ second + second_bias)
    return x @ last + last_bias


def loss(weights, x, y):
    log_p = jax.nn.log_softmax(outputs(weights, x))
    return -jnp.take_along_axis(log_p, y[:, None], 1).mean()


def sgd(state, gradient):
    weights, moments, count = state
    step = minibatch.STEP_SIZE
    return jax.tree.map(lambda w, g: w - step * g, weights, gradient), moments, count


def adam(state, gradient):
    weights, (first, second), count = state
    count = count + 1
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)
    a, b = 1 / (1 - 0.9**count), 1 / (1 - 0.999**count)
    move = lambda w, m, v: w - 1e-3 * a * m / (jnp.sqrt(b * v) + 1e-8)  # noqa: E731
    return jax.tree.map(move, weights, first, second), (first, second), count


def epochs(method):
    inputs, labels = (jnp.asarray(array) for array in minibatch.rows())
    orders = minibatch.orders()
    update = {"sgd": sgd, "adam": adam}[method]

    def make(gathered="each"):
        @functools.partial(jax.jit, donate_argnums=0)
        def epoch(state, order):
            def body(state, piece):
                x, y = (inputs[piece], labels[piece]) if gathered == "each" else piece
                return update(state, jax.grad(loss)(state[0], x, y)), None

            if gathered == "all":
                order = (inputs[order], labels[order])
            return jax.lax.scan(body, state, order)[0]

        weights = [jnp.asarray(w) for w in minibatch.parameters()]
        zeros = jax.tree.map(jnp.zeros_like, weights)
        state = [(weights, (zeros, jax.tree.map(jnp.copy, zeros)), jnp.zeros(()))]

        def run():
            state[0] = jax.block_until_ready(epoch(state[0], jnp.asarray(next(orders))))

        return run

    return make


def main():
    options = minibatch.arguments(fastest.parser(__doc__))
    choices = {"gathered": ["each", "all"]}
    fastest.report(epochs(options.method), choices, options, ["jax"])


if __name__ == "__main__":
    main()
