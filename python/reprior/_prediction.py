"""Predictions for new rows, as arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Prediction:
    """Of real targets, in their own units: arrays of (rows,), of several targets (rows, targets). ``q05``, ``q50`` and ``q95`` are quantiles."""

    mean: np.ndarray
    sd: np.ndarray
    q05: np.ndarray
    q50: np.ndarray
    q95: np.ndarray
    names: list[str]

    @classmethod
    def of(cls, moments: tuple[np.ndarray, np.ndarray], quantiles: np.ndarray, names: list[str]) -> Prediction:
        """From means and standard deviations of all cells, and the three quantiles of each."""
        shape = (-1,) if len(names) == 1 else (-1, len(names))
        parts = [*moments, *quantiles.reshape(-1, 3).T]
        return cls(*(np.ascontiguousarray(part).reshape(shape) for part in parts), names=names)

    def to_frame(self) -> pandas.DataFrame:
        """A column for each number, named as ``reprior predict`` names them. Needs pandas."""
        import pandas

        columns = {}
        for at, name in enumerate(self.names):
            for part in ("mean", "sd", "q05", "q50", "q95"):
                values = getattr(self, part)
                one = len(self.names) == 1
                columns[part if one else f"{part}_{name}"] = values if one else values[:, at]
        return pandas.DataFrame(columns)


@dataclass(frozen=True)
class ClassPrediction:
    """Of classes: ``probabilities`` are (rows, classes), ``classes`` their names."""

    probabilities: np.ndarray
    classes: list[str]

    @property
    def labels(self) -> list[str]:
        """The most probable class of each row."""
        return [self.classes[at] for at in self.probabilities.argmax(axis=1)]

    @property
    def confidence(self) -> np.ndarray:
        """Its probability."""
        return self.probabilities.max(axis=1)

    @property
    def entropy(self) -> np.ndarray:
        """In nats."""
        p = self.probabilities
        logarithms = np.log(p, where=p > 0, out=np.zeros_like(p))
        return -(p * logarithms).sum(axis=1)

    def to_frame(self) -> pandas.DataFrame:
        """Columns named as ``reprior predict`` names them. Needs pandas."""
        import pandas

        columns = {f"p_{name}": self.probabilities[:, at] for at, name in enumerate(self.classes)}
        columns |= {"label": self.labels, "confidence": self.confidence, "entropy": self.entropy}
        return pandas.DataFrame(columns)
