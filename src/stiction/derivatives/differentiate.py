"""`differentiate`: what a certified answer changes with, and by how much."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, overload

from stiction.derivatives.complementarity import LCPDerivatives, differentiate_lcp
from stiction.derivatives.contact import Derivatives
from stiction.derivatives.kinks import differentiate_contact
from stiction.derivatives.tolerances import WITHIN
from stiction.errors import InvalidProblem
from stiction.solutions.contact import ContactSolution
from stiction.solutions.solution import Solution

if TYPE_CHECKING:
    from typing import Any


@overload
def differentiate(solution: ContactSolution, *, within: float = WITHIN, strict: bool = True) -> Derivatives: ...


@overload
def differentiate(solution: Solution, *, within: float = WITHIN, strict: bool = True) -> LCPDerivatives: ...


def differentiate(solution: Any, *, within: float = WITHIN, strict: bool = True) -> Derivatives | LCPDerivatives:
    """Derivatives of a certified answer by the data of its problem.

    within: margin, in units of the fastest free motion on the contact's island (for an LCP, of the terms of a row), up
        to which strict complementarity fails: a kink
    strict: raise `NotDifferentiable` when a derivative is asked for that does not exist; else return that of one of the
        modes that meet there, or the smallest of many, and leave it to the caller to look at `reason` and `kinks`
    """
    if not isinstance(solution, ContactSolution | Solution):
        raise InvalidProblem(f"differentiate: not a solution of solve(), but {type(solution).__name__}")
    if not solution.ok:
        raise InvalidProblem(f"differentiate: the solution is not certified ({solution.explain()}); solve it first")
    if not (isinstance(within, (int, float)) and 0.0 <= within < math.inf):
        raise InvalidProblem(f"differentiate: within must be a number of at least 0, got {within!r}")
    if isinstance(solution, ContactSolution):
        return differentiate_contact(solution, float(within), bool(strict))
    return differentiate_lcp(solution, float(within), bool(strict))
