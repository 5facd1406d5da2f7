"""Rows on many workers: the same posterior as rows in one piece, and as NumPy has it; workers that are lost."""

import contextlib
import os
import signal
import time

import distributed
import numpy as np
import pytest

import reprior
from reprior.distributed import shards

ROWS, COLUMNS, WIDTH, NOISE = 50, 3, 4, 0.3
GIVEN = {"network": f"fcn:{WIDTH}", "activation": "tanh", "likelihood": "gaussian", "noise": NOISE, "precision": "f64"}

#: Chains for which every evaluation is a round trip.
SHORT = {"relative": True, "method": "hmc-infinite", "arrival": 0, "max_steps": 4, "warmup": 15, "draws": 10, "progress": False}


def table():
    random = np.random.default_rng(0)
    X = random.normal(size=(ROWS, COLUMNS))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + NOISE * random.normal(size=ROWS)


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        yield client


def by_numpy(z, X, y):
    """The log marginal likelihood of the targets given the hidden weights, without its constant."""
    first = z.reshape(WIDTH, COLUMNS + 1).T
    hidden = np.tanh(np.sqrt(2 / COLUMNS) * X @ first[:-1] + first[-1])
    features = np.column_stack([hidden * np.sqrt(4 / WIDTH), np.full(len(X), np.sqrt(0.01))])
    kernel = NOISE**2 * np.eye(len(X)) + features @ features.T
    return -0.5 * y @ np.linalg.solve(kernel, y) - 0.5 * np.linalg.slogdet(kernel)[1]


def test_the_density_is_that_of_numpy(client):
    X, y = table()
    with shards(X, y, count=3, client=client, **GIVEN) as density:
        assert density.dim == (COLUMNS + 1) * WIDTH
        assert density.rows == ROWS
        for seed in range(3):
            z = np.random.default_rng(seed).normal(size=density.dim)
            value, gradient = density(z)
            assert value == pytest.approx(by_numpy(z, X, y), rel=1e-9)
            step = 1e-5
            for at in range(density.dim):
                moved = np.eye(density.dim)[at] * step
                slope = (by_numpy(z + moved, X, y) - by_numpy(z - moved, X, y)) / (2 * step)
                assert gradient[at] == pytest.approx(slope, rel=1e-5, abs=1e-5)


def test_the_number_of_shards_changes_rounding_alone(client):
    X, y = table()
    several = [
        {**GIVEN, "noise": "learn"},
        {**GIVEN, "likelihood": "student-t", "noise": "learn"},
        {**GIVEN, "network": "fcn:4,5", "scales": "learn"},
        {**GIVEN, "coordinates": "repriorised", "noise": "learn-each"},
    ]
    for settings in several:
        found = []
        for count in (1, 2, 5):
            with shards(X, y, count=count, client=client, **settings) as density:
                z = np.random.default_rng(1).normal(size=density.dim)
                value, gradient = density(z)
                again = density(z)
                assert value == again[0]
                np.testing.assert_array_equal(gradient, again[1])
                found.append(np.append(gradient, value))
        for other in found[1:]:
            np.testing.assert_allclose(other, found[0], rtol=1e-9, atol=1e-9)


def test_classes_are_those_of_all_shards(client):
    X, y = table()
    labels = np.array(["low", "middle", "high"])[np.digitize(y, [-0.7, 0.7])]
    # the first shard has no row of one of them
    order = np.argsort(labels == "high", kind="stable")
    settings = {**GIVEN, "likelihood": "categorical", "noise": None}
    found = []
    for count in (1, 3):
        with shards(X[order], labels[order], count=count, classes=["low", "middle", "high"], client=client, **settings) as density:
            found.append(density(np.linspace(-1, 1, density.dim))[1])
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9, atol=1e-9)


def test_shards_may_be_functions_that_are_called_on_workers(client):
    X, y = table()

    def rows(first, last):
        return lambda: (X[first:last], y[first:last])

    z = np.linspace(-1, 1, (COLUMNS + 1) * WIDTH)
    with shards(X, y, count=2, client=client, **GIVEN) as split, shards([rows(0, 25), rows(25, ROWS)], client=client, **GIVEN) as called:
        assert split(z)[0] == called(z)[0]
        np.testing.assert_array_equal(split(z)[1], called(z)[1])


