"""What `st.solve` adds to its kernels (normal form, solver, response, judge) on small contact problems."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from kernels import KERNELS, PIVOTS, Call, all_recorded
from measure import Table, aims_of, at_most, duration, unseen

import stiction as st
from stiction.problems import normal_form, response
from stiction.problems.zoo.contact_families import peg, single_body
from stiction.solutions import contact_laws
from stiction.solvers.contact.contact_pivot import contact_pivot

SCENES: dict[str, Callable[[int], st.ContactProblem]] = {
    "1 contact": partial(single_body, "point"),
    "4 contacts": partial(single_body, "table"),
    "16 contacts": partial(peg, 16),
}
SOLVERS = {
    "ConeNewton": (st.Coulomb(), st.ConeNewton()),
    "CellLemke": (st.Coulomb(facets=8), st.CellLemke()),
    "PrincipalPivot, no friction": (st.Frictionless(), st.PrincipalPivot()),
}

WHY = (
    "*Calls.* What `st.solve` adds are the arrays that it allocates and the objects that it returns: some 3 µs "
    "for the normal form, 2 to 6 for the solver, 2 for the response, 3 for the certificate, 2 for its own checks."
)


def overhead(quick: bool) -> list[Table]:
    calls = 50 if quick else 3000
    rows, aims = [], []
    for scene, make in SCENES.items():
        for name, (law, solver) in SOLVERS.items():
            problem = make(1).with_law(law)
            kernels, whole, auto = measure(problem, solver, calls)
            rows.append((f"{scene}, {name}", *map(duration, (kernels, whole, whole - kernels, auto - kernels))))
            if scene == "4 contacts":
                what = f"{scene}, {name}: µs that st.solve adds to its kernels"
                aims.append(at_most(what, 5.0, 1e6 * (whole - kernels)))
    columns = ("problem", "kernels", "st.solve", "added", "added with Auto")
    notes = [
        "Least of thousands of calls, in turn; kernels: normal form, solver, response, judge, each called from Python."
    ]
    tables = [Table("What st.solve adds to its kernels", columns, rows, notes, aims=aims)]
    return [*tables, aims_of(tables, WHY)]


def measure(problem: st.ContactProblem, solver: Any, calls: int) -> tuple[float, float, float]:
    """Least seconds of the kernels one after the other, of `st.solve` and of `st.solve` with Auto, on a new problem."""
    place = KERNELS.get(type(solver)) or (contact_pivot, PIVOTS[type(problem.law)])
    places = [(normal_form, "whiten_posed"), place, (response, "respond"), (contact_laws, "judge_problem")]
    used: list[Call] = []
    with all_recorded(places, used):
        st.solve(unseen(problem), solver)

    def kernels(_: Any) -> None:
        for function, arguments in used:
            function(*arguments)

    least = np.full(3, np.inf)
    for _ in range(calls):
        for k, action in enumerate((kernels, lambda p: st.solve(p, solver), st.solve)):
            fresh = unseen(problem)
            begin = time.perf_counter()
            action(fresh)
            least[k] = min(least[k], time.perf_counter() - begin)
    return tuple(least.tolist())
