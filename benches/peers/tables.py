"""Regressions of the UCI repository beside people's own tools: test NLL, RMSE, coverage of 90 % intervals and seconds, on the same splits.

usage: tables.py FOLDER [--binary target/release/reprior] [--sets SET,...] [--splits N] [--peers NAME,...] [--flags 'FLAG VALUE ...' ...] [--new-rows] [--out FILE]

FOLDER has SET.csv and splits/SET_test_rows.csv (one line of row numbers a split; airfoil.csv has one split: rows from 1,202 on, and as in
the paper that has it its numbers are in standard deviations of the training rows' target, those of other sets in the target's own unit).
reprior runs as `sample --data TABLE --target NAME` with no other flag but those that say which rows train; with --flags ('--network fcn:64,64' ...)
once more with each of these, and the table has what leaving out training rows says of each (LOO, a row's mean, in nats). Others are taken as their
documentation has them; those that give no variance get one for all rows, from the errors of a 5-fold cross-validation of the training
rows. What is not installed is left out, and said. With --new-rows only test rows count whose inputs no training row has. Rows are
appended to FILE, and the table is of all that are in it.
"""

import argparse
import csv
import functools
import importlib.util
import json
import shlex
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

SETS = {
    "concrete": "strength",
    "energy": "heating_load",
    "kin8nm": "y",
    "naval": "compressor_decay",
    "power_plant": "PE",
    "wine_red": "quality",
    "airfoil": "sound_pressure",
}
# the half-width of the central 90 % of a normal distribution
Z90 = 1.6448536269514722


class Split:
    """Inputs and targets of one split."""

    def __init__(self, folder, name, number, new_rows=False):
        with open(folder / f"{name}.csv", newline="") as file:
            rows = list(csv.reader(file))
        self.header, self.target = rows[0], SETS[name]
        column = self.header.index(self.target)
        values = np.array(rows[1:], float)
        self.text = rows[1:]
        if name == "airfoil":
            self.test = np.arange(1202, len(values))
        else:
            lines = (folder / "splits" / f"{name}_test_rows.csv").read_text().splitlines()
            self.test = np.array([int(word) for word in lines[number].split(",")])
        self.train = np.setdiff1d(np.arange(len(values)), self.test)
        inputs, targets = np.delete(values, column, axis=1), values[:, column]
        if new_rows:
            known = {tuple(row) for row in inputs[self.train]}
            self.test = np.array([row for row in self.test if tuple(inputs[row]) not in known])
        self.x, self.y = inputs[self.train], targets[self.train]
        self.x_test, self.y_test = inputs[self.test], targets[self.test]
        spread = self.x.std(0)
        scale = np.where(spread > 0, spread, 1.0)
        self.z, self.z_test = ((own - self.x.mean(0)) / scale for own in (self.x, self.x_test))
        self.mean, self.deviation = self.y.mean(), self.y.std()
        self.t = (self.y - self.mean) / self.deviation
        # what errors are told in
        self.unit = self.deviation if name == "airfoil" else 1.0

    def scores(self, means, deviations):
        """Of normal predictions, these in the targets' own units."""
        errors = (self.y_test - means) / deviations
        nll = 0.5 * errors**2 + np.log(deviations) + 0.5 * np.log(2 * np.pi)
        return {
            "rmse": float(np.sqrt(np.mean((self.y_test - means) ** 2))) / self.unit,
            "nll": float(nll.mean() - np.log(self.unit)),
            "coverage": float((np.abs(errors) <= Z90).mean()),
        }


