"""Runs: in memory and in folders, waited for and not, stopped, pickled, read."""

import os
import pickle
import signal
import threading
import time

import numpy as np
import pytest
from conftest import FAST

import reprior


@pytest.fixture(scope="module")
def run(line):
    return reprior.sample(*line, **FAST)


def test_a_run_says_what_it_found(run):
    assert run.is_finished and not run.is_stopped and run.folder is None
    summary = run.summary()
    assert (summary.chains, summary.draws, summary.method) == (2, 30, "hmc-infinite")
    assert summary.metrics["rmse"] < 0.5
    assert summary.verdict.level in ("good", "caution", "bad") and summary.verdict.checks
    frame = summary.to_frame()
    assert frame.shape[0] == 1 and frame["metrics.rmse"][0] == summary.metrics["rmse"]
    assert run.settings["model"]["network"] == "fcn:8"
    assert "Verdict" in str(summary) and "<table>" in run._repr_html_()
    loo = run.loo()
    assert len(loo.rows) == len(loo.log_densities) == 48
    assert loo.log_densities.sum() == pytest.approx(loo.elpd_loo)


def test_predictions_are_those_of_the_line(run, line):
    X, y = line
    found = run.predict(X)
    assert found.mean.shape == (60,) and found.names == ["y"]
    assert np.abs(found.mean - y).mean() < 0.3
    assert ((found.q05 < found.q50) & (found.q50 < found.q95)).all()
    without = run.predict(X, noise=False)
    assert (without.sd < found.sd).all() and np.allclose(without.mean, found.mean)
    assert list(found.to_frame().columns) == ["mean", "sd", "q05", "q50", "q95"]
    with pytest.raises(ValueError, match="3 columns, but the run was made with 2"):
        run.predict(np.zeros((4, 3)))


def test_draws_are_a_datatree(run):
    tree = run.draws
    assert tree["posterior"]["projection"].sizes["draw"] == 30
    assert tree["sample_stats"]["acceptance_rate"].sizes["chain"] == 2


def test_a_run_stays_where_it_is(line, tmp_path, monkeypatch):
    """Whatever folder the process goes to."""
    monkeypatch.chdir(tmp_path)
    made = reprior.sample(*line, out="run", **FAST)
    opened = reprior.open("run")
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path / "other")
    assert made.folder == opened.folder == tmp_path / "run"
    assert np.array_equal(made.predict(line[0]).mean, opened.predict(line[0]).mean)


def test_the_same_seed_in_a_folder_and_in_memory(run, line, tmp_path):
    out = tmp_path / "run"
    other = reprior.sample(*line, out=out, **FAST)
    assert other.folder == out
    X = line[0]
    assert np.array_equal(other.predict(X).mean, run.predict(X).mean)
    opened = reprior.open(out)
    assert np.array_equal(opened.predict(X).sd, run.predict(X).sd)
    assert opened.draws["posterior"].sizes["draw"] == 30
    with pytest.raises(ValueError, match="holds a run already"):
        reprior.sample(*line, out=out, **FAST)
    reprior.sample(*line, out=out, overwrite=True, **FAST)
    run.save(tmp_path / "saved")
    saved = reprior.open(tmp_path / "saved")
    assert np.array_equal(saved.predict(X).mean, run.predict(X).mean)
    assert "<html" in run.report()
    assert (tmp_path / "page.html").samefile(opened.report(tmp_path / "page.html"))


def test_a_script_that_is_started_again_goes_on(line, tmp_path):
    made = reprior.sample(*line, out=tmp_path / "run", or_resume=True, checkpoint_seconds=0.5, **FAST)
    files = made._inner.to_files("")
    again = reprior.sample(*line, out=tmp_path / "run", or_resume=True, **FAST)
    assert again.summary().draws == 30 and again._inner.to_files("")["draws.zarr/zarr.json"] == files["draws.zarr/zarr.json"]
    with pytest.raises(ValueError, match="holds another run: its seed is 0, not 3"):
        reprior.sample(*line, out=tmp_path / "run", or_resume=True, seed=3, **FAST)
    X, y = line
    with pytest.raises(ValueError, match="not those"):
        reprior.sample(X, y + 1, out=tmp_path / "run", or_resume=True, **FAST)
    for wrong in ({}, {"out": tmp_path / "run", "overwrite": True}):
        with pytest.raises(TypeError, match="or_resume is for"):
            reprior.sample(*line, or_resume=True, **wrong, **FAST)
    with pytest.raises(ValueError, match="checkpoint_seconds"):
        reprior.sample(*line, checkpoint_seconds=-1.0, **FAST)


