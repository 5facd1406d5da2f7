"""Times LeNet in JAX, single precision on all cores, and prints a line of JSON.

    python jax_lenet.py gradient --rows 128

Ways that are tried: convolutions by XLA's or as a product with all windows side by side, the
maximum over windows or over two axes of a reshaped picture, how many pictures at a time, and the
Gauss-Newton product by jvp and vjp or by linearize and its transpose. All of it is compiled.
"""

import functools

import jax
import jax.numpy as jnp

import fastest
import lenet


def convolve(x, weight, bias, how):
    """Without padding."""
    if how == "xla":
        return bias + jax.lax.conv_general_dilated(
            x, weight, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
    height, width = x.shape[1] - 4, x.shape[2] - 4
    windows = [x[:, i : i + height, j : j + width] for i in range(5) for j in range(5)]
    return bias + jnp.concatenate(windows, axis=3) @ weight.reshape(-1, weight.shape[3])


def halve(x, how):
    """The maximum over 2 x 2."""
    if how == "windows":
        window = (1, 2, 2, 1)
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID")
    n, height, width, channels = x.shape
    return x.reshape(n, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))


def network(weights, x, convolution="xla", maximum="windows"):
    """The outputs of LeNet."""
    first, first_bias, second, second_bias, *dense = weights
    x = halve(jnp.tanh(convolve(x, first, first_bias, convolution)), maximum)
    x = halve(jnp.tanh(convolve(x, second, second_bias, convolution)), maximum)
    x = x.reshape(len(x), -1)
    x = jnp.tanh(x @ dense[0] + dense[1])
    x = jnp.tanh(x @ dense[2] + dense[3])
    return x @ dense[4] + dense[5]


def curvature(outputs, tangent):
    """The softmax's Hessian times a tangent of its inputs."""
    p = jax.nn.softmax(outputs)
    return p * (tangent - (p * tangent).sum(1, keepdims=True))


def gradient(function, weights, cotangent):
    """Cotangents of the weights."""
    return jax.vjp(function, weights)[1](cotangent)[0]


def by_both_modes(function, weights, direction):
    """The Gauss-Newton product by jvp and vjp, whose passes the compiler makes one."""
    _, tangent = jax.jvp(function, (weights,), (direction,))
    outputs, pull_back = jax.vjp(function, weights)
    return pull_back(curvature(outputs, tangent))[0]


def by_linearize(function, weights, direction):
    """The same by one linear function and its transpose."""
    outputs, push = jax.linearize(function, weights)
    return jax.linear_transpose(push, weights)(curvature(outputs, push(direction)))[0]


PRODUCTS = {"jvp and vjp": by_both_modes, "linearize": by_linearize}


def operation(name, weights, images, cotangents, direction):
    """What makes an operation of a way."""
    weights = [jnp.asarray(w) for w in weights]
    direction = [jnp.asarray(w) for w in direction]
    rows = len(images)

    def make(convolution, maximum, size, product="jvp and vjp"):
        of = functools.partial(network, convolution=convolution, maximum=maximum)

        @jax.jit
        def once(weights, direction, x, second):
            function = lambda w: of(w, x)  # noqa: E731
            if name == "outputs":
                return function(weights)
            if name == "gradient":
                return gradient(function, weights, second)
            return PRODUCTS[product](function, weights, direction)

        add = jax.jit(lambda a, b: jax.tree.map(jnp.add, a, b))
        pieces = [
            (jnp.asarray(images[k : k + size]), jnp.asarray(cotangents[k : k + size]))
            for k in range(0, rows, size)
        ]

        def run():
            parts = (once(weights, direction, *piece) for piece in pieces)
            return jax.block_until_ready(
                list(parts) if name == "outputs" else functools.reduce(add, parts)
            )

        return run

    return make


def main():
    options = lenet.arguments(fastest.parser(__doc__))
    images, cotangents = lenet.pictures(options.rows)
    weights, direction = lenet.parameters(0), lenet.parameters(1)
    choices = {"convolution": ["xla", "windows"], "maximum": ["windows", "reshaped"]}
    choices |= {"size": lenet.batches(options.rows)}
    if options.operation == "gauss-newton":
        choices |= {"product": list(PRODUCTS)}
    make = operation(options.operation, weights, images, cotangents, direction)
    fastest.report(make, choices, options, ["jax"])


if __name__ == "__main__":
    main()