def test_chains_sample_it(client):
    X, y = table()
    lengths = {**SHORT, "chains": 2, "seed": 3}
    found = []
    for count in (1, 2):
        with shards(X, y, count=count, client=client, **GIVEN) as density:
            found.append(reprior.sample_density(density, density.dim, **lengths))
    assert found[0].draws.shape == (2, 10, (COLUMNS + 1) * WIDTH)
    # rounding grows along trajectories, and is small for the first draws
    np.testing.assert_allclose(found[0].draws[:, :2], found[1].draws[:, :2], rtol=1e-3, atol=1e-3)


def test_predictions_are_those_of_numpy(client):
    X, y = table()
    new = np.random.default_rng(5).normal(size=(6, COLUMNS))
    positions = np.random.default_rng(6).normal(size=(2, 3, (COLUMNS + 1) * WIDTH))
    with shards(X, y, count=3, client=client, **GIVEN) as density:
        found, functions = density.predict(positions, new), density.predict(positions, new, noise=False)
        some = density.predict(positions, new, draws=2)
        ends = density.predict(positions.reshape(6, -1)[[0, 5]], new)
    means, variances = [], []
    for z in positions.reshape(6, -1):
        first = z.reshape(WIDTH, COLUMNS + 1).T
        own, other = (np.tanh(np.sqrt(2 / COLUMNS) * rows @ first[:-1] + first[-1]) * np.sqrt(4 / WIDTH) for rows in (X, new))
        kernel = NOISE**2 * np.eye(len(X)) + own @ own.T + 0.01
        cross = other @ own.T + 0.01
        means.append(cross @ np.linalg.solve(kernel, y))
        variances.append((other**2).sum(axis=1) + 0.01 - (cross * np.linalg.solve(kernel, cross.T).T).sum(axis=1))
    np.testing.assert_allclose(found.mean, np.mean(means, axis=0), rtol=1e-8)
    spread = np.mean(variances, axis=0) + np.var(means, axis=0)
    np.testing.assert_allclose(functions.sd, np.sqrt(spread), rtol=1e-7)
    np.testing.assert_allclose(found.sd, np.sqrt(spread + NOISE**2), rtol=1e-8)
    assert (found.q05 < found.q50).all()
    assert (found.q50 < found.q95).all()
    np.testing.assert_array_equal(some.mean, ends.mean)


def test_predictions_hang_on_rounding_alone(client):
    X, y = table()
    labels = np.array(["low", "high"])[(y > 0).astype(int)]
    cases = [
        (y, None, {"noise": "learn", "network": "fcn:4,5", "scales": "learn"}),
        (y, None, {"noise": "learn", "coordinates": "repriorised"}),
        (y, None, {"likelihood": "student-t", "noise": "learn"}),
        (np.column_stack([y, -y]), None, {"noise": "learn-each"}),
        (labels, ["low", "high"], {"likelihood": "categorical", "noise": None}),
    ]
    for targets, classes, settings in cases:
        found = []
        for count in (1, 3):
            with shards(X, targets, count=count, classes=classes, client=client, **{**GIVEN, **settings}) as density:
                positions = np.random.default_rng(1).normal(size=(4, density.dim))
                own = density.predict(positions, X[:5])
                found.append(own.probabilities if classes else np.stack([own.mean, own.sd, own.q05]))
        assert np.isfinite(found[0]).all()
        np.testing.assert_allclose(found[1], found[0], rtol=1e-8, atol=1e-9)
        if classes:
            np.testing.assert_allclose(found[0].sum(axis=1), 1)


