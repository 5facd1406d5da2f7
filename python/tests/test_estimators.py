"""The estimators beyond scikit-learn's checks: uncertainties against closed forms and each other, tools around them, time."""

import pickle
import re
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import DotProduct, WhiteKernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import reprior
from reprior import BNNClassifier, BNNRegressor

CHAINS = {"chains": 2, "warmup": 40, "draws": 40, "thin": 1}
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def small(**words):
    return BNNRegressor((8,), settings=CHAINS, n_jobs=1, random_state=0, **words)


@pytest.fixture(scope="module")
def fitted(line):
    return small().fit(*line)


def test_a_linear_network_is_bayesian_linear_regression(line):
    """In closed form: weights N(0, 4/d), bias N(0, 0.01), on standardised data with known noise; to rounding."""
    X, y = line
    model = BNNRegressor((), method="hmc-infinite", noise=0.2, settings={**CHAINS, "watch": 10}).fit(X, y)
    new = np.array([[0.5, 1.0], [-3.0, 2.0], [10.0, 0.0]])
    mean, sd = model.predict(new, return_std=True)
    centre, scale = X.mean(axis=0), X.std(axis=0)
    design = lambda X: np.column_stack([(X - centre) / scale * np.sqrt(4 / 2), np.full(len(X), 0.1)])  # noqa: E731
    A, target = design(X), (y - y.mean()) / y.std()
    precision = np.eye(3) + A.T @ A / 0.2**2
    weights = np.linalg.solve(precision, A.T @ target) / 0.2**2
    B = design(new)
    variance = np.einsum("ij,ji->i", B, np.linalg.solve(precision, B.T)) + 0.2**2
    assert np.allclose(mean, y.mean() + y.std() * (B @ weights), atol=1e-6)
    assert np.allclose(sd, y.std() * np.sqrt(variance), atol=1e-6)


def test_minibatches_and_laplace(line):
    """Methods without chains over all rows have nothing to reduce."""
    X, y = line
    for method in ("sgld", "laplace"):
        model = BNNRegressor((8,), method=method, noise=0.3, settings={"epochs": 40, "draws": 10})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        assert model.run_.settings["sampler"]["method"] == method
        assert np.isfinite(model.predict(X)).all()



def test_advice_is_in_words_of_python():
    from reprior.estimators import _in_python

    assert _in_python("use --chains 4, or raise --minutes, or --warmup and --draws") == "use `chains=4`, or raise `minutes`, or `warmup` and `draws`"
    assert _in_python("--likelihood student-t expects such") == "`likelihood='student-t'` expects such"


def test_rows_of_text_do_not_hang_on_their_batch():
    """A column of many levels has more columns than the table has rows, of which a reduced input would draw what is new for all rows together."""
    import pandas

    random = np.random.default_rng(3)
    frame = pandas.DataFrame({"level": [f"level {at % 15:02}" for at in range(18)], "x": random.normal(size=18)})
    model = BNNRegressor((8,), settings=CHAINS, n_jobs=1, random_state=0).fit(frame, random.normal(size=18))
    new = pandas.DataFrame({"level": ["level 03", "elsewhere", "level 14"], "x": [0.3, -2.0, 1.0]})
    one_by_one = [model.predict(new.iloc[[row]], return_std=True) for row in range(3)]
    mean, sd = model.predict(new, return_std=True)
    assert np.allclose(mean, [own[0][0] for own in one_by_one], rtol=1e-9)
    assert np.allclose(sd, [own[1][0] for own in one_by_one], rtol=1e-9)


def test_what_is_wrong_is_said(fitted, line):
    X, y = line
    with pytest.raises(ValueError, match="y has 2 target.s., and the estimator was fitted to 1"):
        fitted.log_predictive_density(X, np.column_stack([y, y]))
    with pytest.raises(TypeError, match="hidden_layer_sizes is 3.5"):
        BNNRegressor(3.5).fit(X, y)
    with pytest.raises(TypeError, match="settings is .*: it must be a dict"):
        BNNRegressor(settings=["draws"]).fit(X, y)
    with pytest.raises(ValueError, match="`task` is in `settings`"):
        BNNRegressor(settings={"task": "classification"}).fit(X, y)
    with pytest.raises(ValueError, match="`noise` is given as a parameter and in `settings`"):
        BNNRegressor(noise=0.1, settings={"noise": 0.2}).fit(X, y)


