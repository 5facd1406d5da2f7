"""What is wrong is said in the program's words, as the exception that Python has for it."""

import numpy as np
import pytest
from conftest import FAST

import reprior

X, y = np.arange(20.0).reshape(10, 2), np.arange(10.0)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"method": "hmcc"}, "hmcc"),
        ({"network": "fcn:0"}, "a width of the network `fcn` is `0`"),
        ({"chains": 1.5}, "--chains takes a whole number"),
        ({"noise": -1.0}, "noise"),
        ({"minutes": -1}, "--minutes -1 is out of range"),
        ({"method": "nngp", "chains": 3}, "--chains belongs to methods with chains"),
        ({"watch": 5, "train": 6}, "--watch trains on all records"),
        ({"train": 11}, "`(in memory)` has 10 records"),
    ],
)
def test_settings_that_are_refused(settings, words):
    with pytest.raises(ValueError) as caught:
        reprior.sample(X, y, **{**FAST, **settings})
    assert words in str(caught.value)


def test_wrong_kinds():
    with pytest.raises(TypeError, match="unexpected keyword argument `drawz`; is `draws` meant"):
        reprior.sample(X, y, drawz=1)
    with pytest.raises(TypeError, match="`draws` is of type dict"):
        reprior.sample(X, y, draws={})
    with pytest.raises(TypeError, match="no y"):
        reprior.sample(X)
    with pytest.raises(TypeError, match="no X"):
        reprior.sample(y=y)
    with pytest.raises(TypeError, match="`data`, which is of files"):
        reprior.sample(X, y, data="a.csv")
    with pytest.raises(TypeError, match="threads"):
        reprior.sample(X, y, threads="2")
    with pytest.raises(TypeError, match="must be True or False"):
        reprior.sample(X, y, no_shuffle=1)


def test_data_that_are_refused(tmp_path):
    with pytest.raises(ValueError, match="must have two"):
        reprior.sample(y, y)
    with pytest.raises(ValueError, match="10 rows and y has 9"):
        reprior.sample(X, y[:9])
    with pytest.raises(ValueError, match="no data: give --data"):
        reprior.sample()
    infinite = X.copy()
    infinite[3, 1] = np.inf
    with pytest.raises(ValueError, match=r"`\(in memory\)`, row 3, column `x1`: .*not finite"):
        reprior.sample(infinite, y, **FAST)
    with pytest.raises(ValueError, match="single class"):
        reprior.sample(X, ["a"] * 10, **FAST)
    with pytest.raises(ValueError, match="is not a run folder"):
        reprior.open(tmp_path)
    with pytest.raises(ValueError, match="complex"):
        reprior.sample(X * 1j, y)


def test_errors_come_at_once_without_waiting():
    with pytest.raises(ValueError, match="single class"):
        reprior.sample(X, ["a"] * 10, wait=False, **FAST)


def test_run_error_is_a_runtime_error():
    assert issubclass(reprior.RunError, RuntimeError)
