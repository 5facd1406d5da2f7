"""Opens runs' draws with xarray and ArviZ, 1.x or 0.23, and compares the runs' own diagnostics with ArviZ's.

usage: check_arviz.py RUN...
"""

import json
import sys
import warnings
from pathlib import Path

import arviz as az
import numpy as np
import xarray as xr

# The program's diagnostics agree with ArviZ's to this relative difference.
TOLERANCE = 1e-6


# of which runs have neither effective sample sizes nor R-hat
NO_SAMPLERS = {"map", "dropout", "swag", "ensemble", "laplace", "laplace-diffusion"}


def check_values(name: str, dataset: xr.Dataset) -> None:
    """Every variable is sampled, no number is NaN, and chains and draws are counted from 0, of predictions perhaps not each draw."""
    for variable, array in dataset.data_vars.items():
        assert array.dims[:2] == ("chain", "draw"), f"{name}/{variable} has dims {array.dims}"
        assert array.size > 0, f"{name}/{variable} is empty"
        assert not np.isnan(array.values).any(), f"{name}/{variable} has NaN"
    draws = dataset["draw"].values
    every = draws[1] if name == "predictions" and len(draws) > 1 else 1
    assert every > 0 and (draws == every * np.arange(len(draws))).all(), f"{name} does not count its draws from 0, by {every}"
    assert (dataset["chain"].values == np.arange(dataset.sizes["chain"])).all(), f"{name} does not count its chains from 0"
    for coordinate, array in dataset.coords.items():
        is_text = array.dtype.kind in "OTU"
        assert not is_text or all(isinstance(label, str) for label in array.values.tolist()), f"labels of {name}/{coordinate} are no text"


def flat(array: xr.DataArray) -> xr.DataArray:
    """Chain, draw, and everything else as one dimension, in double precision."""
    values = array.values.reshape(array.shape[0], array.shape[1], -1).astype(float)
    return xr.DataArray(values, dims=("chain", "draw", "variable"))


def values_of(result: xr.DataArray | xr.Dataset) -> np.ndarray:
    """What ArviZ says of every variable: an array since 1.0, one in a dataset before."""
    return (result if isinstance(result, xr.DataArray) else result.to_array()).values


def check_diagnostics(name: str, ours: dict, values: xr.DataArray) -> None:
    """What the summary says of some variables is what ArviZ says of them."""
    bulk = values_of(az.ess(values, method="bulk"))
    # said, because the default is another one since 1.0: the bounds of an interval of 89 %
    tail = values_of(az.ess(values, method="tail", prob=(0.05, 0.95)))
    theirs = {"mean": bulk.mean(), "min": bulk.min(), "max": bulk.max(), "tail_min": tail.min()}
    if values.sizes["chain"] > 1:  # ArviZ has no R-hat of one chain
        theirs["rhat_max"] = values_of(az.rhat(values)).max()
    for key, value in theirs.items():
        assert np.isfinite(value), f"ArviZ's {key} of {name} is {value}"
        assert abs(ours[key] / value - 1) < TOLERANCE, f"{key} of {name} is {ours[key]}, ArviZ's {value}"
    words = ", ".join(f"{key} {value:.6g}" for key, value in theirs.items())
    print(f"{name}, {values.sizes['variable']} variables, as ArviZ: {words}")


