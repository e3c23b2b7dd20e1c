"""The result of a solve: an answer, its certificate, and the evidence if there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from stiction.solutions.notebook import variables, verdict_words
from stiction.solutions.status import Status

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stiction.problems.lcp import BoxLCP
    from stiction.solutions.certificate import Certificate
    from stiction.solutions.ray import Ray


class Solution(NamedTuple):
    """An answer `z`, `w = H z + q`, and how far it can be trusted.

    status: SOLVED if and only if the certificate passes at `tolerance`
    iterations: pivots, Newton steps or sweeps, as the solver counts them
    solver: the solver that proposed the answer
    ray: where a pivoting path ended in a ray, the direction and what it proves
    history: for iterative solvers, the residual after each sweep
    trace: what was tried on the way, in words
    problem: what was solved
    """

    status: Status
    z: NDArray[np.float64]
    w: NDArray[np.float64]
    certificate: Certificate
    iterations: int
    solver: Any
    tolerance: float
    ray: Ray | None = None
    history: NDArray[np.float64] | None = None
    trace: tuple[str, ...] = ()
    problem: BoxLCP | None = None

    @property
    def ok(self) -> bool:
        """Whether the answer is certified."""
        return self.status == Status.SOLVED

    def __repr__(self) -> str:
        return f"<Solution n = {len(self.z)}: {verdict_words(self)}>"

    def _repr_html_(self) -> str:
        return variables(repr(self)[1:-1], self.z, self.w)

    def explain(self) -> str:
        """One line: solver, status, certificate, and what to do next."""
        name = type(self.solver).__name__
        evidence = f"; {self.ray.statement}" if self.ray is not None else ""
        return f"{name}: {self.status.message} ({self.certificate}, {self.iterations} iterations){evidence}"
