"""The study, in its quick setting, comes out as its docstring says: claims that hold, and departures that do not."""

from __future__ import annotations

import numpy as np
import pytest
from every_study import EveryStudy

import stiction as st
from stiction.studies import lacoursiere2003 as study
from stiction.studies import lacoursiere2003_heap as heap
from stiction.studies import lacoursiere2003_passes as passes
from stiction.studies import lacoursiere2003_random as random


@pytest.fixture(scope="module")
def results() -> study.Results:
    return study.run(quick=True)


class TestStudy(EveryStudy):
    study = study
    figures = ("random", "heap", "gauss-seidel", "heap-counts", "slope", "splitting")
    own = frozenset(
        {"every solve of figures 1 and 2 is certified to 1e-09", "every step of 40 falling logs is certified"}
    )


@pytest.fixture(scope="module")
def held(results) -> set[str]:
    return {claim.name for claim in study.check(results) if claim.holds}


def test_figures_of_the_paper_are_reproduced_with_uniform_eigenvalues(held):
    assert "uniform spectrum: Lemke peaks sharply near n" in held
    assert "uniform spectrum: Cottle–Dantzig peaks near 2 n" in held
    assert "uniform spectrum: Murty is slightly worse than Cottle–Dantzig" in held


def test_the_heap_and_the_splitting_are_as_printed_where_the_study_says_so(held):
    assert "Gauss–Seidel stagnates on 40 logs, scaled bounds" in held
    assert "logs, definite matrices: Cottle–Dantzig has a long tail, the others have not" in held
    assert "slope: two passes from no friction give Coulomb's relation" in held
    assert "slope, tall block: about five passes from sticking are right" in held
    assert "heap: passes converge linearly" in held
    assert "heap: Newton's method after some passes converges faster than linearly" in held


def test_every_direct_solve_is_certified(results):
    assert results.residual.max() <= 1e-9
    assert results.size_residual.max() <= 1e-9
    assert results.heap_residual <= 1e-8


def test_same_seed_same_counts(results):
    iterations, _ = random._count((100,), range(2))
    assert np.array_equal(iterations[0], results.iterations[:, :, :2])


def test_both_spectra_have_the_condition_number():
    for spectrum in random.SPECTRA:
        assert np.linalg.cond(random.box_problem(60, 3, spectrum).H) == pytest.approx(1e4, rel=1e-6)


def test_a_failed_solve_fails_the_claim(results):
    broken = results.replaced(residual=np.full_like(results.residual, np.nan))
    assert not study.check(broken)[0].holds


def test_what_is_not_solved_counts_as_no_number_of_pivots(results):
    broken = results.replaced(heap_residuals=np.full_like(results.heap_residuals, np.inf))
    assert np.isinf(broken.counts("Keller", "scaled", 1e-3)).all()
    claims = {claim.name: claim for claim in heap.check(broken)}
    robust = claims["logs, perturbation 1e-3: smoothing Newton is robust (all solved, in 100 steps)"]
    assert not robust.holds
    assert "0 of 10 solved" in robust.found


def test_the_picture_shows_every_log_above_the_ground_and_lower_in_the_end(results):
    logs = results.radius == results.radius.max()
    assert logs.sum() == 40
    height = results.frames[:, logs][..., 2]
    first, second, third = height.mean(axis=(1, 2))
    assert height.min() >= 0.99 * results.radius.max()
    assert first > second > third


@pytest.mark.parametrize(("tangent", "ratio"), [(0.2, 0.2), (0.45, 0.45), (0.8, 0.5), (2.0, 0.5)])
@pytest.mark.parametrize("height", passes.BLOCKS.values())
def test_a_block_on_a_slope_ends_with_coulombs_ratio(tangent, ratio, height):
    for first in passes.FIRST:
        assert passes._ratios(tangent, height, first)[-1] == pytest.approx(ratio, abs=1e-5)


def test_a_sticky_pass_bears_what_keeps_the_block_from_sliding():
    """A block that does not tip: the ratio of one sticky pass is the tangent itself."""
    assert passes._ratios(1.5, 0.5, "sticky")[0] == pytest.approx(1.5, abs=1e-4)


def test_orders_of_known_sequences():
    quadratic = np.array([1e-1, 1e-2, 1e-4, 1e-8])
    linear = np.array([1e-1, 1e-2, 1e-3, 1e-4])
    assert passes.orders(quadratic) == pytest.approx([2.0, 2.0])
    assert passes.orders(linear) == pytest.approx([1.0, 1.0])
    assert passes.orders(np.concatenate([[np.nan], linear, [1e-3]])) == pytest.approx([1.0, 1.0])
    assert passes._order(linear) == pytest.approx(1.0)
    assert passes._order(quadratic) == pytest.approx(2.0)
    assert passes._rate(linear) == pytest.approx(0.1)


def test_blocks_of_a_sweep_are_contacts():
    """A contact alone is solved by the first sweep."""
    form = passes.box_form(passes.block(0.2, 0.5))
    one = st.ContactProblem(
        np.eye(3),
        [0.3, 0.0, -1.0],
        [[0.0, 0.0, 1.0]],
        [[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]],
        [0.5],
        law=st.BoxFriction(),
    )
    single = passes.box_form(one)
    step = heap.Step(single, {"scaled": np.ones(1)})
    assert heap._sweep(step, "scaled", (0, 1))[1] <= 1e-15
    four = heap.Step(form, {"scaled": np.ones(form.n)})
    violations = heap._sweep(four, "scaled", (0, 1, 10, 100))
    assert violations[0] > violations[-1]
