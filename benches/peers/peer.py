"""Times one peer in this process and prints a line of JSON: a chain in JAX or BlackJAX.

    python peer.py pcn --width 1024 --rows 256 --data PATH/cifar10

The factorisation is tried in single and in double precision and timed in the faster (with BlackJAX
single, which is all it takes beside a network in single precision). Compilation and a warm start
are not timed. Milliseconds are per step and per evaluation of the density or gradient. `--warm`
starts from a short run of hmc-infinite instead of a draw of the prior: the number of evaluations of
an elliptical slice or of NUTS depends on where the chain is.
"""

import argparse
import importlib.metadata
import json
import os
import resource
import statistics
import time

# BlackJAX mixes types where double precision is on, so its density is in single precision
BLACKJAX = ["elliptical", "nuts"]
ALGORITHMS = ["pcn", "gradient", "hmc-infinite", *BLACKJAX]
WARM_STEPS = 20


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("algorithm", choices=ALGORITHMS)
    parser.add_argument("--data", default="synthetic", help="a CIFAR-10 folder or `synthetic`")
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--depth", type=int, default=1, help="hidden layers [1]")
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--noise", type=float, default=0.1)
    parser.add_argument("--step-size", type=float, default=0.05)
    parser.add_argument("--inputs", choices=["reduced", "full"], default="reduced")
    parser.add_argument("--factor", choices=["best", "float32", "float64"], default="best")
    parser.add_argument("--warm", type=float, default=0.0, help="hmc-infinite's step; 0: none [0]")
    parser.add_argument("--chunk", type=int, default=10, help="steps of a scan [10]")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long to time [5]")
    parser.add_argument("--core", type=int, help="run on this core alone")
    parser.add_argument("--blas-threads", help="threads of the factorisation [all]")
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main():
    options = arguments()
    if options.core is not None:
        os.sched_setaffinity(0, {options.core})
    if options.blas_threads is not None:
        os.environ["OPENBLAS_NUM_THREADS"] = options.blas_threads
    # JAX and its BLAS ask for the number of cores when they are imported
    import jax
    import numpy as np

    import problem

    widths = (options.width,) * options.depth
    reduce = options.inputs == "reduced"
    data = problem.load(options.data, options.rows, widths, options.noise, reduce=reduce)
    factors = ["float32", "float64"] if options.factor == "best" else [options.factor]
    if options.algorithm in BLACKJAX:
        factors = ["float32"]
    jax.config.update("jax_enable_x64", options.algorithm not in BLACKJAX)
    chains = {name: Chain(data, options, getattr(np, name)) for name in factors}
    trials = {name: chain.seconds_a_step(3) for name, chain in chains.items()}
    factor = min(trials, key=trials.get)
    record = chains[factor].measure(options.seconds)
    record |= {
        "factor": factor,
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "versions": {
            name: importlib.metadata.version(name) for name in ("jax", "blackjax", "numpy")
        },
    }
    print(json.dumps(record), flush=True)


class Chain:
    """A chain that is compiled and warm."""

    def __init__(self, data, options, factor):
        import jax

        import density
        import transitions

        self.jax, self.chunk = jax, options.chunk
        value = density.marginal(data, factor)
        key = jax.random.key(options.seed)
        self.key, prior_key, warm_key = jax.random.split(key, 3)
        position = transitions.prior_draw(prior_key, data)
        if options.warm > 0:
            start, chain = transitions.hmc_infinite(value, options.warm, WARM_STEPS)
            position = chain(warm_key, start(position))[0][0]
        size, steps = options.step_size, options.chunk
        start, self.chain = {
            "pcn": lambda: transitions.pcn(value, size, steps),
            "gradient": lambda: transitions.gradient(value, steps),
            "elliptical": lambda: transitions.elliptical(value, data, steps),
            "nuts": lambda: transitions.nuts(value, data, size, steps),
            "hmc-infinite": lambda: transitions.hmc_infinite(value, size, steps),
        }[options.algorithm]()
        self.state = jax.jit(start)(position)
        self.advance()

    def advance(self):
        """A chunk: its seconds and evaluations."""
        self.key, key = self.jax.random.split(self.key)
        self.jax.block_until_ready((key, self.state))
        began = time.perf_counter()
        self.state, evaluations = self.jax.block_until_ready(self.chain(key, self.state))
        return time.perf_counter() - began, int(evaluations)

    def seconds_a_step(self, chunks):
        return min(self.advance()[0] for _ in range(chunks)) / self.chunk

    def measure(self, seconds):
        chunks = []
        while sum(taken for taken, _ in chunks) < seconds or len(chunks) < 3:
            chunks.append(self.advance())
        per_evaluation = statistics.median(taken / count for taken, count in chunks)
        evaluations = sum(count for _, count in chunks) / len(chunks) / self.chunk
        return {
            "ms_per_step": 1e3 * per_evaluation * evaluations,
            "ms_per_evaluation": 1e3 * per_evaluation,
            "evaluations_per_step": evaluations,
            "steps": len(chunks) * self.chunk,
        }


if __name__ == "__main__":
    main()