def test_chains_predict(client):
    """What is learned from the rows is found again at the same inputs."""
    random = np.random.default_rng(2)
    X = random.normal(size=(200, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * random.normal(size=200)
    with shards(X[:150], y[:150], client=client, network="fcn:16", activation="tanh", likelihood="gaussian", noise="learn") as density:
        found = reprior.sample_density(density, density.dim, **SHORT, chains=1)
        predicted = density.predict(found, X[150:])
        assert np.sqrt(np.mean((predicted.mean - y[150:]) ** 2)) < 0.3
        with pytest.raises(ValueError, match="rows of 2 columns"):
            density.predict(found, X[150:, :1])
        with pytest.raises(ValueError, match="coordinates of this density"):
            density.predict(found.draws[..., 1:], X[150:])
        with pytest.raises(ValueError, match="draws is 0"):
            density.predict(found, X[150:], draws=0)


def test_a_lost_worker_costs_an_evaluation(caplog):
    X, y = table()
    quiet = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with distributed.LocalCluster(**quiet) as cluster, distributed.Client(cluster) as client:
        with shards(X, y, count=3, client=client, **GIVEN) as density:
            z = np.linspace(-1, 1, density.dim)
            before = density(z)
            for _ in range(2):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
                after = density(z)
                assert after[0] == before[0]
                np.testing.assert_array_equal(after[1], before[1])
                client.wait_for_workers(2, timeout=60)


def test_arrays_may_begin_at_any_byte():
    cells = np.frombuffer(bytearray(8 * 41), np.uint8)[4 : 4 + 8 * 40].view(np.float64)
    cells[:] = np.linspace(-1, 1, 40)
    assert not cells.flags.aligned
    run = reprior.sample(cells.reshape(20, 2), np.sin(np.arange(20.0)), network="fcn:3", chains=1, warmup=3, draws=5, noise=0.3, progress=False)
    assert run.summary().draws == 5

    def density(z):
        gradient = np.frombuffer(bytearray(8 * 4), np.uint8)[4 : 4 + 8 * 3].view(np.float64)
        gradient[:] = -z
        return -0.5 * z @ z, gradient

    found = reprior.sample_density(density, 3, chains=1, warmup=20, draws=20, progress=False)
    assert np.isfinite(found.draws).all()


def test_close_lets_go(client):
    X, y = table()
    with shards(X, y, count=2, client=client, **GIVEN) as density:
        density(np.zeros(density.dim))
    with pytest.raises(RuntimeError, match="this density is closed"):
        density(np.zeros(density.dim))
    with pytest.raises(RuntimeError, match="this density is closed"):
        density.predict(np.zeros((1, density.dim)), X)
    held = client.run(lambda: len(__import__("reprior.distributed._shards", fromlist=["_shards"])._shards))
    assert set(held.values()) == {0}
    until = time.monotonic() + 10
    while client.run(lambda dask_worker: len(dask_worker.data)) and time.monotonic() < until:
        if not any(client.run(lambda dask_worker: len(dask_worker.data)).values()):
            return
        time.sleep(0.05)
    raise AssertionError("workers still hold rows")


def test_wrong_requests_are_refused(client):
    X, y = table()
    for settings, words in [
        ({"network": None}, "give --network"),
        ({"likelihood": None}, "give --likelihood"),
        ({"noise": None}, "give --noise"),
        ({"noise": "auto"}, "give --noise"),
        ({"scales": "evidence"}, "give --scales"),
        ({"coordinates": "tangent"}, "tangent coordinates"),
        ({"likelihood": "categorical", "noise": None}, "class"),
        ({"likelihood": "poisson", "noise": None}, "mean of all counts"),
    ]:
        with pytest.raises(ValueError, match=words):
            shards(X, y, count=2, client=client, **{**GIVEN, **settings})
    with pytest.raises(TypeError, match="no setting `warmup`"):
        shards(X, y, client=client, warmup=3, **GIVEN)
    with pytest.raises(ValueError, match="count is 0"):
        shards(X, y, count=0, client=client, **GIVEN)
    with pytest.raises(ValueError, match="targets for each row"):
        shards(X, y[:-1], client=client, **GIVEN)
    with pytest.raises(ValueError, match="rows of one table"):
        shards([(X, y), (X[:, :2], y)], client=client, **GIVEN)
    with pytest.raises(ValueError, match="the class 'other'"):
        shards(X, ["other"] * ROWS, classes=["a", "b"], client=client, **GIVEN)
    with pytest.raises(TypeError, match="list of pairs"):
        shards(X, client=client, **GIVEN)
    with pytest.raises(ValueError, match="finite"):
        shards(np.full_like(X, np.nan), y, count=2, client=client, **GIVEN)
