"""Effective draws a second of hmc-infinite in JAX; prints a line of JSON.

    python effective.py --width 1024 --step-size 0.15 --data PATH/cifar10

Chains start at a draw of the prior. What is recorded is the mean of the function at the test
inputs given the inner weights, the readout integrated out; the part of the inputs that the
training rows do not see is drawn anew for each draw. Effective draws are ArviZ's bulk ESS, the mean
over test rows and outputs; seconds are those of warm-up and draws, compilation left out.
"""

import argparse
import json
import math
import os
import resource
import time


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", default="synthetic", help="a CIFAR-10 folder or `synthetic`")
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--test-rows", type=int, default=200)
    parser.add_argument("--noise", type=float, default=0.1)
    parser.add_argument("--step-size", type=float, required=True, help="as reprior adapts it")
    parser.add_argument("--chains", type=int, default=2, help="one after the other [2]")
    parser.add_argument("--warmup", type=int, default=100, help="transitions [100]")
    parser.add_argument("--draws", type=int, default=250)
    parser.add_argument("--thin", type=int, default=2)
    parser.add_argument("--factor", choices=["best", "float32", "float64"], default="best")
    parser.add_argument("--core", type=int, help="run on this core alone")
    parser.add_argument("--blas-threads", help="threads of the factorisation [all]")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def predictive(data, factor):
    """The mean at the test inputs given the inner weights, n* × C."""
    import jax
    import jax.numpy as jnp
    from jax.scipy.linalg import cho_solve

    import density
    import problem

    targets = jnp.asarray(data.targets, factor)
    first, seen, rest = (jnp.asarray(x) for x in (data.first, data.test_first, data.test_rest))
    bias = problem.READOUT_BIAS_VARIANCE

    def mean(key, position):
        h = density.hidden(position, first)
        unseen = rest @ jax.random.normal(key, (len(rest), data.widths[0]), jnp.float32)
        test = density.gelu(seen @ position[0] + unseen)
        weight = problem.READOUT_WEIGHT_VARIANCE / h.shape[1]
        k = weight * (h @ h.T).astype(factor) + bias
        k += data.noise**2 * jnp.eye(len(k), dtype=factor)
        solved = cho_solve((jnp.linalg.cholesky(k, symmetrize_input=False), True), targets)
        return (weight * (test @ h.T).astype(factor) + bias) @ solved

    return mean


def compiled(data, factor, options, key):
    """How to start, go on and predict, compiled, and the seconds that a few transitions take."""
    import jax

    import density
    import transitions

    value = density.marginal(data, factor)
    start, chain = transitions.hmc_infinite(value, options.step_size, options.thin)
    start, predict = jax.jit(start), jax.jit(predictive(data, factor))
    state = start(transitions.prior_draw(key, data))
    jax.block_until_ready((chain(key, state), predict(key, state[0])))
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        jax.block_until_ready(chain(key, state))
        seconds.append(time.perf_counter() - began)
    return start, chain, predict, min(seconds)


def main():
    options = arguments()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    if options.blas_threads is not None:
        os.environ["OPENBLAS_NUM_THREADS"] = options.blas_threads
    # JAX and its BLAS ask for the number of cores when they are imported
    import jax
    import numpy as np

    jax.config.update("jax_enable_x64", True)
    import problem
    import transitions

    data = problem.load(
        options.data, options.rows, (options.width,), options.noise, test_rows=options.test_rows
    )
    key = jax.random.key(options.seed)
    factors = ["float32", "float64"] if options.factor == "best" else [options.factor]
    made = {name: compiled(data, getattr(np, name), options, key) for name in factors}
    factor = min(made, key=lambda name: made[name][-1])
    start, chain, predict, _ = made[factor]

    began, gradients = time.perf_counter(), 0
    draws = np.empty((options.chains, options.draws, *data.test_labels.shape, problem.CLASSES))
    for number in range(options.chains):
        key, prior_key, velocity_key = jax.random.split(key, 3)
        state = start(transitions.prior_draw(prior_key, data), velocity_key)
        gradients += 1
        for step in range(-math.ceil(options.warmup / options.thin), options.draws):
            key, chain_key, test_key = jax.random.split(key, 3)
            state, count = chain(chain_key, state)
            gradients += int(count)
            if step >= 0:
                draws[number, step] = predict(test_key, state[0])
    seconds = time.perf_counter() - began

    import arviz

    ess = float(arviz.ess(arviz.convert_to_dataset(draws), method="bulk")["x"].mean())
    accuracy = np.mean(draws.mean(axis=(0, 1)).argmax(axis=-1) == data.test_labels)
    record = {
        "ms_per_step": 1e3 * seconds / ess,
        "ms_per_evaluation": 1e3 * seconds / gradients,
        "ess": ess,
        "seconds": seconds,
        "accuracy": float(accuracy),
        "factor": factor,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(record), flush=True)


if __name__ == "__main__":
    main()
