"""ArviZ, 1.x or 0.23, reads runs as they are: in memory and in folders, made here."""

import numpy as np
import pytest
from conftest import FAST

import reprior

az = pytest.importorskip("arviz")


def as_arviz(draws):
    """A tree since 1.0; before it ArviZ has a class of its own for groups."""
    if not az.__version__.startswith("0."):
        return draws
    return az.InferenceData(**{name: group.to_dataset() for name, group in draws.children.items()})


@pytest.mark.parametrize("place", ["memory", "folder"])
def test_arviz_says_what_the_summary_says(line, tmp_path, place):
    out = tmp_path / "run" if place == "folder" else None
    run = reprior.sample(*line, out=out, watch=20, keep_log_likelihood=30, **{**FAST, "draws": 60})
    found = as_arviz(run.draws)
    table = az.summary(found, group="posterior", round_to="none", kind="diagnostics")
    rhat = np.asarray(table["r_hat"], dtype=float)
    assert np.isfinite(rhat).all() and rhat.min() > 0.9
    loo = az.loo(found)
    elpd = getattr(loo, "elpd", None)
    elpd = loo.elpd_loo if elpd is None else elpd
    # since 1.0 the length of a tail is rounded down, not up: as reprior has it
    tolerance = 5e-3 if az.__version__.startswith("0.") else 1e-6
    assert abs(elpd - run.loo().elpd_loo) < tolerance * abs(elpd)


def test_arviz_summarises_a_density_of_ones_own():
    found = reprior.sample_density(lambda z: (-0.5 * float(z @ z), -z), 2, warmup=50, draws=100, names=["a", "b"])
    table = az.summary(as_arviz(found.to_datatree()), round_to="none")
    ours = found.summary()
    assert np.allclose(table["r_hat"].astype(float), [ours["a"]["r_hat"], ours["b"]["r_hat"]], rtol=1e-6)
