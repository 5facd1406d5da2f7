"""The marginal density of a wide network's inner weights in JAX, value and gradient.

With h the n × d activations of the last hidden layer, Ψ = [σ_w h/√d, σ_b 1] and K = σ²I + ΨΨᵀ,

    ℓ = −½ tr(Yᵀ K⁻¹ Y) − (C/2) log det K,     ∂ℓ/∂Ψ = A (AᵀΨ) − C K⁻¹Ψ,  A = K⁻¹Y,

up to a constant. Where p = d + 1 ≤ n it is computed from M = σ²I + ΨᵀΨ instead of K. The gradient
with respect to h is written out: differentiating through the factorisation costs more. The network
runs in single precision, the factorisation in `factor`.

    python density.py    compares both with a dense formula in double precision
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve, solve_triangular

import problem


def gelu(x):
    """Exactly, by the error function."""
    return x * (0.5 + 0.5 * jax.lax.erf(x * np.float32(math.sqrt(0.5))))


def hidden(position, first):
    """Activations of the last hidden layer, n × d."""
    weights, *layers = position
    h = gelu(first @ weights)
    for weight, bias in zip(layers[::2], layers[1::2]):
        scale = np.float32(math.sqrt(problem.HIDDEN_WEIGHT_VARIANCE / h.shape[1]))
        h = gelu(scale * (h @ weight) + np.float32(math.sqrt(problem.HIDDEN_BIAS_VARIANCE)) * bias)
    return h


def data_space(h, targets, noise, factor, gradient):
    """ℓ and, if asked for, ∂ℓ/∂h from the factor of K."""
    (n, d), c = h.shape, targets.shape[1]
    weight, bias = problem.READOUT_WEIGHT_VARIANCE / d, problem.READOUT_BIAS_VARIANCE
    k = (np.float32(weight) * (h @ h.T)).astype(factor) + bias + noise**2 * jnp.eye(n, dtype=factor)
    lower = jnp.linalg.cholesky(k, symmetrize_input=False)
    whitened = solve_triangular(lower, targets, lower=True)
    value = -0.5 * jnp.sum(whitened**2) - c * jnp.sum(jnp.log(jnp.diagonal(lower)))
    if not gradient:
        return value
    a = solve_triangular(lower, whitened, lower=True, trans=1)
    inverse = cho_solve((lower, True), jnp.eye(n, dtype=factor))
    return value, np.float32(weight) * ((a @ a.T - c * inverse).astype(h.dtype) @ h)


def feature_space(h, targets, noise, factor, gradient):
    """The same from the factor of M."""
    (n, d), c = h.shape, targets.shape[1]
    scale = np.float32(math.sqrt(problem.READOUT_WEIGHT_VARIANCE / d))
    bias = jnp.full((n, 1), math.sqrt(problem.READOUT_BIAS_VARIANCE), h.dtype)
    psi = jnp.concatenate([scale * h, bias], axis=1)
    m = (psi.T @ psi).astype(factor) + noise**2 * jnp.eye(d + 1, dtype=factor)
    lower = jnp.linalg.cholesky(m, symmetrize_input=False)
    projected = (psi.T @ targets.astype(h.dtype)).astype(factor)
    whitened = solve_triangular(lower, projected, lower=True)
    square = (jnp.sum(targets**2) - jnp.sum(whitened**2)) / noise**2
    log_determinant = 2 * jnp.sum(jnp.log(jnp.diagonal(lower))) + (n - d - 1) * math.log(noise**2)
    value = -0.5 * square - 0.5 * c * log_determinant
    if not gradient:
        return value
    mean = solve_triangular(lower, whitened, lower=True, trans=1).astype(h.dtype)
    inverse = cho_solve((lower, True), jnp.eye(d + 1, dtype=factor)).astype(h.dtype)
    a = (targets.astype(h.dtype) - psi @ mean) / np.float32(noise**2)
    return value, scale * (a @ mean[:-1].T - c * (psi @ inverse[:, :-1]))


def marginal(data, factor=jnp.float64):
    """ℓ as a function of a position, differentiable."""
    first, targets = jnp.asarray(data.first), jnp.asarray(data.targets, factor)
    space = feature_space if data.widths[-1] + 1 <= data.rows else data_space

    @jax.custom_vjp
    def of_hidden(h):
        return space(h, targets, data.noise, factor, gradient=False)

    of_hidden.defvjp(
        lambda h: space(h, targets, data.noise, factor, gradient=True),
        lambda gradient, cotangent: (cotangent.astype(gradient.dtype) * gradient,),
    )
    return lambda position: of_hidden(hidden(position, first))


def dense(data, position):
    """log N(Y; 0, K) by the formula, in double precision, without the constant."""
    arrays = [np.asarray(array, np.float64) for array in position]
    h = np.asarray(data.first, np.float64) @ arrays[0]
    activation = np.vectorize(lambda x: 0.5 * x * (1 + math.erf(x / math.sqrt(2))))
    h = activation(h)
    for weight, bias in zip(arrays[1::2], arrays[2::2]):
        h = activation(math.sqrt(2 / h.shape[1]) * h @ weight + 0.1 * bias)
    k = h @ h.T / h.shape[1] + 0.01 + data.noise**2 * np.eye(len(h))
    square = np.sum(data.targets * np.linalg.solve(k, data.targets))
    return -0.5 * square - 0.5 * data.targets.shape[1] * np.linalg.slogdet(k)[1]


def check_slope(data, position, gradient, generator, tolerance):
    """The slope along the gradient plus something random, against a difference of the formula."""
    random = [generator.normal(size=array.shape) for array in position]
    length = math.sqrt(sum(float(jnp.sum(g**2)) for g in gradient))
    shrink = 1 / math.sqrt(sum(array.size for array in position))
    direction = [np.asarray(g, np.float64) / length + shrink * t for g, t in zip(gradient, random)]
    ahead, behind = ([p + s * t for p, t in zip(position, direction)] for s in (1e-4, -1e-4))
    expected = (dense(data, ahead) - dense(data, behind)) / 2e-4
    slope = sum(float(jnp.sum(g * t)) for g, t in zip(gradient, direction))
    assert abs(slope - expected) < tolerance * length, (slope, expected, length)


def check():
    """Values against the dense formula, gradients against its differences, in both spaces."""
    jax.config.update("jax_enable_x64", True)
    generator = np.random.default_rng(1)
    for rows, widths in [(12, (20,)), (40, (20,)), (12, (15, 20)), (40, (30, 20))]:
        for reduce in (True, False):
            data = problem.load(problem.SYNTHETIC, rows, widths, noise=0.3, reduce=reduce)
            position = [generator.normal(size=shape) for shape in data.shapes()]
            single = [jnp.asarray(array, jnp.float32) for array in position]
            expected = dense(data, position)
            for factor, tolerance in ((jnp.float64, 1e-4), (jnp.float32, 1e-3)):
                value, gradient = jax.value_and_grad(marginal(data, factor))(single)
                assert abs(value - expected) < tolerance * abs(expected), (rows, widths, value)
                check_slope(data, position, gradient, generator, tolerance)
    print("density.py: values and gradients agree with the dense formula")


if __name__ == "__main__":
    check()
