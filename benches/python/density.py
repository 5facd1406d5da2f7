"""What a call of a density of one's own costs: reprior's NUTS on a Python function beside nutpie's and BlackJAX's on the same density.

usage: density.py        (needs the package, numba, nutpie, jax and blackjax; about a minute)

The density is normal in 20 dimensions with scales from 1 to 3; its function is compiled by Numba (reprior, nutpie) or traced by JAX (BlackJAX; reprior calls it compiled). One
chain on one thread. Seconds for each evaluation of the gradient are the difference of a long and a short run over the difference of their gradients, so that warm-up,
start and compilation are left out; the least of several rounds, in alternation.
"""

import time

import blackjax
import jax
import jax.numpy as jnp
import numba
import numpy as np
import nutpie
from nutpie.compiled_pyfunc import from_pyfunc

import reprior

DIM, SHORT, LONG, ROUNDS = 20, 1_000, 5_000, 5
SCALES = np.linspace(1.0, 3.0, DIM)
jax.config.update("jax_enable_x64", True)


@numba.njit
def compiled(z):
    gradient, value = np.empty(DIM), 0.0
    for at in range(DIM):
        scaled = z[at] / SCALES[at]
        value -= 0.5 * scaled * scaled
        gradient[at] = -scaled / SCALES[at]
    return value, gradient


def log_density(z):
    return -0.5 * jnp.sum((z / SCALES) ** 2)


traced = jax.jit(jax.value_and_grad(log_density))
model = from_pyfunc(
    ndim=DIM,
    make_logp_fn=lambda: compiled,
    make_expand_fn=lambda *_: lambda z, **__: {"z": np.asarray(z)},
    expanded_dtypes=[np.dtype(np.float64)],
    expanded_shapes=[(DIM,)],
    expanded_names=["z"],
)


def of_reprior(function):
    def run(draws):
        found = reprior.sample_density(function, DIM, chains=1, threads=1, warmup=500, draws=draws, thin=1)
        return found.n_gradients

    return run


def of_nutpie(draws):
    found = nutpie.sample(model, draws=draws, tune=500, chains=1, cores=1, seed=1, progress_bar=False)
    return int(np.sum(found.sample_stats["n_steps"].values))


warmup = blackjax.window_adaptation(blackjax.nuts, log_density)
(state, parameters), _ = warmup.run(jax.random.key(0), jnp.zeros(DIM), num_steps=500)
kernel = blackjax.nuts(log_density, **parameters)


@jax.jit
def chain(keys):
    def step(state, key):
        state, info = kernel.step(key, state)
        return state, info.num_integration_steps

    return jax.lax.scan(step, state, keys)[1]


def of_blackjax(draws):
    return int(np.sum(chain(jax.random.split(jax.random.key(1), draws))))


def seconds(work):
    start = time.perf_counter()
    count = work()
    return time.perf_counter() - start, count


WAYS = {
    "reprior, Numba": of_reprior(compiled),
    "reprior, JAX": of_reprior(traced),
    "nutpie, Numba": of_nutpie,
    "BlackJAX": of_blackjax,
}
z = np.ones(DIM)
for function, name in ((compiled, "Numba"), (traced, "JAX")):

    def called(function=function):
        value, gradient = function(z)
        return float(value), np.asarray(gradient)

    called()
    taken = [seconds(lambda: [called() for _ in range(2_000)])[0] / 2_000 for _ in range(ROUNDS)]
    print(f"the function of {name} called from Python, its values as NumPy's: {1e6 * min(taken):.2f} µs")
# compiled before they are timed
for run in WAYS.values():
    run(SHORT)
    run(LONG)
least = dict.fromkeys(WAYS, np.inf)
for _ in range(ROUNDS):
    for name, run in WAYS.items():
        (short, few), (long, many) = (seconds(lambda: run(draws)) for draws in (SHORT, LONG))
        least[name] = min(least[name], (long - short) / (many - few))
for name, each in least.items():
    print(f"{name}: {1e6 * each:.2f} µs for each gradient")
