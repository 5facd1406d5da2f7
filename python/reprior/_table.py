"""Tables from arrays and data frames, column by column, as the extension takes them.

A column is (name, kind, values): ``numbers`` (float64, NaN where missing), ``booleans`` or ``texts`` (lists, None where missing).
What a column becomes is decided by the program, as for files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Column = tuple[str, str, Any]


@dataclass
class Table:
    """Columns, and the names of those whose values are levels even where they look like numbers."""

    columns: list[Column]
    categorical: list[str]

    @property
    def names(self) -> list[str]:
        return [name for name, _, _ in self.columns]


def is_frame(X: Any) -> bool:
    """Whether this is a pandas DataFrame, or can become one."""
    return (hasattr(X, "columns") and hasattr(X, "dtypes")) or hasattr(X, "to_pandas")


def inputs(X: Any, names: Sequence[str] | None = None) -> Table:
    """The columns of rows of inputs: a data frame, or an array of two dimensions, whose columns are named x0, x1, ... unless named.

    Raises TypeError for what is no table, and ValueError for an array of other dimensions.
    """
    if is_frame(X):
        frame = X if hasattr(X, "iloc") else X.to_pandas()
        found = [_of_series(str(name), frame.iloc[:, at]) for at, name in enumerate(frame.columns)]
    else:
        if hasattr(X, "toarray"):
            raise TypeError("X is a sparse matrix: give a dense array, X.toarray()")
        array = np.asarray(X)
        if array.ndim != 2:
            raise ValueError(
                f"X has {array.ndim} dimension(s): it must have two, rows and columns"
                + (" (X.reshape(-1, 1) makes one column)" if array.ndim == 1 else "")
            )
        if names is None:
            names = [f"x{at}" for at in range(array.shape[1])]
        found = [(_of_array(name, array[:, at]), False) for at, name in enumerate(names)]
    return Table(
        columns=[column for column, _ in found],
        categorical=[column[0] for column, is_categorical in found if is_categorical],
    )


def targets(y: Any, taken: Sequence[str], task: str | None = None) -> tuple[list[Column], str | None]:
    """The columns of targets, whose names are none of ``taken``, and the task: yes and no, and levels, are classes unless ``task`` says another."""
    are_levels = False
    if hasattr(y, "to_pandas"):
        # also a column alone, which becomes a series
        y = y.to_pandas()
    if is_frame(y):
        table = inputs(y)
        columns, are_levels = table.columns, bool(table.categorical)
    elif hasattr(y, "dtype") and hasattr(y, "iloc"):
        column, are_levels = _of_series("y" if y.name is None else str(y.name), y)
        columns = [column]
    else:
        array = np.asarray(y)
        if array.ndim not in (1, 2):
            raise ValueError(f"y has {array.ndim} dimensions: it must have one, or two for several targets")
        parts = {"y": array} if array.ndim == 1 else {f"y{at}": array[:, at] for at in range(array.shape[1])}
        # of several targets each is a number
        if array.dtype.kind == "b" and len(parts) == 1 and task != "regression":
            columns = [(name, "booleans", part.tolist()) for name, part in parts.items()]
        else:
            columns = [_of_array(name, part) for name, part in parts.items()]
    if are_levels and len(columns) == 1 and task is None:
        task = "classification"
    named, used = [], set(taken)
    for name, kind, values in columns:
        while name in used:
            name += "_"
        used.add(name)
        named.append((name, kind, values))
    return named, task


def _of_array(name: str, values: np.ndarray) -> Column:
    kind = values.dtype.kind
    if kind in "biuf":
        # also those of records, which may begin at any byte
        return name, "numbers", np.require(values, np.float64, ["C", "A"])
    if kind == "c":
        raise ValueError(f"column `{name}` is complex: complex data are not supported; give real numbers")
    if kind == "M":
        return name, "texts", _dates(values)
    if kind in "USO":
        return _of_objects(name, list(values))
    raise TypeError(f"column `{name}` has values of type {values.dtype}: give numbers, text or dates")


def _of_series(name: str, series: Any) -> tuple[Column, bool]:
    dtype = series.dtype
    text = str(dtype)
    if text == "category":
        values = [None if is_missing else str(value) for value, is_missing in zip(series, series.isna())]
        return (name, "texts", values), True
    if text in ("bool", "boolean"):
        values = [None if is_missing else bool(value) for value, is_missing in zip(series, series.isna())]
        return (name, "booleans", values), False
    kind = getattr(dtype, "kind", "O")
    if kind in "iuf":
        return (name, "numbers", np.ascontiguousarray(series.to_numpy(dtype=np.float64, na_value=np.nan))), False
    if kind == "M":
        return (name, "texts", _dates(series.to_numpy(dtype="datetime64[us]"))), False
    if kind in "cm":
        return _of_array(name, series.to_numpy()), False
    values = [None if is_missing else value for value, is_missing in zip(series, series.isna())]
    return _of_objects(name, values), False


def _dates(values: np.ndarray) -> list[str | None]:
    """By ISO 8601; without the time of day where all are at midnight, and without fractions where all are whole seconds."""
    # nanoseconds end in the year 2262
    values = values.astype("datetime64[us]")
    missing = np.isnat(values)
    are_whole = (unit for unit in ("D", "s") if bool(((values.astype(f"datetime64[{unit}]") == values) | missing).all()))
    texts = np.datetime_as_string(values.astype(f"datetime64[{next(are_whole, 'us')}]"))
    return [None if is_missing else str(text) for text, is_missing in zip(texts, missing)]


def _of_objects(name: str, values: list[Any]) -> Column:
    """Of Python objects: numbers where all are, yes and no where all are, text otherwise."""
    present = [value for value in values if not _is_missing(value)]
    if present and all(isinstance(value, (bool, np.bool_)) for value in present):
        return name, "booleans", [None if _is_missing(value) else bool(value) for value in values]
    numeric = (int, float, np.integer, np.floating)
    if all(isinstance(value, numeric) for value in present):
        return name, "numbers", np.array([np.nan if _is_missing(v) else float(v) for v in values])
    for value in present:
        if isinstance(value, (dict, list, tuple, set, bytes)):
            kind = type(value).__name__
            raise TypeError(f"column `{name}` has a {kind}: argument must be a string or a number in every cell")
    return name, "texts", [None if _is_missing(value) else str(value) for value in values]


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (
        isinstance(value, (float, np.floating)) and bool(np.isnan(value))
    )