def test_a_fit_shows_how_it_gets_on(line, capsys):
    # long enough to be looked at on its way
    longer = {**CHAINS, "draws": 5000}
    small(verbose=True).set_params(settings=longer).fit(*line)
    assert "left" in capsys.readouterr().err
    small().fit(*line)
    assert "left" not in capsys.readouterr().err


def test_a_fit_that_is_interrupted_has_its_draws_and_goes_on(line, tmp_path, ctrl_c):
    import os
    import signal
    import threading

    settings = {**CHAINS, "draws": 1_000_000}
    model = BNNRegressor((8,), settings=settings, n_jobs=2, random_state=0, out=tmp_path / "run")

    def interrupt():
        # once both chains have written draws
        until = time.monotonic() + 60
        written = lambda chain: any((tmp_path / "run").glob(f"draws.zarr/sample_stats/*/c.{chain}.0"))  # noqa: E731
        while not (written(0) and written(1)) and time.monotonic() < until:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt) as caught:
        model.fit(*line)
    thread.join()
    run = caught.value.run
    assert run.stop(30) and run.is_stopped
    before = reprior.open(tmp_path / "run").summary()
    assert before.status == "incomplete" and before.draws > 0
    longer = reprior.open(tmp_path / "run").resume(wait=False)
    until = time.monotonic() + 60
    while longer.progress.made <= longer.progress.before + 200 and time.monotonic() < until:
        time.sleep(0.01)
    assert longer.stop(30)
    # what this process makes counts for its rate, and not what the other one made
    progress = longer.progress
    assert progress.before > 0 and progress.rate < progress.made / progress.seconds
    assert longer.summary().draws > before.draws


