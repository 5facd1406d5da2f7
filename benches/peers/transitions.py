"""Markov chains in JAX: what is timed, each a function that makes a jitted chain of some steps.

A chain is `chain(key, state) -> (state, evaluations)`, evaluations being of the density or of its
gradient, summed over the steps of a `lax.scan`. `start(position)` makes a state. pCN and
hmc-infinite are written out; elliptical slice sampling and NUTS are BlackJAX's.
"""

import math

import blackjax
import jax
import jax.numpy as jnp
import numpy as np

# hmc-infinite: relative jitter of a trajectory's angle, steps of the longest
JITTER, MOST_STEPS = 0.25, 128


def normal(key, like):
    """Standard normals in the shape of a position."""
    keys = jax.random.split(key, len(like))
    return [jax.random.normal(k, x.shape, x.dtype) for k, x in zip(keys, like)]


def combine(a, x, b, y):
    """a x + b y."""
    a, b = jnp.float32(a), jnp.float32(b)
    return [a * u + b * v for u, v in zip(x, y)]


def dot(x, y):
    return sum(jnp.sum(u * v) for u, v in zip(x, y))


def select(condition, x, y):
    return jax.tree.map(lambda u, v: jnp.where(condition, u, v), x, y)


def chain_of(step, steps):
    """`steps` steps in one compiled scan."""

    @jax.jit
    def chain(key, state):
        state, counts = jax.lax.scan(lambda s, k: step(k, s), state, jax.random.split(key, steps))
        return state, jnp.sum(counts)

    return chain


def prior_draw(key, data):
    keys = jax.random.split(key, len(data.shapes()))
    return [jax.random.normal(k, shape, jnp.float32) for k, shape in zip(keys, data.shapes())]


def pcn(density, beta, steps):
    """Preconditioned Crank-Nicolson: z' = √(1 − β²) z + β ξ."""

    def step(key, state):
        position, value = state
        noise_key, accept_key = jax.random.split(key)
        proposal = combine(math.sqrt(1 - beta**2), position, beta, normal(noise_key, position))
        proposed = density(proposal)
        accept = jnp.log(jax.random.uniform(accept_key)) < proposed - value
        return select(accept, (proposal, proposed), state), 1

    return lambda position: (position, density(position)), chain_of(step, steps)


def gradient(density, steps):
    """Value and gradient, each at a point that depends a little on the one before."""

    def step(_, state):
        position, _ = state
        value, slope = jax.value_and_grad(density)(position)
        return (combine(1.0, position, 1e-8, slope), value), 1

    return lambda position: (position, density(position)), chain_of(step, steps)


def elliptical(density, data, steps):
    """BlackJAX's elliptical slice sampling."""
    size = sum(math.prod(shape) for shape in data.shapes())
    mean, variance = jnp.zeros(size, jnp.float32), jnp.ones(size, jnp.float32)
    algorithm = blackjax.elliptical_slice(density, mean=mean, cov=variance)

    def step(key, state):
        state, info = algorithm.step(key, state)
        return state, info.subiter

    return algorithm.init, chain_of(step, steps)


def nuts(density, data, step_size, steps, doublings=10):
    """BlackJAX's No-U-Turn sampler with the identity as mass matrix."""
    size = sum(math.prod(shape) for shape in data.shapes())

    def posterior(position):
        return density(position) - 0.5 * dot(position, position)

    ones = jnp.ones(size, jnp.float32)
    algorithm = blackjax.nuts(posterior, step_size, ones, max_num_doublings=doublings)

    def step(key, state):
        state, info = algorithm.step(key, state)
        return state, info.num_integration_steps

    return algorithm.init, chain_of(step, steps)


def hmc_infinite(density, step_size, steps, angle=0.8, damping=0.5):
    """Hamiltonian Monte Carlo exact for the Gaussian part, as reprior's `hmc-infinite`.

    The velocity is refreshed in part and persists; a trajectory is kicks by ∇ℓ and rotations of
    (z, v) by the step size, its length jittered; on rejection the velocity turns round.
    """
    h = step_size
    evaluate = jax.value_and_grad(density)

    def kick(velocity, scale, slope):
        scale = scale.astype(jnp.float32)
        gain = scale * dot(velocity, slope) + 0.5 * scale**2 * dot(slope, slope)
        return combine(1.0, velocity, scale, slope), gain.astype(float)

    def step(key, state):
        position, velocity, value, slope = state
        noise_key, length_key, accept_key = jax.random.split(key, 3)
        noise = normal(noise_key, position)
        velocity = combine(math.sqrt(1 - damping), velocity, math.sqrt(damping), noise)
        length = angle * (1 - JITTER + 2 * JITTER * jax.random.uniform(length_key))
        count = jnp.clip(jnp.round(length / h), 1, MOST_STEPS).astype(jnp.int32)
        moving, kinetic = kick(velocity, jnp.asarray(0.5 * h), slope)

        def leap(i, carry):
            z, v, _, _, kinetic = carry
            z, v = combine(np.cos(h), z, np.sin(h), v), combine(np.cos(h), v, -np.sin(h), z)
            proposed, slope = evaluate(z)
            # the second half of this kick and the first of the next at once
            v, gain = kick(v, jnp.where(i + 1 == count, 0.5 * h, h), slope)
            return z, v, proposed, slope, kinetic + gain

        end = (position, moving, value, slope, kinetic)
        z, v, proposed, new_slope, kinetic = jax.lax.fori_loop(0, count, leap, end)
        accept = jnp.log(jax.random.uniform(accept_key)) < proposed - value - kinetic
        stay = (position, [-x for x in velocity], value, slope)
        return select(accept, (z, v, proposed, new_slope), stay), count

    def start(position, key=None):
        key = jax.random.key(17) if key is None else key
        return (position, normal(key, position), *evaluate(position))

    return start, chain_of(step, steps)
