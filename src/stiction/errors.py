"""Errors and warnings, by whose mistake they are, and the checks and words that their messages share.

`InvalidProblem` and `UnsupportedProblem` are raised before any number is computed: the question cannot be asked, or
not of this solver. `SolveFailed` is raised after: the question was fair, and no certified answer was found.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from stiction.solutions import ContactSolution, Solution


class StictionError(Exception):
    """Base class of all errors that this package raises deliberately."""


class InvalidProblem(StictionError, ValueError):
    """The data are not a valid problem; the message names the field, its shape or index, and what to do."""


class UnsupportedProblem(StictionError, TypeError):
    """The problem is valid, but this solver does not accept it; the message names solvers that do."""


class InvalidScene(StictionError, ValueError):
    """The file or model is not a scene, or needs something unsupported; the message names it in one line."""


class UnsymmetricMatrix(UserWarning):
    """A Delassus matrix differs from its transpose by more than printing explains: it is solved and judged as it is."""


class NotDifferentiableWarning(UserWarning):
    """A gradient was asked for where there is none: that of one side is used; the message gives the reason."""


class MissingDependency(StictionError, ImportError):
    """An optional package is absent; the message names the extra that installs it."""


class NotDifferentiable(StictionError, ArithmeticError):
    """The answer has no derivative here; the message names the contacts and what can be asked for instead."""


class SolveFailed(StictionError):
    """No certified answer was found. `solution` holds the last iterate, its certificate and the evidence."""

    def __init__(self, solution: Solution | ContactSolution) -> None:
        super().__init__(solution.explain())
        self.solution = solution

    def __reduce__(self) -> tuple[type[SolveFailed], tuple[Solution | ContactSolution]]:
        return type(self), (self.solution,)


def is_number(value: Any) -> TypeGuard[float]:
    """Whether a value is a real number, Python's or NumPy's; True and False are none."""
    return isinstance(value, Real) and not isinstance(value, bool)


def is_whole(value: Any, least: int) -> TypeGuard[int]:
    """Whether a value is a whole number of at least `least`."""
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= least


def unknown(what: str, given: Any, known: Iterable[str], remark: str = "") -> str:
    """The message about a name that is not known: the nearest one that is, or all of them."""
    from difflib import get_close_matches

    names = list(known)
    near = get_close_matches(str(given), names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(names) or 'none'}"
    return f"there is no {what} {given!r}; {hint}{remark}"


def first_few(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """The first few of many names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return separator.join(names[:most]) + more
