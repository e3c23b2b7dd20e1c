"""Errors and warnings, by whose mistake they are.

`InvalidProblem` and `UnsupportedProblem` are raised before any number is computed: the question cannot be asked, or
not of this solver. `SolveFailed` is raised after: the question was fair, and no certified answer was found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
