"""Time with residual and success rate: contestants solve the same problems in turn, and one judge certifies all."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import stiction as st

TOLERANCE = 1e-8  # largest residual of the certificate that counts as solved


@dataclass(frozen=True)
class Contestant:
    """A name, and `prepare(problem)`: what is not timed, returning what is (a function that returns z).

    solves: False for a yardstick, whose result is no answer
    """

    name: str
    prepare: Callable[[Any], Callable[[], Any]]
    solves: bool = True


@dataclass(frozen=True)
class Table:
    """What `run.py` prints: text columns, and the numbers behind them for `--json`."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    numbers: dict[str, Any] = field(default_factory=dict)

    def text(self) -> str:
        widths = [max(map(len, column)) for column in zip(self.columns, *self.rows, strict=True)]
        lines = ["  ".join(self._cells(row, widths)).rstrip() for row in (self.columns, *self.rows)]
        rule = "-" * max(map(len, lines))
        return "\n".join([self.title, rule, lines[0], rule, *lines[1:], rule, *self.notes, ""])

    def markdown(self) -> str:
        lines = [f"**{self.title}**", "", "| " + " | ".join(self.columns) + " |"]
        lines.append("|---|" + "---:|" * (len(self.columns) - 1))
        lines += ["| " + " | ".join(row) + " |" for row in self.rows]
        return "\n".join([*lines, "", *(f"{note}\n" for note in self.notes)])

    @staticmethod
    def _cells(row: Sequence[str], widths: Sequence[int]) -> list[str]:
        return [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]


def race(title: str, problems: Sequence[Any], contestants: Sequence[Contestant], reference: str, repeats: int) -> Table:
    """All contestants on all problems, alternating, so that a busy machine slows all of them alike.

    The ratio is the median over problems of (time of the contestant) / (time of the reference), each the median over
    repeats; residuals are those of our certificate, the worst over problems.
    """
    seconds = np.full((len(contestants), len(problems), repeats), np.nan)
    residual = np.full((len(contestants), len(problems)), np.nan)
    for k, problem in enumerate(problems):
        for r in range(-1, repeats):  # the first round, not counted, compiles and warms up
            for c, contestant in enumerate(contestants):
                solve = contestant.prepare(problem)
                begin = time.perf_counter()
                z = attempt(solve)
                if r >= 0:
                    seconds[c, k, r] = time.perf_counter() - begin
                elif z is not None:
                    residual[c, k] = st.certify(problem, z).residual if np.shape(z) == (problem.n,) else np.nan
    typical = np.median(seconds, axis=2)
    ratio = typical / typical[[c.name for c in contestants].index(reference)]
    solved = residual <= TOLERANCE
    columns = ("contestant", "median", "99th percentile", f"time / {reference}", "solved", "worst residual")
    rows = [
        (
            c.name,
            duration(float(np.median(seconds[i]))),
            duration(float(np.percentile(seconds[i], 99))),
            f"{np.median(ratio[i]):.2f}",
            f"{100 * solved[i].mean():.0f} %" if c.solves else "",
            f"{np.nanmax(residual[i]):.0e}" if c.solves and np.isfinite(residual[i]).any() else "",
        )
        for i, c in enumerate(contestants)
    ]
    names = [c.name for c in contestants]
    numbers = {
        "seconds": dict(zip(names, typical.tolist(), strict=True)),
        "residual": dict(zip(names, residual.tolist(), strict=True)),
    }
    return Table(title, columns, rows, numbers=numbers)


def attempt(solve: Callable[[], Any]) -> Any:
    """z, or None if the contestant gives up by raising."""
    try:
        return solve()
    except Exception:
        return None


def ours(solver: Any, name: str = "") -> Contestant:
    """`stiction.solve` as a user calls it, on a problem not seen before: certificate included."""

    def prepare(problem: Any) -> Callable[[], Any]:
        fresh = type(problem)(*problem.__reduce__()[1])
        return lambda: st.solve(fresh, solver, throw=False).z

    return Contestant(name or type(solver).__name__, prepare)


def duration(seconds: float) -> str:
    """Three digits, in a unit that suits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
