"""What there is to say of a run: diagnostics, metrics, the verdict."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas


@dataclass(frozen=True)
class Verdict:
    """Whether a run can be believed: ``level`` is good, caution, bad or silent; ``checks`` are the findings."""

    level: str
    sentence: str
    checks: list[dict[str, str]] = field(repr=False)

    def __str__(self) -> str:
        return self.sentence[:1].upper() + self.sentence[1:] + "."


@dataclass(frozen=True)
class Summary:
    """Diagnostics and metrics of a run, as ``reprior summary --json`` gives them; ``all`` has every number."""

    status: str
    method: str
    likelihood: str
    coordinates: str
    chains: int
    draws: int
    seconds: float | None
    acceptance_rate: float | None
    divergences: int
    rhat_max: float | None
    ess: dict[str, Any]
    metrics: dict[str, float] | None
    loo: dict[str, Any] | None
    noise: list[dict[str, Any]]
    warnings: list[str]
    verdict: Verdict
    all: dict[str, Any] = field(repr=False)

    @classmethod
    def of_json(cls, text: str) -> Summary:
        found = json.loads(text)
        own = {one.name: found.get(one.name) for one in fields(cls) if one.name not in ("all", "verdict")}
        verdict = found["verdict"]
        return cls(
            **own,
            verdict=Verdict(verdict["level"], verdict["sentence"], verdict["checks"]),
            all=found,
        )

    def to_frame(self) -> pandas.DataFrame:
        """One row with a column for every number, nested ones with dots: ``ess.prediction.min``. Needs pandas."""
        import pandas

        columns: dict[str, Any] = {}
        _flatten("", {name: value for name, value in self.all.items() if name != "verdict"}, columns)
        columns["verdict"] = self.verdict.level
        return pandas.DataFrame([columns])

    def __str__(self) -> str:
        lines = [f"{self.method}: {self.chains} chains x {self.draws} draws, {self.status}"]
        for name, value in (self.metrics or {}).items():
            lines.append(f"  {name} {value:.4g}")
        prediction = (self.ess or {}).get("prediction") or {}
        if prediction.get("rhat_max") is not None:
            lines.append(f"  R-hat of predictions, maximum {prediction['rhat_max']:.4f}")
        if prediction.get("min") is not None:
            lines.append(f"  effective draws of predictions, minimum {prediction['min']:.1f}")
        lines.append(f"Verdict: {self.verdict}")
        return "\n".join(lines)


@dataclass(frozen=True)
class LeaveOneOut:
    """Leave-one-out cross-validation: ``log_densities`` of the training ``rows``, each given the others, and their sum."""

    rows: np.ndarray
    log_densities: np.ndarray
    elpd_loo: float
    se: float
    p_loo: float
    pareto_k_max: float | None
    rows_above_07: int
    all: dict[str, Any] = field(repr=False)


def _flatten(start: str, values: dict[str, Any], columns: dict[str, Any]) -> None:
    for name, value in values.items():
        if isinstance(value, dict):
            _flatten(f"{start}{name}.", value, columns)
        elif not isinstance(value, list):
            columns[f"{start}{name}"] = value
