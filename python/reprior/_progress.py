"""How a run gets on, and a line that shows it in terminals and notebooks."""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """Where the chains of a run are. ``made`` of ``total`` transitions, over all chains, ``before`` of them by a run that this one goes on with; ``seconds`` since
    this one began.

    ``rhat`` is R-hat of the likelihood since warm-up: far from 1 it says early that chains disagree. None of a single chain, and before there is
    enough to go by.
    """

    chains: int
    made: int
    total: int
    seconds: float
    is_warmup: bool
    acceptance_rate: float | None
    diverging: int
    is_finished: bool
    rhat: float | None = None
    before: int = 0

    @property
    def rate(self) -> float:
        """Transitions a second, of all chains."""
        return max(0, self.made - self.before) / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """An estimate; None before there is one."""
        return (self.total - self.made) / self.rate if self.rate > 0 else None

    def __str__(self) -> str:
        if self.made == 0:
            return "begins"
        text = f"{self.made}/{self.total}, {self.rate:.0f}/s"
        if self.seconds_left is not None:
            text += f", {self.seconds_left:.0f} s left"
        text += ", warm-up" if self.is_warmup else ", sampling"
        if self.acceptance_rate is not None:
            text += f", acceptance {self.acceptance_rate:.2f}"
        if self.rhat is not None:
            text += f", R-hat {self.rhat:.2f}"
        return text + (f", {self.diverging} diverging" if self.diverging else "")


class Shown:
    """A line on stderr that is written over, which terminals and notebooks know."""

    def __init__(self) -> None:
        self._width = 0

    @staticmethod
    def is_wanted() -> bool:
        """Whether somebody sees it: a terminal, or a notebook (Jupyter and its like, marimo)."""
        if bool(sys.stderr and sys.stderr.isatty()) or "ipykernel" in sys.modules:
            return True
        marimo = sys.modules.get("marimo")
        return marimo is not None and bool(marimo.running_in_notebook())

    def update(self, progress: Progress) -> None:
        text = str(progress)
        if sys.stderr:
            sys.stderr.write("\r" + text.ljust(self._width))
            sys.stderr.flush()
        self._width = len(text)

    def end(self) -> None:
        if self._width and sys.stderr:
            sys.stderr.write("\r" + " " * self._width + "\r")
            sys.stderr.flush()
