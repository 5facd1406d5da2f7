"""Arrays of images: classes and real targets, with channels last and first, in memory and in folders."""

import pickle
import tempfile

import numpy as np
import pytest
from conftest import FAST

import reprior


@pytest.fixture(scope="module")
def images():
    """120 images of 6 x 6 pixels of noise, the upper or the lower half brighter: two classes."""
    random = np.random.default_rng(4)
    X = random.uniform(0, 100, size=(120, 6, 6))
    y = np.arange(120) % 2
    X[y == 0, :3] += 100
    X[y == 1, 3:] += 100
    return X.astype(np.uint8), y + 3


@pytest.fixture(scope="module")
def run(images):
    return reprior.sample(*images, **FAST)


def test_classes_of_images(run, images, tmp_path):
    X, y = images
    summary = run.summary()
    assert summary.metrics["accuracy"] > 0.9
    # a fifth of the images tests, at random
    assert run.settings["data"]["train"] == 96 and run.settings["data"]["shuffle"] == 0
    found = run.predict(X)
    assert found.probabilities.shape == (120, 2) and found.classes == ["3", "4"]
    assert (np.asarray(found.labels).astype(int) == y).mean() > 0.9
    for again in (pickle.loads(pickle.dumps(run)), run.resume(minutes=0.001, progress=False)):
        assert again.predict(X[:5]).probabilities.shape == (5, 2)
    page = run.report()
    assert "uncertain test images" in page and "left out, because the data" not in page
    assert "A run in memory" in page and tempfile.gettempdir() not in page
    run.save(tmp_path / "run")
    opened = reprior.open(tmp_path / "run")
    assert np.array_equal(opened.predict(X).probabilities, found.probabilities)


def test_channels_last_and_first_are_one(images):
    X, y = images
    colours = np.stack([X, X[::-1], X // 2], axis=-1)
    settings = {**FAST, "train": 80, "test": 40}
    last = reprior.sample(colours, y, **settings)
    first = reprior.sample(np.moveaxis(colours, -1, 1), y, **settings)
    assert np.array_equal(last.predict(colours).probabilities, first.predict(colours).probabilities)


def test_real_targets_of_images(images):
    X, _ = images
    brightness = X.reshape(120, -1).mean(axis=1)
    run = reprior.sample(X, brightness, **FAST, noise=0.1)
    found = run.predict(X)
    assert found.mean.shape == (120,)
    assert np.corrcoef(found.mean, brightness)[0, 1] > 0.9


def test_what_is_no_array_of_images_is_refused(run, images):
    X, y = images
    with pytest.raises(ValueError, match="images of 6 x 6 x 1"):
        run.predict(X.reshape(120, -1))
    with pytest.raises(ValueError, match="6 x 5 pixels"):
        run.predict(X[:, :, :5])
    with pytest.raises(ValueError, match="one for each image"):
        reprior.sample(X, y[:7], **FAST)
    with pytest.raises(TypeError, match="encode them"):
        reprior.sample(X, y.astype(str), **FAST)
    with pytest.raises(ValueError, match="must be images"):
        reprior.sample(X[:, :0], y, **FAST)
    with pytest.raises(ValueError, match="leave --watch out"):
        reprior.sample(X, y, watch=5, **FAST)
    broken = X.astype(float)
    broken[3, 1, 1] = np.nan
    with pytest.raises(ValueError, match="x"):
        reprior.sample(broken, y, **FAST)
