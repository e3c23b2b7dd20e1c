"""Compiled functions alone: what a solver hands to them is recorded, and only they are timed.

No Python around them, no normal form, no certificate; the answer is the one that the solver made of their results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from measure import Contestant

import stiction as st
from stiction.problems.pyramid import pyramid_lcp
from stiction.solvers.contact.baraff import baraff
from stiction.solvers.contact.cell_lemke import cell_lemke
from stiction.solvers.contact.cone_newton import cone_newton
from stiction.solvers.contact.contact_pivot import contact_pivot
from stiction.solvers.contact.structured_lemke import structured_lemke
from stiction.solvers.lcp import lemke

KERNELS = {
    st.Baraff: (baraff, "compute_forces"),
    st.CellLemke: (cell_lemke, "cell_lemke"),
    st.ConeNewton: (cone_newton, "cone_newton"),
    st.Lemke: (lemke, "lemke"),
    st.StructuredLemke: (structured_lemke, "structured_lemke"),
}
PIVOTS = {st.Frictionless: "press_contacts", st.NoSlip: "without_slip"}

Call = tuple[Callable[..., Any], tuple[Any, ...]]


def kernel(solver: Any, name: str = "", law: Any = None) -> Contestant:
    """The kernel of a solver; Lemke's gets the assembled LCP of a pyramid."""

    def prepare(problem: Any) -> Callable[[], Any]:
        asked = pyramid_lcp(problem) if isinstance(solver, st.Lemke) else problem
        module, function = KERNELS.get(type(solver)) or (contact_pivot, PIVOTS[type(problem.law)])
        calls: list[Call] = []
        with recorded(module, function, calls):
            found = solver.propose(asked, None)
        answer = found.z if isinstance(solver, st.Lemke) else found.impulse

        def solve() -> Any:
            for called, arguments in calls:
                called(*arguments)
            return answer

        return solve

    return Contestant(name or f"{type(solver).__name__}, kernel", prepare, law=law)


@contextmanager
def recorded(module: Any, function: str, calls: list[Call]) -> Iterator[None]:
    """Note with which arguments a module calls a function, as they are before the call."""
    real = getattr(module, function)

    def note(*arguments: Any) -> Any:
        calls.append((real, tuple(map(kept, arguments))))
        return real(*arguments)

    setattr(module, function, note)
    try:
        yield
    finally:
        setattr(module, function, real)


def kept(argument: Any) -> Any:
    """A copy of what may be written to, of the same type for the compiler."""
    written = isinstance(argument, np.ndarray) and argument.flags.writeable and argument.flags.c_contiguous
    return argument.copy() if written else argument


@contextmanager
def all_recorded(places: list[tuple[Any, str]], calls: list[Call]) -> Iterator[None]:
    with ExitStack() as stack:
        for module, function in places:
            stack.enter_context(recorded(module, function, calls))
        yield
