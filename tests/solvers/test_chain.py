"""Solvers asked in turn: each attempt begins where it says, and the best answer is handed on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

import stiction as st
from stiction.problems import CONTACT_FAMILIES
from stiction.problems.zoo.contact_families import heap, single_body
from stiction.solvers.auto import CHAINS, cone_chain
from stiction.solvers.contract import Attempt, ContactProposal, Contract


@dataclass(frozen=True)
class Noting:
    """Proposes a multiple of some impulses, and notes what it was to begin from."""

    factor: float
    impulse: tuple
    seen: list

    contract: ClassVar[Contract] = Contract("contact", "none", "none", "never", warm=True, laws=("cone",))

    def propose(self, problem, start):
        self.seen.append(None if start is None else np.array(start))
        return ContactProposal(st.Status.MAX_ITERATIONS, 1, self.factor * np.array(self.impulse))


@dataclass(frozen=True)
class Chain:
    attempts: tuple

    contract: ClassVar[Contract] = Noting.contract

    def order(self, problem):
        return self.attempts


def test_attempts_begin_where_they_say():
    problem = single_body("table", 0)
    answer = st.solve(problem).impulse
    given, seen = np.full_like(answer, 7.0), []
    pyramid = st.Coulomb(facets=8)
    attempts = (
        Attempt(Noting(0.0, tuple(answer), seen)),
        Attempt(Noting(0.9, tuple(answer), seen), "afresh"),
        Attempt(Noting(0.5, tuple(answer), seen), "best"),
        Attempt(Noting(0.2, tuple(answer), seen), pyramid),
    )
    found = st.solve(problem, Chain(attempts), start=given, throw=False)
    np.testing.assert_array_equal(seen[0], given)
    assert seen[1] is None
    np.testing.assert_array_equal(seen[2], 0.9 * answer)  # the best so far
    np.testing.assert_array_equal(seen[3], st.CellLemke().propose(problem.with_law(pyramid), None).impulse)
    np.testing.assert_array_equal(found.impulse, 0.9 * answer)  # and in the end
    assert [line.split(":")[0] for line in found.trace] == [
        "Noting",
        "Noting, begun afresh",
        "Noting, begun at the best of these",
        "Noting, begun at the answer under Coulomb(facets=8, rotation=0.0)",
    ]


def test_nothing_is_tried_twice():
    both = (False, True)
    for chain in (*CHAINS.values(), *(cone_chain(1e-12, many, turning) for many in both for turning in both)):
        assert len(set(chain)) == len(chain)


def test_pyramids_are_not_asked_with_many_contacts():
    few, many = cone_chain(1e-12, False, False), cone_chain(1e-12, True, False)
    assert [str(attempt) for attempt in many] == ["ConeNewton", "ConeNewton, begun afresh"]
    assert [str(attempt) for attempt in few[4:]] == [
        "ConeNewton, begun afresh",
        "ConeNewton, begun at the best of these",
        "Baraff",
    ]
    assert st.Auto().order(heap(6, 1)) == few
    assert st.Auto().order(heap(14, 1)) == many  # 108 contacts


def test_answers_for_pyramids_help_where_cycles_fail():
    alone = st.ConeNewton(max_cycles=1)
    chain = Chain((Attempt(alone), Attempt(st.ConeNewton(max_cycles=5), st.Coulomb(facets=16))))
    hard = [
        problem
        for problem in map(CONTACT_FAMILIES["heap-mixed"], range(20))
        if not st.solve(problem, alone, throw=False).ok
    ]
    assert hard
    assert any(st.solve(problem, chain, throw=False).ok for problem in hard)
