"""Densities of one's own: a normal one with known moments, by several methods."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import reprior

MEAN, SD = np.array([1.0, -2.0]), np.array([0.5, 2.0])


def normal(z):
    standardised = (z - MEAN) / SD
    return -0.5 * float(standardised @ standardised), -standardised / SD


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("nuts", {}),
        ("hmc", {"trajectory": 1.5, "max_steps": 40}),
        ("hmc-infinite", {}),
        ("mala", {"thin": 20}),
        ("langevin", {"thin": 20}),
        ("pcn", {"thin": 50}),
        ("pcnl", {"thin": 30}),
        ("elliptical", {"thin": 10}),
        ("rwm", {"thin": 50}),
        ("mams", {}),
        ("hmc-infinite", {"replicas": 2}),
    ],
)
def test_moments_are_those_of_the_density(method, settings):
    found = reprior.sample_density(normal, 2, method=method, warmup=300, draws=1000, seed=3, names=["a", "b"], **settings)
    assert found.draws.shape == (4, 1000, 2) and not found.is_stopped
    for name, mean, sd in zip("ab", MEAN, SD):
        own = found.summary()[name]
        assert own["r_hat"] < 1.03 and own["ess_bulk"] > 300
        assert abs(own["mean"] - mean) < 5 * own["mcse_mean"]
        # the error of a standard deviation is sd / sqrt(2 ess)
        assert abs(own["sd"] - sd) < 5 * sd / np.sqrt(2 * own["ess_tail"])
    assert found.to_frame().shape == (2, 6)
    assert found.to_datatree()["posterior"]["z"].sizes["draw"] == 1000


def test_a_density_against_the_standard_normal():
    def flat(z):
        return 0.0, np.zeros_like(z)

    found = reprior.sample_density(flat, 3, method="pcn", relative=True, warmup=200, draws=2000, seed=1)
    assert np.allclose(found.acceptance_rate, 1.0)
    assert np.allclose(found.draws.mean(axis=(0, 1)), 0.0, atol=0.3)


def test_what_the_function_raises_is_raised():
    def faulty(z):
        raise KeyError("nothing here")

    with pytest.raises(KeyError, match="nothing here"):
        reprior.sample_density(faulty, 2)
    with pytest.raises(ValueError, match="gradient has 3 numbers"):
        reprior.sample_density(lambda z: (0.0, np.zeros(3)), 2)
    with pytest.raises(ValueError, match="dim is 0"):
        reprior.sample_density(normal, 0)
    with pytest.raises(TypeError, match="must be a function"):
        reprior.sample_density(1, 2)
    with pytest.raises(ValueError, match="hmcc"):
        reprior.sample_density(normal, 2, method="hmcc")
    with pytest.raises(TypeError, match="returned a float: it must return a pair"):
        reprior.sample_density(lambda z: 0.0, 2)
    with pytest.raises(TypeError, match="step_size is 'a': it must be a number"):
        reprior.sample_density(normal, 2, step_size="a")
    with pytest.raises(ValueError, match="target acceptance 2 is out of range"):
        reprior.sample_density(normal, 2, target_acceptance=2)
    with pytest.raises(ValueError, match="cannot go without the Metropolis correction"):
        reprior.sample_density(normal, 2, metropolis=False)


def test_ctrl_c_keeps_the_draws(ctrl_c):
    def interrupt():
        time.sleep(0.7)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt) as caught:
        reprior.sample_density(normal, 2, warmup=10, draws=300_000)
    thread.join()
    assert caught.value.run.is_stopped
    assert caught.value.run.draws.shape[1] > 0 and caught.value.run.n_gradients > 0


def test_a_run_in_a_folder_goes_on(tmp_path):
    settings = {"method": "hmc", "warmup": 100, "draws": 400, "thin": 2, "chains": 2, "seed": 7, "names": ["a", "b"]}
    whole = reprior.sample_density(normal, 2, out=tmp_path / "whole", **settings)
    calls = []
    memory = reprior.sample_density(lambda z: calls.append(1) or normal(z), 2, **settings)
    assert np.array_equal(whole.draws, memory.draws) and whole.folder == tmp_path / "whole"
    assert (whole.n_gradients, whole.divergences, whole.step_size) == (memory.n_gradients, memory.divergences, memory.step_size)
    # by then each chain is half-way at least, however slow beside the other
    end = len(calls) * 3 // 4
    calls.clear()

    def faulty(z):
        calls.append(1)
        if len(calls) > end:
            raise ZeroDivisionError("out of luck")
        return normal(z)

    with pytest.raises(ZeroDivisionError):
        reprior.sample_density(faulty, 2, out=tmp_path / "run", checkpoint_seconds=0.0, **settings)
    part = reprior.open(tmp_path / "run")
    assert part.is_stopped and 0 < part.draws.shape[1] < 400 and part.names == ["a", "b"]
    assert np.array_equal(part.draws, whole.draws[:, : part.draws.shape[1]])
    with pytest.raises(ValueError, match="other settings: there it is `seed = 7`, and here `seed = 8`"):
        reprior.sample_density(normal, 2, out=tmp_path / "run", or_resume=True, **{**settings, "seed": 8})
    with pytest.raises(ValueError, match="run"):
        reprior.sample_density(normal, 2, out=tmp_path / "run", **settings)
    again = reprior.sample_density(normal, 2, out=tmp_path / "run", or_resume=True, **settings)
    assert np.array_equal(again.draws, whole.draws)
    assert (again.n_gradients, again.divergences, again.step_size) == (whole.n_gradients, whole.divergences, whole.step_size)
    opened = reprior.open(tmp_path / "run")
    assert not opened.is_stopped and opened.summary() == whole.summary()
    command = subprocess.run([Path(sys.executable).with_name("reprior"), "summary", tmp_path / "run"], capture_output=True, text=True, check=False)
    assert command.returncode == 2 and "is of a density of one's own: open the run in Python" in command.stderr
    files = lambda name: {path.relative_to(tmp_path / name): path.read_bytes() for path in (tmp_path / name / "draws.zarr").rglob("*") if path.is_file()}  # noqa: E731
    assert files("run") == files("whole")


def test_progress_of_a_density(capsys):
    def slow(z):
        time.sleep(0.001)
        return normal(z)

    seen, settings = [], {"method": "pcn", "chains": 2, "warmup": 50, "draws": 200, "thin": 1}
    reprior.sample_density(slow, 2, progress=seen.append, **settings)
    assert seen and seen[-1].chains == 2 and 0 < seen[-1].made <= 500
    reprior.sample_density(slow, 2, progress=True, **settings)
    assert capsys.readouterr().err.endswith("\r")


def test_ctrl_c_does_not_wait_for_a_slow_function(ctrl_c):
    runs = []

    def interrupted(at):
        seen, over = {}, threading.Event()

        def slow(z):
            if seen:
                # longer than anybody waits
                over.wait(20)
            return normal(z)

        def interrupt():
            time.sleep(0.5)
            seen["now"] = True
            at()

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt) as caught:
            reprior.sample_density(slow, 2, method="mala", warmup=10, draws=300_000, thin=1, chains=1)
        runs.append((caught.value.run, over))
        thread.join()

    took = ctrl_c.takes(interrupted)
    for _, over in runs:
        over.set()
    assert took < 0.2
    assert runs[-1][0].draws.shape[1] > 0
