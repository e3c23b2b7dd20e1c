"""The contract of a solver, and the answer that it hands to the judge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from stiction.problems.contact import ContactProblem
from stiction.problems.laws import Law
from stiction.problems.lcp import LCP, BoxLCP
from stiction.solutions.status import Status

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STATUS = tuple(Status)  # by the number that kernels return
SOLVED, RAY, MAX_ITERATIONS, SINGULAR, STALLED = (
    int(s) for s in (Status.SOLVED, Status.RAY, Status.MAX_ITERATIONS, Status.SINGULAR, Status.STALLED)
)


@dataclass(frozen=True)
class Contract:
    """Which problems a solver takes, what it promises there, and what it costs: the row of the solver table.

    matrix: the weakest class it accepts, "any", "P0" (no negative diagonal) or "P" (positive diagonal)
    solves: the classes of `problems.families` on which it is guaranteed, if a solution exists
    boxes: whether it takes bounds other than 0 <= z
    warm: whether it can use a start
    largest: the largest n it takes, free variables not counted, if limited
    laws: the laws of contact that it takes, by their kind
    slip: whether it takes contacts whose direction of sliding is known
    turning: whether it takes torsional and rolling friction
    """

    matrix: str
    guarantee: str
    cost: str
    choose: str
    solves: frozenset[str] = frozenset()
    boxes: bool = True
    warm: bool = False
    largest: int | None = None
    laws: tuple[str, ...] = ()
    slip: bool = False
    turning: bool = False

    def refusal(self, problem: BoxLCP | ContactProblem, perturbation: float = 0.0) -> str | None:
        """Why this problem is outside, as far as that can be seen without solving it; None if it is not.

        perturbation: what the solver adds to the diagonal
        """
        if isinstance(problem, ContactProblem):
            if problem.law.kind not in self.laws:
                return f"it does not take contact under {problem.law}"
            if problem.slides and not self.slip:
                return "it takes no contacts whose direction of sliding is known (slip)"
            if problem.rows.shape[1] > 3 and not self.turning:
                return "it takes no torsional or rolling friction"
            return None
        if self.matrix == "contact":
            return "it takes contact problems only"
        if not self.boxes and not isinstance(problem, LCP):
            return "it takes no bounds other than z >= 0 (an LCP)"
        if self.matrix == "P" and problem.smallest_diagonal + perturbation <= 0.0:
            return f"its matrix must be a P-matrix, but a diagonal entry is {problem.smallest_diagonal:g}"
        if self.matrix == "P0" and problem.smallest_diagonal < 0.0:
            return f"its matrix must be a P0-matrix, but a diagonal entry is {problem.smallest_diagonal:g}"
        if self.largest is not None and problem.bounded > self.largest:
            apart = "" if problem.bounded == problem.n else " without free variables"
            return f"it takes at most n = {self.largest}, got n = {problem.bounded}{apart}"
        return None


class Proposal(NamedTuple):
    """The claim of a solver; nothing of it is believed before it is judged."""

    status: Status
    iterations: int
    z: NDArray[np.float64]
    ray: NDArray[np.float64] | None = None
    history: NDArray[np.float64] | None = None
    trace: tuple[str, ...] = ()
    solver: Any = None


class ContactProposal(NamedTuple):
    """The claim of a contact solver: impulses along the rows of each contact, in N s; velocities follow from them."""

    status: Status
    iterations: int
    impulse: NDArray[np.float64]
    ray: NDArray[np.float64] | None = None
    trace: tuple[str, ...] = ()
    solver: Any = None
    history: NDArray[np.float64] | None = None


class Solver(Protocol):
    """A frozen object of options with one verb."""

    @property
    def contract(self) -> Contract: ...

    def propose(self, problem: Any, start: NDArray[np.float64] | None) -> Any: ...


class Attempt(NamedTuple):
    """One of the solvers that are asked in turn, and what it begins from.

    begin: what was given ("start"), nothing ("afresh"), the best answer so far ("best"), or that under another law
    """

    solver: Solver
    begin: str | Law = "start"

    def __str__(self) -> str:
        name = type(self.solver).__name__
        if isinstance(self.begin, Law):
            return f"{name}, begun at the answer under {self.begin}"
        return name + {"start": "", "afresh": ", begun afresh", "best": ", begun at the best of these"}[self.begin]


class Choice(Protocol):
    """Solvers to be asked in turn, as `Auto` names them."""

    @property
    def contract(self) -> Contract: ...

    def order(self, problem: Any) -> tuple[Attempt, ...]: ...