def reprior(split, number, options, flags=""):
    """The program as it comes, or with these flags."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        with open(table, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(split.header)
            writer.writerows(split.text[row] for row in [*split.train, *split.test])
        command = [options.binary, "sample", "--data", table, "--target", split.target, "--json", "--quiet"]
        command += ["--train", len(split.train), "--test", len(split.test), "--no-shuffle"]
        command += ["--seed", number, "--out", Path(folder) / "run"]
        command += shlex.split(flags)
        text = subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True).stdout
    summary = json.loads(text)
    metrics, predictions, left_out = summary["metrics"], summary["ess"]["prediction"], summary["loo"]
    return {
        "rmse": metrics["rmse"] / split.unit,
        "nll": metrics["nll"] - np.log(split.unit),
        "coverage": metrics["coverage_90"],
        "rhat": predictions and predictions["rhat_max"],
        "loo": left_out and left_out["elpd_loo_per_row"] + np.log(split.unit),
        "unreliable": left_out and left_out["rows_above_07"] / left_out["rows"],
        "verdict": summary["verdict"]["sentence"],
    }


def with_one_variance(make, split):
    """Of a regressor without a variance: that of its errors on rows that it has not seen."""
    from sklearn.model_selection import KFold, cross_val_predict

    # shuffled: tables come in some order, and folds of their own are harder than test rows
    folds = KFold(5, shuffle=True, random_state=0)
    left_out = cross_val_predict(make(), split.z, split.t, cv=folds)
    deviation = np.sqrt(np.mean((left_out - split.t) ** 2))
    means = make().fit(split.z, split.t).predict(split.z_test)
    return split.scores(
        split.mean + split.deviation * means, np.full(len(means), split.deviation * deviation)
    )


def boosting(split, number, _):
    from sklearn.ensemble import HistGradientBoostingRegressor

    return with_one_variance(lambda: HistGradientBoostingRegressor(random_state=number), split)


def xgboost(split, number, _):
    from xgboost import XGBRegressor

    make = lambda: XGBRegressor(n_estimators=2000, learning_rate=0.02, max_depth=6, subsample=0.7, random_state=number)
    return with_one_variance(make, split)


def gaussian_process(split, number, _):
    """One length scale an input; 2,000 rows at most, chosen at random."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    rows = np.random.default_rng(number).permutation(len(split.t))[:2000]
    kernel = ConstantKernel() * RBF(np.ones(split.z.shape[1])) + WhiteKernel(0.1)
    model = GaussianProcessRegressor(kernel, random_state=number).fit(split.z[rows], split.t[rows])
    means, deviations = model.predict(split.z_test, return_std=True)
    return split.scores(split.mean + split.deviation * means, split.deviation * deviations)


def deep_ensemble(split, number, _):
    """Five networks of 50 units with means and variances, 40 epochs of Adam (Lakshminarayanan et al. 2017)."""
    import torch

    torch.manual_seed(number)
    x, y, x_test = (torch.tensor(own, dtype=torch.float32) for own in (split.z, split.t, split.z_test))
    means, variances = [], []
    for _ in range(5):
        network = torch.nn.Sequential(
            torch.nn.Linear(x.shape[1], 50), torch.nn.ReLU(), torch.nn.Linear(50, 2)
        )
        optimiser = torch.optim.Adam(network.parameters(), 0.01)
        loss = torch.nn.GaussianNLLLoss()
        for _ in range(40):
            for rows in torch.randperm(len(x)).split(32):
                mean, raw = network(x[rows]).unbind(1)
                optimiser.zero_grad()
                loss(mean, y[rows], torch.nn.functional.softplus(raw) + 1e-6).backward()
                optimiser.step()
        with torch.no_grad():
            mean, raw = network(x_test).unbind(1)
            means.append(mean.numpy())
            variances.append((torch.nn.functional.softplus(raw) + 1e-6).numpy())
    means, variances = np.array(means, float), np.array(variances, float)
    mean = means.mean(0)
    variance = (variances + means**2).mean(0) - mean**2
    return split.scores(split.mean + split.deviation * mean, split.deviation * np.sqrt(variance))


