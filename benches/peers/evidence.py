"""The log evidence of a Gaussian process and its gradient by a scale for each input: seconds and memory beside other tools.

    cargo bench -p reprior --bench infinite --no-run        prints where the benchmark is: INFINITE
    python evidence.py INFINITE --kernels PYTHON            2,000 rows of ten inputs, three rounds in turn
    python evidence.py INFINITE --rows 10000 --rounds 1

One evaluation each in double precision on all cores; the others' after one to warm up (not of 10,000 rows, where it is more than half a minute).
reprior and neural-tangents have the kernel of two hidden layers of gelu; scikit-learn and GPyTorch a squared exponential one, the cheaper, factorised
exactly. The gradient is by the inputs' scales, by the noise but for neural-tangents, and of reprior by the scales of all layers as well.
PYTHON has neural-tangents (requirements-kernels.txt), the Python that runs this scikit-learn and GPyTorch (requirements-evidence.txt). What fails
is said and left out. Peak memory is that of the whole process. Prints a line of JSON for each process, then medians.
"""

import argparse
import json
import statistics
import sys
import time

import ours

INPUTS = 10
NOISE = 0.1


def problem(rows):
    import numpy as np

    stream = np.random.default_rng(0)
    x = stream.normal(size=(rows, INPUTS))
    return x, np.sin(x[:, 0]) + NOISE * stream.normal(size=rows)


def scikit_learn(rows):
    import numpy as np
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, WhiteKernel

    x, y = problem(rows)
    kernel = RBF(np.full(INPUTS, 3.0)) + WhiteKernel(NOISE**2)
    process = GaussianProcessRegressor(kernel, alpha=0.0, optimizer=None).fit(x[:50], y[:50])
    process.X_train_, process.y_train_ = x, y
    return lambda: process.log_marginal_likelihood(process.kernel_.theta, eval_gradient=True)[1]


def gpytorch(rows):
    import gpytorch
    import torch

    torch.set_default_dtype(torch.float64)
    x, y = map(torch.from_numpy, problem(rows))

    class Model(gpytorch.models.ExactGP):
        def __init__(self, likelihood):
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ZeroMean()
            self.covar_module = gpytorch.kernels.RBFKernel(ard_num_dims=INPUTS)

        def forward(self, inputs):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(inputs), self.covar_module(inputs))

    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    likelihood.noise = NOISE**2
    model = Model(likelihood).train()
    model.covar_module.lengthscale = 3.0
    evidence = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)

    def evaluate():
        model.zero_grad()
        with gpytorch.settings.fast_computations(False, False, False), gpytorch.settings.max_cholesky_size(10**6):
            evidence(model(x), y).backward()
        return model.covar_module.raw_lengthscale.grad.numpy()

    return evaluate


def neural_tangents(rows):
    import jax
    import jax.numpy as jnp
    from neural_tangents import stax

    jax.config.update("jax_enable_x64", True)
    x, y = map(jnp.asarray, problem(rows))
    layer = lambda: stax.Dense(1, W_std=1.5, b_std=0.1)
    kernel = stax.serial(layer(), stax.Gelu(), layer(), stax.Gelu(), layer())[2]

    def evidence(scales):
        covariance = kernel(x * jnp.exp(scales), None, "nngp") + NOISE**2 * jnp.eye(rows)
        factor = jnp.linalg.cholesky(covariance)
        half = jax.scipy.linalg.solve_triangular(factor, y, lower=True)
        return -0.5 * half @ half - jnp.log(jnp.diagonal(factor)).sum()

    gradient = jax.jit(jax.value_and_grad(evidence))
    return lambda: gradient(jnp.zeros(INPUTS))[1].block_until_ready()


WAYS = {"scikit-learn": scikit_learn, "GPyTorch": gpytorch, "neural-tangents": neural_tangents}


def child(way, rows):
    import numpy as np

    evaluate = WAYS[way](rows)
    for _ in range(2 if rows < 5000 else 1):
        begun = time.perf_counter()
        gradient = evaluate()
        seconds = time.perf_counter() - begun
    assert np.isfinite(gradient).all()
    print(json.dumps({"ms": seconds * 1e3}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("infinite", help="the benchmark's program")
    parser.add_argument("--kernels", help="a Python that has neural-tangents")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    rows = str(options.rows)
    benchmark = [options.infinite, f"{rows} rows of 10 numbers, 2", "--only", "evidence", "--rows", rows, "--seconds", "0", "--json"]
    commands = {"reprior": benchmark}
    for way in WAYS:
        python = options.kernels if way == "neural-tangents" else sys.executable
        if python:
            commands[way] = [python, __file__, "--child", way, rows]
    found = {}
    for _ in range(options.rounds):
        for way, command in commands.items():
            try:
                text, peak = ours.execute(command)
            except ours.Failed as failed:
                print(f"{way}: {failed}", file=sys.stderr)
                continue
            own = {"ms": json.loads(text.splitlines()[-1])["ms"], "megabytes": peak}
            print(json.dumps({"way": way, "rows": options.rows, **own}), flush=True)
            found.setdefault(way, []).append(own)
    for way, all_own in found.items():
        medians = {key: round(statistics.median(own[key] for own in all_own)) for key in all_own[0]}
        print(json.dumps({"median of": way, "rows": options.rows, **medians}))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], int(sys.argv[3]))
    else:
        main()
