"""The study, in its quick setting, comes out as its docstring says; its yardstick and its stacks are what they say."""

from __future__ import annotations

import numpy as np
import pytest
from every_study import EveryStudy

import stiction as st
from stiction.problems.pyramid import pyramid_lcp
from stiction.problems.zoo.contact_families import peg, stack
from stiction.studies import lloyd2004 as study
from stiction.studies.tableau_lemke import Tableau


@pytest.fixture(scope="module")
def results() -> study.Results:
    return study.run(quick=True)


class TestStudy(EveryStudy):
    study = study
    figures = ("peg", "single", "stacks")


def test_cases_are_those_of_the_paper():
    cases = study.problem_set(quick=False)
    made = [(case, case.make(3)) for case in cases]
    pegs = [problem.n for case, problem in made if case.figure == "peg"]
    assert pegs[:7] == [8, 12, 16, 20, 24, 28, 32]
    assert 128 in pegs
    singles = [problem for case, problem in made if case.figure == "single"]
    assert (len(singles), min(p.n for p in singles), max(p.n for p in singles)) == (10, 1, 16)
    stacks = [problem for case, problem in made if case.figure == "stack"]
    ten = stacks[:10]
    assert (min(p.n for p in ten), max(p.n for p in ten)) == (4, 32)
    assert ({p.m // 6 for p in ten}, stacks[-1].m // 6) == ({1, 2, 3, 4, 5}, 20)
    for case, problem in made:
        if case.figure != "published":
            assert problem.friction.min() >= 0.2
            assert problem.friction.max() <= 0.3


def test_a_stack_without_turned_blocks_is_the_family():
    ours, theirs = study.stack_of(3, 0, 5), stack(3, 5)
    assert np.array_equal(ours.velocity, theirs.velocity)
    assert np.array_equal(ours.rows, theirs.rows)


def test_wrenches_differ_and_come_back():
    assert not np.array_equal(study.stack_of(2, 1, 0).velocity, study.stack_of(2, 1, 1).velocity)
    assert np.array_equal(study.stack_of(2, 1, 1).velocity, study.stack_of(2, 1, 1).velocity)


@pytest.mark.parametrize("seed", range(5))
def test_tableau_solves_what_lemke_solves(seed):
    problem = pyramid_lcp(peg(8, seed).with_law(study.PYRAMID))
    z, pivots = Tableau(problem).solve()
    assert pivots > 1
    assert st.certify(problem, z).residual <= 1e-9


def test_tableau_by_hand():
    z, pivots = Tableau(st.LCP([[2.0, 1.0], [1.0, 2.0]], [-5.0, -6.0])).solve()
    assert z == pytest.approx([4.0 / 3.0, 7.0 / 3.0])
    assert pivots <= 3
    z, pivots = Tableau(st.LCP([[1.0]], [2.0])).solve()
    assert (z[0], pivots) == (0.0, 1)


def test_tableau_reports_a_ray():
    assert Tableau(st.LCP([[-1.0]], [-1.0])).solve()[1] == 0


def test_kernels_are_recorded_and_put_back(results):
    from stiction.solvers.contact.structured_lemke import structured_lemke as module

    kernel = module.structured_lemke
    attempt = study.attempted("reduced", peg(8, 0).with_law(study.PYRAMID))
    assert module.structured_lemke is kernel
    before = attempt.impulse.copy()
    attempt.again()
    assert np.array_equal(before, attempt.impulse)


def test_an_uncertified_answer_fails_the_claim(results):
    broken = results.replaced(residual=np.where(np.isnan(results.residual), np.nan, 1.0))
    assert not study.check(broken)[0].holds


def test_tables_show_every_case(results):
    sheets = study.tables(results)
    assert sum(len(sheet.rows) for sheet in sheets) == len(results.case)
    assert "nan" not in str(sheets)