@pytest.mark.parametrize("classes", [["a", "b"], ["b c", "a", "z"], [3, 7, 10], ["", "NA"], ["NAT", "b", "c"], ["yes", "no"], [1.0, 2.0], [True, False]])
def test_a_run_has_the_names_of_classes(classes):
    random = np.random.default_rng(4)
    y = np.array(classes)[random.integers(len(classes), size=60)]
    X = np.column_stack([np.searchsorted(np.unique(y), y) + 0.1 * random.normal(size=60), random.normal(size=60)])
    model = BNNClassifier((8,), settings=CHAINS, n_jobs=1, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.9
    names = model.run_.predict(X).classes
    if classes[0] in ("a", "b c"):
        assert names == sorted(classes)
    elif classes[0] == 3:
        assert names == ["3", "7", "10"]
    assert np.allclose(model.predict_proba(X)[np.arange(60), np.searchsorted(model.classes_, y)], np.exp(model.log_predictive_density(X, y)), atol=1e-6)


def test_a_class_cannot_be_called_what_tables_have_for_missing_cells():
    from reprior.estimators import _MISSING

    source = Path(__file__).parents[2] / "crates" / "reprior-io" / "src" / "data" / "targets.rs"
    words = re.search(r"const WORDS: .*?= \[(.*?)\];", source.read_text(encoding="utf-8"), re.DOTALL)[1]
    assert set(re.findall(r'"(.*?)"', words)) == _MISSING


@pytest.mark.parametrize("classes", [["a", "b", "c"], [3, 7, 10]])
def test_a_class_that_loses_its_rows_is_said(classes):
    y = np.array(classes * 10)
    X = np.random.default_rng(4).normal(size=(30, 2))
    X[y == classes[1], 0] = np.nan
    settings = {**CHAINS, "warmup": 10, "draws": 10, "missing": "drop"}
    model = BNNClassifier((8,), settings=settings, n_jobs=1, random_state=0)
    with pytest.raises(ValueError, match=f"no row of the class `{classes[1]}`"):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_uncertainties_agree_with_each_other(fitted, line):
    X, y = line
    for model in (fitted, BNNRegressor((8,), method="nngp").fit(X, y)):
        mean, sd = model.predict(X, return_std=True)
        same, covariance = model.predict(X, return_cov=True)
        assert np.array_equal(mean, same)
        assert np.allclose(np.diag(covariance), sd**2)
        assert np.linalg.eigvalsh(covariance).min() > -1e-9
        samples = model.sample_y(X, n_samples=4000, random_state=1)
        assert samples.shape == (60, 4000)
        # six standard errors of a mean of 4000; effective functions of chains are fewer
        assert (np.abs(samples.mean(axis=1) - mean) < 6 * sd / np.sqrt(4000) + 0.25 * sd).all()
        assert np.allclose(samples.std(axis=1), sd, rtol=0.25)
        low, high = model.predict_interval(X, 0.5).T
        median = model.predict_quantiles(X, 0.5)
        assert ((low < median) & (median < high)).all()
        assert np.array_equal(model.predict_quantiles(X, [0.25, 0.75])[:, 0], low)
        assert (model.log_predictive_density(X, y) > model.log_predictive_density(X, y + 3)).all()


def test_samples_of_a_closed_form_have_its_covariance(line):
    X, y = line
    model = BNNRegressor((8,), method="nngp").fit(X, y)
    new = np.array([[0.0, 0.0], [0.1, 0.0], [4.0, 0.0]])
    _, covariance = model.predict(new, return_cov=True)
    samples = model.sample_y(new, n_samples=40_000, random_state=3)
    # an entry's standard error is at most sqrt(2/40000) of the product of standard deviations
    sds = np.sqrt(np.diag(covariance))
    assert np.abs((np.cov(samples) - covariance) / np.outer(sds, sds)).max() < 6 * np.sqrt(2 / 40_000)


def test_a_row_does_not_hang_on_its_batch(line):
    """Also with more columns than rows, where inputs could be reduced."""
    random = np.random.default_rng(5)
    wide = random.standard_normal((12, 30))
    for model, X in ((small(), line[0]), (small(), wide)):
        model.fit(X, X[:, 0])
        whole, sd = model.predict(X, return_std=True)
        parts = [model.predict(X[row : row + 1], return_std=True) for row in range(len(X))]
        assert np.allclose(whole, np.concatenate([mean for mean, _ in parts]), atol=1e-9)
        assert np.allclose(sd, np.concatenate([sd for _, sd in parts]), atol=1e-9)


def test_several_targets(line):
    X, y = line
    Y = np.column_stack([y, -y])
    model = small().fit(X, Y)
    mean, sd = model.predict(X, return_std=True)
    assert mean.shape == sd.shape == (60, 2)
    assert model.predict(X, return_cov=True)[1].shape == (60, 60, 2)
    assert model.sample_y(X, 3).shape == (60, 2, 3)
    assert model.predict_interval(X).shape == (60, 2, 2)
    assert model.log_predictive_density(X, Y).shape == (60,)
    with pytest.raises(RuntimeError, match="At most one"):
        model.predict(X, return_std=True, return_cov=True)


def test_counts_and_outliers(line):
    X, _ = line
    random = np.random.default_rng(4)
    counts = random.poisson(np.exp(1.0 + 0.5 * X[:, 0]))
    model = small(likelihood="poisson").fit(X, counts)
    samples = model.sample_y(X, 200)
    assert (samples >= 0).all() and (samples == samples.round()).all()
    assert np.abs(samples.mean() - counts.mean()) < 1.0
    heavy = small(likelihood="student-t").fit(X, line[1])
    assert heavy.sample_y(X, 5).shape == (60, 5)
    varying = small(likelihood="gaussian-heteroscedastic").fit(X, line[1])
    mean, sd = varying.predict(X, return_std=True)
    samples = varying.sample_y(X, 2000)
    assert np.allclose(samples.std(axis=1), sd, rtol=0.4)
    both = small(likelihood="student-t-heteroscedastic").fit(X, line[1])
    samples = both.sample_y(X, 2000)
    low, high = both.predict_quantiles(X, [0.25, 0.75]).T
    assert np.allclose(((samples > low[:, None]) & (samples < high[:, None])).mean(), 0.5, atol=0.05)


def test_classes_of_any_kind(moons):
    X, y = moons
    for labels in (y, (y == "same"), np.where(y == "same", 7, -2), np.where(y == "same", 0.5, 1.5).astype(str)):
        model = BNNClassifier((16,), settings=CHAINS, n_jobs=1, random_state=0).fit(X, labels)
        assert np.array_equal(model.classes_, np.unique(labels))
        assert (model.predict(X) == labels).mean() > 0.7
        p = model.predict_proba(X)
        assert np.allclose(p.sum(axis=1), 1) and np.allclose(np.log(p), model.predict_log_proba(X), atol=1e-9)
        log_density = model.log_predictive_density(X, labels)
        assert np.allclose(np.exp(log_density), p[np.arange(80), np.searchsorted(model.classes_, labels)])
    with pytest.raises(ValueError, match="single class"):
        model.fit(X, np.zeros(80))
    with pytest.raises(ValueError, match="which no training row has"):
        model.log_predictive_density(X, np.array(["x"] * 80))


def test_what_a_fit_says(fitted, line, tmp_path):
    summary = fitted.summary_
    # rows that train test nothing
    assert summary.metrics is None and summary.loo["rows"] == 60
    assert summary.ess["prediction"]["rhat_max"] > 0
    assert any("all rows train" in note for note in fitted.notes_)
    assert fitted.inference_data_["posterior"].sizes["chain"] == 2
    assert "<html" in fitted.report_()
    model = small(out=tmp_path / "run").fit(*line)
    assert model.run_.folder == tmp_path / "run"
    assert np.array_equal(model.predict(line[0]), fitted.predict(line[0]))
    model.fit(*line)


def test_chains_that_disagree_are_warned_of(line):
    X, y = line
    short = {"chains": 2, "warmup": 0, "draws": 5, "thin": 1, "step_size": 1e-4, "start": "prior"}
    with pytest.warns(ConvergenceWarning, match="Do not believe the predictions yet") as warned:
        BNNRegressor((8,), settings=short, n_jobs=1).fit(X, y)
    # the way out is the estimator's, not the program's
    assert all("reprior resume" not in str(one.message) for one in warned)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        BNNRegressor((8,), method="nngp").fit(X, y)


def test_tools_around_estimators(line, moons):
    X, y = line
    search = GridSearchCV(small(), {"hidden_layer_sizes": [(4,), (8,)]}, cv=2, n_jobs=2).fit(X, y)
    assert search.best_score_ > 0.9
    pipeline = make_pipeline(StandardScaler(), small()).fit(X, y)
    again = pickle.loads(pickle.dumps(pipeline))
    assert np.array_equal(again.predict(X), pipeline.predict(X))
    scores = cross_val_score(BNNClassifier((8,), method="nngp", likelihood="gaussian"), *moons, cv=3)
    assert scores.mean() > 0.6
    assert clone(small(noise=0.3)).get_params()["noise"] == 0.3


def test_parameters_that_are_refused(line):
    for words, error, text in [
        ({"hidden_layer_sizes": (0,)}, ValueError, "at least 1"),
        ({"budget": -1}, ValueError, "above 0, in seconds"),
        ({"budget": "1"}, TypeError, "number of seconds"),
        ({"n_jobs": 0}, ValueError, "n_jobs is 0"),
        ({"settings": {"seed": 1}}, ValueError, "give it once"),
        ({"settings": {"colour": 1}}, TypeError, "unexpected keyword argument `colour`"),
        ({"activation": "step"}, ValueError, "step"),
    ]:
        with pytest.raises(error, match=text):
            BNNRegressor(**words).fit(*line)


def test_a_budget_is_kept(line):
    start = time.perf_counter()
    model = BNNRegressor((16,), budget=1.5, n_jobs=1, settings={"chains": 2}).fit(*line)
    assert 1.0 < time.perf_counter() - start < 8
    assert model.summary_.draws > 10


def test_a_small_fit_is_quick(line):
    X, y = line[0][:50], line[1][:50]
    model = small()
    model.fit(X, y)
    times = []
    for _ in range(5):
        # of the processor: the machine may be busy with other things
        start = time.process_time()
        model.fit(X, y)
        times.append(time.process_time() - start)
    assert min(times) < 0.2, times


def test_the_same_answer_as_a_gaussian_process_with_a_linear_kernel(line):
    """A network without hidden layers is a Gaussian process with a dot product as its kernel; noise and scales are fitted by both."""
    X, y = line
    ours = BNNRegressor((), settings=CHAINS).fit(X, y)
    theirs = GaussianProcessRegressor(DotProduct() + WhiteKernel(), normalize_y=True).fit(X, y)
    new = np.array([[0.5, 1.0], [-1.0, 2.0]])
    assert np.allclose(ours.predict(new), theirs.predict(new), atol=0.1)
