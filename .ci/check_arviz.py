"""Opens a run's draws with xarray and ArviZ and compares the run's own diagnostics with ArviZ's.

usage: check_arviz.py RUN
"""

import json
import sys
from pathlib import Path

import arviz as az
import numpy as np
import xarray as xr

# The program's convergence diagnostics agree with ArviZ's to this relative difference.
TOLERANCE = 1e-6


def check_values(name: str, dataset: xr.Dataset) -> None:
    """Every variable is sampled, and no number is NaN."""
    for variable, array in dataset.data_vars.items():
        assert array.dims[:2] == ("chain", "draw"), f"{name}/{variable} has dims {array.dims}"
        assert array.size > 0, f"{name}/{variable} is empty"
        assert not np.isnan(array.values).any(), f"{name}/{variable} has NaN"


def largest(dataset: xr.Dataset) -> float:
    """The largest of a set of statistics."""
    return max(float(array.max()) for array in dataset.data_vars.values())


def check_rhat(ours: float, posterior: xr.Dataset, predictions: xr.Dataset | None) -> None:
    """`rhat_max` is ArviZ's, over one of the sets of variables that it can be said of."""
    sets = {"posterior": posterior}
    projections = [name for name in posterior.data_vars if "projection" in str(name)]
    if projections:
        sets["projections"] = posterior[projections]
    if predictions is not None:
        sets["predictions"] = predictions
    theirs = {name: largest(az.rhat(dataset)) for name, dataset in sets.items()}
    theirs["posterior and predictions"] = max(theirs.values())
    agreeing = [name for name, value in theirs.items() if abs(ours / value - 1) < TOLERANCE]
    assert agreeing, f"the summary's rhat_max is {ours}, ArviZ's are {theirs}"
    print(f"rhat_max {ours:.6f} is ArviZ's over {agreeing[0]}")


def main(run: Path) -> None:
    tree = xr.open_datatree(run / "draws.zarr", engine="zarr")
    idata = az.InferenceData.from_datatree(tree)
    assert "posterior" in idata.groups(), f"there is no posterior among {idata.groups()}"
    posterior = idata["posterior"]
    check_values("posterior", posterior)
    predictions = None
    if "predictions" in idata.groups() and "draw" in idata["predictions"].dims:
        predictions = idata["predictions"]
        check_values("predictions", predictions)

    table = az.summary(idata, group="posterior", round_to="none")
    chains = posterior.sizes["chain"]
    columns = ["mean", "sd", "ess_bulk", "ess_tail"] + (["r_hat"] if chains > 1 else [])
    assert np.isfinite(table[columns].to_numpy(float)).all(), f"not finite:\n{table[columns]}"
    print(table.head(5).to_string(float_format=lambda value: f"{value:.4g}"))
    print(f"{len(table)} rows; {chains} chains of {posterior.sizes['draw']} draws in {run}")

    path = run / "summary.json"
    if path.exists() and chains > 1:
        ours = json.loads(path.read_text()).get("rhat_max")
        if ours is not None:
            check_rhat(ours, posterior, predictions)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
