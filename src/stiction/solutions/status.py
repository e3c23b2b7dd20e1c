"""How a solve ended, and what to do next."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """The end of a solve. Only the certificate makes it SOLVED."""

    SOLVED = 0
    RAY = 1
    MAX_ITERATIONS = 2
    SINGULAR = 3
    STALLED = 4
    NO_SOLUTION = 5
    UNCERTIFIED = 6
    CONTRADICTION = 7

    @property
    def message(self) -> str:
        """What happened, and what to try."""
        return _MESSAGES[self]


_MESSAGES = {
    Status.SOLVED: "solved: the certificate passes",
    Status.RAY: "the path ends in a ray; see solution.ray for what that proves, or try another solver or cover",
    Status.MAX_ITERATIONS: "the iteration limit was reached; raise it, give a start, or try another solver",
    Status.SINGULAR: "a pivot or a linear system was singular; Lemke and Keller bear singular matrices best",
    Status.STALLED: "no further progress; try a pivoting solver (Lemke, Keller), or check the scaling of the data",
    Status.NO_SOLUTION: "every support was tried and none gives an answer: the problem has no solution",
    Status.UNCERTIFIED: "the solver proposed an answer that fails its certificate; try Lemke, or a larger tolerance",
    Status.CONTRADICTION: "bilateral rows contradict each other; solution.trace has which, drop or change one of them",
}


def verdict(claimed: Status, passes: bool) -> Status:
    """The status of a judged answer: only the certificate makes it SOLVED."""
    if passes:
        return Status.SOLVED
    return Status.UNCERTIFIED if claimed == Status.SOLVED else claimed
