"""Data frames: categories, text, dates, yes and no, missing cells, names."""

import numpy as np
import pandas as pd
import pytest
from conftest import FAST

import reprior
from reprior import _table


@pytest.fixture(scope="module")
def houses():
    random = np.random.default_rng(3)
    rows = 80
    frame = pd.DataFrame(
        {
            "size": random.uniform(50, 200, rows),
            "rooms": pd.array(random.integers(1, 6, rows), dtype="Int64"),
            "district": pd.Categorical(random.integers(1, 4, rows)),
            "heating": random.choice(["gas", "oil, old", "none"], rows),
            "garden": random.random(rows) < 0.5,
            "sold": pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 300, rows), unit="D"),
        }
    )
    price = 2.0 * frame["size"] + 30.0 * frame["garden"] + 20.0 * frame["district"].astype(int)
    frame.loc[3, "size"] = np.nan
    frame.loc[4, "rooms"] = pd.NA
    frame.loc[5, "heating"] = None
    return frame, price.rename("price")


def test_a_frame_is_encoded_as_a_file_is(houses, tmp_path):
    frame, price = houses
    run = reprior.sample(frame, price, shuffle=1, **FAST)
    path = tmp_path / "houses.csv"
    pd.concat([frame, price], axis=1).to_csv(path, index=False)
    of_file = reprior.sample(data=path, target="price", categorical="district", shuffle=1, **FAST)
    expected, found = of_file.predict(frame), run.predict(frame)
    assert found.names == ["price"]
    assert np.array_equal(found.mean, expected.mean)
    notes = " ".join(run.notes)
    assert "text columns became 0/1 inputs" in notes and "missing cells are filled" in notes
    assert "`district` (3)" in notes


def test_columns_are_found_by_name(houses):
    frame, price = houses
    run = reprior.sample(frame, price, **FAST)
    mean = run.predict(frame).mean
    assert np.array_equal(run.predict(frame[frame.columns[::-1]]).mean, mean)
    with pytest.raises(ValueError, match="lacks the input columns `size`"):
        run.predict(frame.drop(columns="size"))


def test_a_row_of_missing_cells_is_predicted_too(houses):
    frame, price = houses
    run = reprior.sample(frame[["size", "heating"]], price, **FAST)
    new = pd.DataFrame({"size": [np.nan, 100.0, np.nan], "heating": [None, "gas", None]})
    found = run.predict(new)
    assert found.mean.shape == (3,) and np.isfinite(found.mean).all()
    assert found.mean[0] == found.mean[2]


def test_several_targets_and_names_that_clash(houses):
    frame, price = houses
    targets = pd.DataFrame({"size": price, "half": price / 2})
    run = reprior.sample(frame[["size", "garden"]], targets, **FAST)
    found = run.predict(frame[["size", "garden"]])
    assert found.names == ["size_", "half"] and found.mean.shape == (80, 2)
    assert "mean_half" in found.to_frame().columns


def test_yes_and_no_and_levels_are_classes(line):
    X, _ = line
    fast = {**FAST, "warmup": 10, "draws": 10}
    yes, levels = X[:, 0] > 0, pd.Series(np.where(X[:, 0] > 0, 2, 10)).astype("category")
    classes = ["false", "true"], ["2", "10"]
    for y, expected in ((yes, classes[0]), (yes.tolist(), classes[0]), (yes[:, None], classes[0]), (levels, classes[1]), (levels.to_frame("z"), classes[1])):
        assert reprior.sample(X, y, **fast).predict(X).classes == expected
    # unless told otherwise, and of several targets
    for y, task in ((yes, "regression"), (levels, "regression"), (np.column_stack([yes, ~yes]), None)):
        assert reprior.sample(X, y, task=task, **fast).predict(X).mean.shape == y.shape


def test_rows_of_training_are_predicted_with_the_columns_that_were_left_out():
    X = np.array([[f"row {at}", at % 7, "ab"[at % 2]] for at in range(40)], dtype=object)
    run = reprior.sample(X, np.arange(40.0), **FAST)
    assert "left out: `x0`" in " ".join(run.notes)
    assert np.array_equal(run.predict(X).mean, run.predict(X[:, 1:]).mean)
    with pytest.raises(ValueError, match="X has 1 columns, but the run was made with 2: x1, x2"):
        run.predict(X[:, 1:2])


def test_dates_are_those_of_files():
    """Also those that nanoseconds do not reach, and parts of a second."""
    for texts in (["2024-01-31", "9999-12-31"], ["2024-01-31T14:30:05", "2024-02-01T00:00:00"], ["2024-01-31T14:30:05.250000", "2024-02-01T00:00:00.000000"]):
        dates = np.array([*texts, "NaT"], dtype="datetime64[us]")
        for X in (pd.DataFrame({"x0": dates}), dates[:, None]):
            assert _table.inputs(X).columns == [("x0", "texts", [*texts, None])]
    nanoseconds = np.array(["2024-01-31", "NaT"], dtype="datetime64[ns]")
    assert _table.inputs(pd.DataFrame({"x0": nanoseconds})).columns == [("x0", "texts", ["2024-01-31", None])]


def test_targets_that_become_a_series(line):
    """As a series of polars does, or an array of pyarrow."""
    X, y = line
    column = type("Column", (), {"to_pandas": lambda self: pd.Series(y, name="z"), "__len__": lambda self: len(y)})
    assert reprior.sample(X, column(), **FAST).predict(X).names == ["z"]


def test_names_that_are_numbers(line):
    X, y = line
    run = reprior.sample(pd.DataFrame(X), pd.Series(y), **FAST)
    assert run.predict(pd.DataFrame(X)).mean.shape == (60,)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_estimators_take_frames(houses):
    from reprior import BNNRegressor

    frame, price = houses
    settings = {name: FAST[name] for name in ("chains", "warmup", "draws", "thin")}
    model = BNNRegressor((8,), settings=settings, random_state=1, n_jobs=1)
    model.fit(frame, price)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert model.n_features_in_ == 6
    assert model.score(frame, price) > 0.8
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"size": "area"}))
