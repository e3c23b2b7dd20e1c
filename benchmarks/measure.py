"""Time with residual and success rate: contestants solve the same problems in turn, and one judge certifies all."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

import stiction as st
from stiction.problems.pyramid import pyramid_impulse

TOLERANCE = 1e-8  # largest residual of the certificate that counts as solved
SLOW = 0.2  # seconds


@dataclass(frozen=True)
class Contestant:
    """A name, and `prepare(problem)`: what is not timed, returning what is (a function that returns the answer).

    An answer is z of a complementarity problem; of a contact problem impulses (n, 3), or z of its `pyramid_lcp`.

    solves: False for a yardstick, whose result is no answer
    law: of contact, under which it solves and is judged, if not that of the problem
    """

    name: str
    prepare: Callable[[Any], Callable[[], Any]]
    solves: bool = True
    law: Any = None

    def posed(self, problem: Any) -> Any:
        return problem if self.law is None else problem.with_law(self.law)


class Answer(NamedTuple):
    """Of a contact problem, as `st.certify` takes it."""

    impulse: Any
    velocity: Any
    joint_impulse: Any


class Timed(NamedTuple):
    """An answer with the time that it took, from a contestant that is asked through a pipe."""

    seconds: float
    answer: Any


class Aim(NamedTuple):
    """What was set out to be reached, and what the tables of the same run show."""

    what: str
    wanted: str
    measured: float
    reached: bool


def at_least(what: str, wanted: float, measured: float) -> Aim:
    return Aim(what, f"at least {wanted:g}", float(measured), bool(measured >= wanted))


def at_most(what: str, wanted: float, measured: float) -> Aim:
    return Aim(what, f"at most {wanted:g}", float(measured), bool(measured <= wanted))


@dataclass(frozen=True)
class Table:
    """What `run.py` prints: text columns, and the numbers behind them for `--json`.

    aims: what its numbers were meant to reach, collected by `aims_of`
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    numbers: dict[str, Any] = field(default_factory=dict)
    aims: Sequence[Aim] = ()

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
    repeats; residuals are those of our certificate, the worst over problems. Whoever takes longer than SLOW at first is
    not asked again.
    """
    seconds = np.full((len(contestants), len(problems), repeats), np.nan)
    residual = np.full((len(contestants), len(problems)), np.nan)
    for k, problem in enumerate(problems):
        for r in range(-1, repeats):  # the first round, not counted, compiles and warms up
            for c, contestant in enumerate(contestants):
                if r >= 0 and seconds[c, k, 0] > SLOW:
                    continue
                posed = contestant.posed(problem)
                solve = contestant.prepare(posed)
                begin = time.perf_counter()
                answer = attempt(solve)
                seconds[c, k, max(r, 0)] = time.perf_counter() - begin
                if isinstance(answer, Timed):
                    seconds[c, k, max(r, 0)], answer = answer
                if r < 0 and answer is not None and contestant.solves:
                    residual[c, k] = judged(posed, answer)
    typical = np.nanmedian(seconds, axis=2)
    ratio = typical / typical[[c.name for c in contestants].index(reference)]
    solved = residual <= TOLERANCE
    columns = ("contestant", "median", "99th percentile", f"time / {reference}", "solved", "worst residual")
    rows = [
        (
            c.name,
            duration(float(np.nanmedian(seconds[i]))),
            duration(float(np.nanpercentile(seconds[i], 99))),
            ratio_text(float(np.median(ratio[i]))),
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


def judged(problem: Any, answer: Any) -> float:
    """The residual of our certificate."""
    if not isinstance(problem, st.ContactProblem):
        return st.certify(problem, answer).residual
    impulse = answer if np.shape(answer) == (problem.n, 3) else pyramid_impulse(problem, answer)
    return st.certify(problem, Answer(impulse, *problem.respond(impulse))).residual


def ours(solver: Any, name: str = "", law: Any = None) -> Contestant:
    """`stiction.solve` as a user calls it, on a problem not seen before: certificate included."""

    def prepare(problem: Any) -> Callable[[], Any]:
        fresh = unseen(problem)
        if isinstance(problem, st.ContactProblem):
            return lambda: st.solve(fresh, solver, throw=False).impulse
        return lambda: st.solve(fresh, solver, throw=False).z

    return Contestant(name or type(solver).__name__, prepare, law=law)


def unseen(problem: Any) -> Any:
    """The same problem, without what it remembers of itself."""
    build, fields = problem.__reduce__()
    return build(*fields)


def faster(table: Table, name: str, reference: str) -> float:
    """How many times, in the median over the problems that the reference solves (over all, if it solves none)."""
    gain = np.array(table.numbers["seconds"][reference]) / np.array(table.numbers["seconds"][name])
    solved = np.array(table.numbers["residual"][reference]) <= TOLERANCE
    return float(np.median(gain[solved] if solved.any() else gain))


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float:
    """Of the power of the size with which time grows, by least squares."""
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def with_aims(table: Table, *aims: Aim) -> Table:
    return replace(table, aims=aims)


def aims_of(tables: Sequence[Table], note: str = "") -> Table:
    """All of them in one table, and what there is to say of them."""
    found = [aim for table in tables for aim in table.aims]
    rows = [(aim.what, aim.wanted, f"{aim.measured:.3g}", "" if aim.reached else "missed") for aim in found]
    numbers = {"aims": [aim._asdict() for aim in found]}
    columns, notes = ("aim", "wanted", "measured", ""), (note,) if note else ()
    return Table("Aims, from the tables above", columns, rows, notes, numbers)


def ratio_text(ratio: float) -> str:
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.2g}"


def duration(seconds: float) -> str:
    """Three digits, in a unit that suits."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