def test_runs_of_other_chains_are_put_together(line, tmp_path):
    whole = reprior.sample(*line, out=tmp_path / "whole", **FAST)
    one = {**FAST, "chains": 1}
    for chain in (0, 1):
        reprior.sample(*line, out=tmp_path / f"part-{chain}", first_chain=chain, **one)
    run = reprior.merge([tmp_path / "part-0", tmp_path / "part-1"], tmp_path / "merged")
    assert run.summary().chains == 2 and run.summary().rhat_max == whole.summary().rhat_max
    assert np.array_equal(run.predict(line[0]).mean, whole.predict(line[0]).mean)
    with pytest.raises(ValueError, match="both have chain 0"):
        reprior.merge([tmp_path / "part-0", tmp_path / "whole"], tmp_path / "twice")
    run = reprior.merge([tmp_path / "part-0", tmp_path / "whole"], tmp_path / "twice", allow_overlaps=True)
    assert run.settings["run"]["chains"] == 2


def test_a_run_is_pickled_with_its_draws(run, line):
    again = pickle.loads(pickle.dumps(run))
    assert np.array_equal(again.predict(line[0]).mean, run.predict(line[0]).mean)
    assert again.summary().all == run.summary().all


def test_a_run_that_is_read_has_its_notes(line, tmp_path):
    X = np.column_stack([line[0], np.ones(60)])
    run = reprior.sample(X, line[1], out=tmp_path / "run", **FAST)
    constant = next(note for note in run.notes if "do not vary" in note)
    assert constant in reprior.open(tmp_path / "run").notes and constant in pickle.loads(pickle.dumps(run)).notes


def test_waiting_stopping_and_going_on(line):
    long = {**FAST, "warmup": 100_000, "draws": 1_000_000, "keep_mb": 20}
    run = reprior.sample(*line, **long, wait=False)
    try:
        assert not run.is_finished and not run.wait(0.05)
        with pytest.raises(ValueError, match="still going"):
            pickle.dumps(run)
        until = time.monotonic() + 30
        while run.progress.made == 0 and time.monotonic() < until:
            time.sleep(0.02)
        assert run.progress.made > 0 and "left" in str(run.progress)
    finally:
        start = time.monotonic()
        assert run.stop(30)
    assert time.monotonic() - start < 10
    assert run.is_stopped and run.wait()
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(run))))
    assert again.is_stopped and again.is_finished


def test_a_run_that_was_stopped_goes_on(line):
    calls = []

    def stop(progress):
        calls.append(progress)

    run = reprior.sample(*line, **{**FAST, "progress": stop})
    assert calls and calls[-1].is_finished
    longer = run.resume(minutes=0.01, progress=False)
    assert longer.summary().draws >= run.summary().draws == 30


def test_ctrl_c_stops_soon_and_keeps_the_draws(line, ctrl_c):
    runs = []

    def interrupted(at):
        seen = {}

        def interrupt():
            time.sleep(0.3)
            at()

        def begin(progress):
            # both chains draw: they take turns
            if progress.made > 5000 and not seen:
                seen["thread"] = threading.Thread(target=interrupt)
                seen["thread"].start()

        long = {**FAST, "warmup": 20, "draws": 2_000_000, "progress": begin}
        with pytest.raises(KeyboardInterrupt) as caught:
            reprior.sample(*line, **long)
        seen["thread"].join()
        runs.append(caught.value.run)

    assert ctrl_c.takes(interrupted) < 0.2
    run = runs[-1]
    assert run.stop(30) and run.is_stopped
    summary = run.summary()
    assert summary.status == "incomplete" and 0 < summary.draws < 2_000_000


def test_ctrl_c_ends_what_is_computed_from_a_run(run, line, ctrl_c):
    """Predictions for rows that take seconds; what is asked next is answered."""
    before = run.predict(line[0]).mean
    many = np.random.default_rng(0).normal(size=(400_000, 2))

    def interrupted(at):
        timer = threading.Timer(1.0, at)
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            run.predict(many)
        timer.join()

    assert ctrl_c.takes(interrupted) < 0.2
    assert np.array_equal(run.predict(line[0]).mean, before)