# sklearn-contrib-bde as its own example has it, and as its paper (arXiv 2605.14146).
BDE_EXAMPLE = {
    "hidden_layers": [16, 16],
    "n_members": 8,
    "epochs": 200,
    "patience": 10,
    "warmup_steps": 5000,
    "n_samples": 2000,
    "n_thinning": 2,
}
BDE_PAPER = {
    "hidden_layers": [16, 16, 16, 16],
    "n_members": 10,
    "epochs": 1200,
    "patience": 20,
    "validation_split": 0.15,
    "lr": 1e-3,
    "weight_decay": 1e-4,
    "warmup_steps": 50_000,
    "n_samples": 1000,
    "n_thinning": 10,
}


def bde(split, number, _, settings):
    from bde import BdeRegressor

    model = BdeRegressor(seed=number, **settings)
    model.fit(split.z.astype(np.float32), split.t.astype(np.float32))
    mean, deviation = model.predict(split.z_test.astype(np.float32), mean_and_std=True)
    mean, deviation = (np.asarray(own, float).ravel() for own in (mean, deviation))
    return split.scores(split.mean + split.deviation * mean, split.deviation * deviation)


PEERS = {
    "reprior": (reprior, None),
    "boosting": (boosting, "sklearn"),
    "xgboost": (xgboost, "xgboost"),
    "gaussian-process": (gaussian_process, "sklearn"),
    "deep-ensemble": (deep_ensemble, "torch"),
    "bde": (functools.partial(bde, settings=BDE_EXAMPLE), "bde"),
    "bde-paper": (functools.partial(bde, settings=BDE_PAPER), "bde"),
}


def table(rows, peers):
    """Means over splits and their standard errors, in Markdown."""
    print("| set | who | splits | NLL | NLL left out | RMSE | coverage | seconds |\n|---|---|---|---|---|---|---|---|")
    for name in SETS:
        for peer in peers:
            own = [row for row in rows if (row["set"], row["peer"]) == (name, peer)]
            if not own:
                continue

            def shown(key, digits):
                values = np.array([row[key] for row in own])
                error = f" ± {values.std(ddof=1) / len(own) ** 0.5:.{digits}f}" if len(own) > 1 else ""
                return f"{values.mean():.{digits}f}{error}"

            left_out = f"{-np.mean([row['loo'] for row in own]):.3f}" if all(row.get("loo") for row in own) else "-"
            print(f"| {name} | {peer} | {len(own)} | {shown('nll', 3)} | {left_out} | {shown('rmse', 4)} | {shown('coverage', 3)} | {shown('seconds', 0)} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--binary", default="target/release/reprior")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--peers", default=",".join(PEERS))
    parser.add_argument("--flags", nargs="*", default=[])
    parser.add_argument("--new-rows", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("target/tables.jsonl"))
    options = parser.parse_args()
    with_flags = {f"reprior {flags}": (functools.partial(reprior, flags=flags), None) for flags in options.flags}
    every, peers = PEERS | with_flags, []
    for peer in [*options.peers.split(","), *with_flags]:
        module = every[peer][1]
        if module and importlib.util.find_spec(module) is None:
            print(f"{peer}: {module} is not installed, and left out")
        else:
            peers.append(peer)
    known = [json.loads(line) for line in options.out.read_text().splitlines()] if options.out.exists() else []
    done = {(row["set"], row["split"], row["peer"]) for row in known}
    for name in options.sets.split(","):
        for number in range(1 if name == "airfoil" else options.splits):
            split = Split(options.folder, name, number, options.new_rows)
            for peer in peers:
                if (name, number, peer) in done:
                    continue
                start = time.perf_counter()
                found = every[peer][0](split, number, options)
                row = {"set": name, "split": number, "peer": peer, **found, "seconds": time.perf_counter() - start}
                known.append(row)
                with open(options.out, "a") as file:
                    file.write(json.dumps(row) + "\n")
                print(json.dumps(row), flush=True)
    table(known, every)


if __name__ == "__main__":
    main()
