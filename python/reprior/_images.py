"""Images from arrays, as the archive that the extension takes: the bytes of an ``.npz`` file with ``x`` and ``y``."""

from __future__ import annotations

import io
from typing import Any

import numpy as np


def is_images(X: Any) -> bool:
    """Whether this is an array of images: rows x height x width, or with channels last or first (at most 4)."""
    return getattr(X, "ndim", None) in (3, 4) and not hasattr(X, "iloc")


def archive(X: Any, y: Any = None, names: tuple[str, str] = ("x", "y")) -> bytes:
    """The bytes for images with their targets, if there are any; ``x_train`` and ``y_train`` are for rows that all train.

    Raises TypeError for pixels that are no numbers and for labels that are text, ValueError for images without pixels and for other numbers of targets.
    """
    inputs = _numbers("X", X)
    arrays = {names[0]: inputs}
    if 0 in inputs.shape:
        raise ValueError(f"X has the shape {inputs.shape}: there must be images, and pixels in them")
    if y is not None:
        arrays[names[1]] = _numbers("y", y)
        rows = [len(array) if array.ndim else 0 for array in arrays.values()]
        if rows[0] != rows[1]:
            raise ValueError(f"X has {rows[0]} images and y has {rows[1]} targets: give one for each image")
    bytes_ = io.BytesIO()
    np.savez(bytes_, **arrays)
    return bytes_.getvalue()


def _numbers(name: str, values: Any) -> np.ndarray:
    array = np.asarray(values)
    if array.dtype.kind == "b":
        array = array.astype(np.uint8)
    elif array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8):
        array = array.astype(np.float64)
    elif array.dtype.kind not in "iuf":
        hint = "; labels of images are whole numbers: encode them (numpy.unique(y, return_inverse=True) does)" if name == "y" else ""
        raise TypeError(f"{name} has values of type {array.dtype}: give numbers{hint}")
    return np.ascontiguousarray(array)