def check_summary(summary: dict, tree: xr.DataTree) -> None:
    """Compares `summary.json` with ArviZ, over the variables that it is of."""
    ess = summary["ess"]
    if ess["weights"] is not None:
        check_diagnostics("projections", ess["weights"], flat(tree["posterior"]["projection"]))
    if ess["prediction"] is not None:
        # where not all draws' predictions are recorded, some are by themselves
        traces = "prediction_traces" in tree.children
        group = "prediction_traces" if traces else "predictions"
        found = tree[group].to_dataset()
        # classes are kept as logarithms; the summary is of their probabilities
        values = flat(found["mean"]) if "mean" in found else np.exp(flat(found["log_probability"]))
        count = ess["prediction"]["variables"]
        chosen = [k * values.sizes["variable"] // count for k in range(count)]
        check_diagnostics("predictions", ess["prediction"], values.isel(variable=chosen))
    parts = [part["rhat_max"] for part in (ess["weights"], ess["prediction"]) if part is not None]
    if not parts:
        # draws that are no chain's: there is nothing to compare, and nothing may be claimed
        assert summary["method"] in NO_SAMPLERS, f"{summary['method']} has no diagnostics"
        assert summary["rhat_max"] is None, f"rhat_max of no chain is {summary['rhat_max']}"
        print(f"{summary['method']}: no chain, no diagnostics")
        return
    assert summary["rhat_max"] == max(parts), f"rhat_max is {summary['rhat_max']}, of {parts}"


def check_leave_one_out(summary: dict, tree: xr.DataTree, data) -> None:
    """Leave-one-out cross-validation of the recorded log-likelihoods is that of `az.loo`, with its own effective share of draws."""
    ours = summary["loo"]
    if "log_likelihood" not in tree.children:
        assert ours is None, "leave-one-out cross-validation of nothing"
        return
    values = tree["log_likelihood"]["y"]
    assert values.dims[:2] == ("chain", "draw"), f"log_likelihood has dims {values.dims}"
    if ours is None:
        assert summary["method"] in NO_SAMPLERS, f"{summary['method']} has no leave-one-out cross-validation"
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about Pareto k
        theirs = az.loo(data, pointwise=True)
    find = lambda *names: next(getattr(theirs, name) for name in names if hasattr(theirs, name))
    # since 1.0 the variance over rows is by n - 1, not n, and the length of a tail is rounded down, not up: as reprior has it
    rows, is_old = ours["rows"], az.__version__.startswith("0.")
    se = theirs.se * (np.sqrt(rows / (rows - 1)) if is_old else 1)
    tolerance = 5e-3 if is_old else TOLERANCE
    for key, value in {"elpd_loo": find("elpd", "elpd_loo"), "se": se, "p_loo": find("p", "p_loo")}.items():
        # where nothing but the readout varies there are no parameters, to rounding
        difference = abs(ours[key] - value) / max(abs(value), 1e-3 * ours["rows"])
        assert difference < tolerance, f"{key} is {ours[key]}, ArviZ's {value}"
    above = int((~(np.asarray(theirs.pareto_k) <= 0.7)).sum())  # NaN: the tail has no such shape
    # ratios that are all the same have no shape: ArviZ calls it infinite
    if not is_old and float(values.std(("chain", "draw")).min()) > 0:
        assert ours["rows_above_07"] == above, f"{ours['rows_above_07']} rows with k > 0.7, by ArviZ {above}"
    print(f"leave-one-out, {ours['rows']} rows, as ArviZ: elpd_loo {ours['elpd_loo']:.6g}, p_loo {ours['p_loo']:.6g}, {above} with k > 0.7")


def main(run: Path) -> None:
    print(run)
    tree = xr.open_datatree(run / "draws.zarr", engine="zarr")
    for group in ("posterior", "predictions"):
        if group in tree.children:
            check_values(group, tree[group].to_dataset())

    if "posterior" not in tree.children:
        assert tree["predictions"].sizes["draw"] == 1, "many draws, and no group for their weights"
        print("a posterior in closed form")
        return
    # as the README has it: ArviZ takes trees since 1.0
    is_old = az.__version__.startswith("0.")
    data = az.InferenceData.from_datatree(tree) if is_old else tree
    table = az.summary(data, group="posterior", round_to="none")
    chains, draws = (tree["posterior"].sizes[dim] for dim in ("chain", "draw"))
    columns = ["mean", "sd", "ess_bulk", "ess_tail"] + (["r_hat"] if chains > 1 else [])
    assert np.isfinite(table[columns].to_numpy(float)).all(), f"not finite:\n{table[columns]}"
    print(table.tail(5).to_string(float_format=lambda value: f"{value:.4g}"))
    print(f"{len(table)} rows from {chains} chains of {draws} draws")

    path = run / "summary.json"
    if path.exists():
        summary = json.loads(path.read_text())
        check_summary(summary, tree)
        check_leave_one_out(summary, tree, data)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    print(f"ArviZ {az.__version__}")
    for run in sys.argv[1:]:
        main(Path(run))