def test_a_run_that_was_killed_goes_on(line, tmp_path):
    """By SIGKILL, in a folder: what is left opens, goes on, and ends as a run that nobody killed."""
    import subprocess
    import sys

    settings = {"network": "fcn:8", "chains": 2, "warmup": 30, "draws": 6000, "thin": 1, "threads": 1, "seed": 2}
    np.savez(tmp_path / "line.npz", X=line[0], y=line[1])
    code = f"""
import numpy as np, reprior
data = np.load({str(tmp_path / "line.npz")!r})
reprior.sample(data["X"], data["y"], out={str(tmp_path / "run")!r}, checkpoint_seconds=0.05, progress=False, **{settings!r})
"""
    child = subprocess.Popen([sys.executable, "-c", code])
    until = time.monotonic() + 60
    while not list((tmp_path / "run").glob("checkpoint/*.safetensors")) and time.monotonic() < until:
        time.sleep(0.01)
    child.kill()
    child.wait()
    killed = reprior.open(tmp_path / "run")
    assert killed.summary().status == "incomplete"
    whole = killed.resume(progress=False)
    other = reprior.sample(*line, progress=False, **settings)
    assert whole.summary().draws == 6000 and whole.summary().status == "complete"
    assert np.array_equal(whole.predict(line[0]).mean, other.predict(line[0]).mean)


def test_who_asks_does_not_wait_for_who_computes(run, line):
    """While one thread predicts, others of Python go on, also those that ask the same run."""
    many = np.random.default_rng(0).normal(size=(8_000, 2))
    predictor, _ = run._predicting(line[0])
    thread = threading.Thread(target=lambda: run.predict(many))
    thread.start()
    waits = []
    while thread.is_alive():
        start = time.monotonic()
        predictor.output_names()
        time.sleep(0.001)
        waits.append(time.monotonic() - start)
    thread.join()
    # the columns themselves are copied with Python's lock held
    assert len(waits) > 5 and np.quantile(waits, 0.9) < 0.1, waits


def test_progress_is_shown_on_a_line_that_is_written_over(capsys):
    from reprior._progress import Progress, Shown

    now = Progress(chains=2, made=30, total=100, seconds=2.0, is_warmup=False, acceptance_rate=0.8, diverging=1, is_finished=False, rhat=1.02, before=10)
    assert str(now) == "30/100, 10/s, 7 s left, sampling, acceptance 0.80, R-hat 1.02, 1 diverging"
    shown = Shown()
    shown.update(now)
    shown.end()
    text = capsys.readouterr().err
    assert text.startswith("\r" + str(now)) and text.endswith("\r" + " " * len(str(now)) + "\r")


def test_the_line_is_wiped_where_a_run_is_interrupted(line, capsys, ctrl_c):
    timer = threading.Timer(0.8, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        reprior.sample(*line, **{**FAST, "draws": 2_000_000, "progress": True})
    assert capsys.readouterr().err.endswith(" \r")


def test_classes_from_text(moons):
    X, y = moons
    run = reprior.sample(X, y, **FAST)
    found = run.predict(X)
    assert found.classes == ["other", "same"]
    assert np.allclose(found.probabilities.sum(axis=1), 1.0)
    assert np.mean(np.array(found.labels) == y) > 0.7
    assert list(found.to_frame().columns) == ["p_other", "p_same", "label", "confidence", "entropy"]


def test_files_instead_of_arrays(tmp_path):
    run = reprior.sample(data="friedman", train=40, test=10, **FAST)
    assert run.summary().metrics["rmse"] > 0


def test_other_threads_run_while_it_computes(line):
    counted = []
    run = reprior.sample(*line, **{**FAST, "draws": 100_000}, wait=False)
    thread = threading.Thread(target=lambda: counted.extend(range(1000)))
    thread.start()
    run.wait(0.3)
    thread.join(5)
    assert len(counted) == 1000
    run.stop()


def _in_child(run, X, results):
    try:
        results.put(float(run.predict(X).mean.sum()))
    except reprior.RunError as error:
        results.put(str(error))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_other_processes_do_not_hang(run, line, start):
    import multiprocessing

    context = multiprocessing.get_context(start)
    results = context.Queue()
    cases = [(run, float(run.predict(line[0]).mean.sum()))]
    going = reprior.sample(*line, **{**FAST, "draws": 500_000}, wait=False)
    if start == "fork":
        cases.append((going, "the run goes on in the process that started it, not in this fork of it"))
    try:
        for case, expected in cases:
            child = context.Process(target=_in_child, args=(case, line[0], results))
            child.start()
            assert results.get(timeout=60) == expected
            child.join(60)
            assert child.exitcode == 0
    finally:
        going.stop(30)
