"""Every solver on small problems of every kind that it takes: quick even where kernels are not compiled.

What it says is solved, is; what it promises to solve, it solves; and it does so cold and from its own answer.
"""

from __future__ import annotations

import pytest

import stiction as st
from stiction.problems.box_friction import BoxFriction
from stiction.problems.zoo.contact_families import chain, peg, stack_pushed, wedged
from stiction.problems.zoo.families import (
    degenerate,
    infeasible,
    p_matrix_box,
    positive_definite,
    positive_definite_box,
    semidefinite,
)
from stiction.solvers import ALL, COMPLEMENTARITY

BOXES = {
    "positive definite": lambda seed: positive_definite(6, seed, condition=10.0),
    "positive definite, boxed": lambda seed: positive_definite_box(6, seed, condition=10.0),
    "P, boxed": lambda seed: p_matrix_box(6, seed),
    "semidefinite": lambda seed: semidefinite(6, seed),
    "degenerate": lambda seed: degenerate(6, seed),
    "infeasible": lambda seed: infeasible(5, seed),
}
CONTACTS = {
    "peg": lambda seed: peg(4, seed),
    "stack": stack_pushed,
    "wedged": lambda seed: wedged(3, seed),
    "chain": lambda seed: chain(2, seed),
}
LAWS = [st.Frictionless(), st.NoSlip(), st.Viscous(), st.Coulomb(), st.Coulomb(facets=4), BoxFriction()]
MADE = {st.GaussSeidel: st.GaussSeidel(max_sweeps=300)}  # sweeps that do not converge are cut off early
CONTACT_SOLVERS = [solver for solver in ALL if solver.contract.laws]


@pytest.mark.parametrize("solver", COMPLEMENTARITY)
@pytest.mark.parametrize("kind", BOXES)
def test_complementarity(solver, kind):
    for seed in range(2):
        problem = BOXES[kind](seed)
        if solver.contract.refusal(problem) is not None:
            with pytest.raises(st.UnsupportedProblem):
                st.solve(problem, solver())
            continue
        found = st.solve(problem, MADE.get(solver) or solver(), throw=False)
        if kind == "infeasible":
            assert found.status is not st.Status.SOLVED
            continue
        if "definite, boxed" in kind or kind == "positive definite":
            assert found.status is st.Status.SOLVED
        if found.status is st.Status.SOLVED:
            assert st.certify(problem, found.z).residual < 1e-8
            if solver.contract.warm:
                assert (
                    st.solve(problem, MADE.get(solver) or solver(), start=found, throw=False).status is st.Status.SOLVED
                )


@pytest.mark.parametrize("solver", CONTACT_SOLVERS)
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_contact(solver, law):
    for kind, make in CONTACTS.items():
        problem = make(0).with_law(law)
        if solver.contract.refusal(problem) is not None:
            with pytest.raises(st.UnsupportedProblem):
                st.solve(problem, solver())
            continue
        found = st.solve(problem, MADE.get(solver) or solver(), throw=False)
        if found.status is st.Status.SOLVED:
            assert st.certify(problem, found).residual < 1e-8, kind
            if solver.contract.warm:
                assert (
                    st.solve(problem, MADE.get(solver) or solver(), start=found, throw=False).status is st.Status.SOLVED
                )
