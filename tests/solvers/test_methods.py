"""What is particular to each method."""

from __future__ import annotations

import numpy as np
import pytest

import stiction as st
from stiction.problems import LCP, BoxLCP
from stiction.problems.zoo.classics import classic, classics, fathi, murty_exponential
from stiction.problems.zoo.families import FAMILIES, positive_definite, positive_definite_box, wall

# Lemke.


@pytest.mark.parametrize("name", classics())
def test_lemke_solves_the_classics_or_says_why_not(name):
    known = classic(name)
    solution = st.solve(known.problem, st.Lemke(), tolerance=1e-9, throw=False)
    assert solution.ok or solution.ray is not None
    if solution.ray is not None and solution.ray.infeasible:
        assert not known.basic_solutions
    if name not in ("floudas_10_2_4", "siconos_lcp_Pang_isolated_sol_perturbed") and known.basic_solutions:
        assert solution.ok


@pytest.mark.parametrize(("name", "pivots"), [("kostreva1_cycling", 3), ("kostreva2_cycling", 1)])
def test_lemke_does_not_cycle(name, pivots):
    assert st.solve(classic(name).problem, st.Lemke(tries=1), throw=False).iterations == pivots


def test_the_artificial_variable_wins_ties():
    assert st.solve(classic("cps_4_4_16").problem, st.Lemke(tries=1)).iterations == 1


def test_lemke_takes_a_cover():
    problem = positive_definite(20, 1)
    cover = np.linspace(1.0, 3.0, 20)
    assert st.solve(problem, st.Lemke(cover=cover)).ok
    with pytest.raises(st.InvalidProblem, match=r"cover must be positive, but cover\[0\] = 0"):
        st.solve(problem, st.Lemke(cover=np.arange(20.0)))
    with pytest.raises(st.InvalidProblem, match=r"cover must have shape \(20,\)"):
        st.solve(problem, st.Lemke(cover=[1.0]))


def test_lemke_keeps_bounds_inside_the_method():
    # All bounds finite: any matrix has a solution, and the path finds it.
    for seed in range(50):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 12))
        problem = BoxLCP(rng.normal(size=(n, n)), rng.normal(size=n), -rng.random(n), rng.random(n))
        assert st.solve(problem, st.Lemke()).ok


def test_lemke_takes_equations_whose_own_block_is_singular():
    # minimize ½|y - (1, -2)|² subject to y1 + y2 = 3, y >= 0: multiplier x is free, its own entry zero
    problem = BoxLCP.from_mixed([[0.0]], np.eye(2), [[1.0, 1.0]], [[-1.0], [-1.0]], [-3.0], [-1.0, 2.0])
    solution = st.solve(problem, st.Lemke())
    assert solution.z == pytest.approx([2.0, 3.0, 0.0])


@pytest.mark.parametrize("name", ["diodeBridge", "PD", "PDSym", "RLCD", "m2n1", "relay1", "relay_2x2", "step_4x4"])
def test_lemke_solves_circuits_and_relays(name):
    from stiction.problems.zoo.classics import box_classics

    assert st.solve(box_classics()[name].problem, st.Lemke(), tolerance=1e-9).ok


def test_a_long_path_does_not_drift():
    problem = positive_definite(300, 7, condition=1e8)
    solution = st.solve(problem, st.Lemke(tries=1))
    assert solution.iterations > 150
    assert solution.certificate.residual <= 1e-11


# Principal pivoting.


def test_least_index_can_take_exponentially_many_pivots():
    assert [st.solve(murty_exponential(n), st.Murty()).iterations for n in (3, 5, 7)] == [7, 31, 127]
    assert st.solve(fathi(12), st.Keller()).iterations <= 12


def test_principal_pivot_counts_few_pivots_where_little_is_active():
    problem = FAMILIES["frictionless_contact"].make(120, 3)
    solution = st.solve(problem, st.PrincipalPivot())
    assert solution.iterations <= 4 * np.count_nonzero(solution.z) + 20


def test_cottle_dantzig_in_order_gives_the_same_velocities():
    problem = wall(60, 2)
    worst, ordered = (st.solve(problem, st.CottleDantzig(in_order=order)) for order in (False, True))
    assert worst.w == pytest.approx(ordered.w, abs=1e-9 * np.abs(problem.q).max())


# Newton type.


def test_block_pivot_needs_a_handful_of_factorizations():
    counts = [st.solve(positive_definite(200, seed, condition=1e2), st.BlockPivot()).iterations for seed in range(20)]
    assert max(counts) < 10


def test_block_pivot_falls_back_on_murty_when_it_cycles():
    cycled = 0
    for seed in range(300):
        problem = FAMILIES["p_matrix"].make(6, seed, contraction=0.999)
        solution = st.solve(problem, st.BlockPivot())
        cycled += bool(solution.trace)
        assert solution.ok
    for seed in range(60):
        solution = st.solve(positive_definite_box(20, seed, condition=1e8), st.BlockPivot())
        cycled += bool(solution.trace)
    assert cycled > 0, "none of these problems cycles: the safeguard was not tested"


def test_a_perturbation_leaves_no_trace_in_the_answer():
    problem = LCP([[1.0, 1.0], [1.0, 1.0]], [-1.0, -1.0])
    solution = st.solve(problem, st.BlockPivot(perturbation=1e-2), tolerance=1e-12)
    assert solution.z.sum() == pytest.approx(1.0, abs=1e-12)
    with pytest.raises(st.InvalidProblem, match="perturbation must be non-negative"):
        st.BlockPivot(perturbation=-1.0)


def test_newton_iterations_hardly_depend_on_n():
    def steps(n):
        return np.median([st.solve(positive_definite_box(n, s), st.SmoothingNewton()).iterations for s in range(5)])

    assert steps(200) <= 2.0 * steps(25)


# Gauss-Seidel.


def test_gauss_seidel_records_its_residuals():
    solution = st.solve(positive_definite(30, 1, condition=5.0), st.GaussSeidel())
    assert len(solution.history) == solution.iterations + 1
    assert solution.history[-1] == solution.certificate.residual <= 1e-12
    assert solution.history[0] > 1e-3


@pytest.mark.parametrize("blocks", [3, 30, (10, 20), (1, 2, 27)])
def test_blocks_of_any_size_give_the_same_answer(blocks):
    problem = positive_definite_box(30, 2, condition=50.0)
    single = st.solve(problem, st.GaussSeidel())
    solution = st.solve(problem, st.GaussSeidel(blocks=blocks))
    assert solution.z == pytest.approx(single.z, abs=1e-9 * np.abs(single.z).max())
    assert solution.iterations == 1 if blocks == 30 else solution.iterations != single.iterations


def test_relaxation_changes_the_path_and_not_the_answer():
    problem = positive_definite(30, 1, condition=20.0)
    plain, over = (st.solve(problem, st.GaussSeidel(relaxation=r)) for r in (1.0, 1.4))
    assert plain.iterations != over.iterations
    assert plain.z == pytest.approx(over.z, abs=1e-8 * np.abs(plain.z).max())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"relaxation": 2.0}, "relaxation must lie between 0 and 2"),
        ({"blocks": 0}, "blocks must have sizes of at least 1"),
        ({"blocks": (1, 2)}, "blocks must sum to n = 4, got 3"),
    ],
)
def test_bad_options_of_gauss_seidel(options, message):
    with pytest.raises(st.InvalidProblem, match=message):
        st.solve(LCP(np.eye(4), -np.ones(4)), st.GaussSeidel(**options))


# Enumeration.


def test_enumeration_knows_when_there_is_no_solution():
    solution = st.solve(classic("infeasible_1d").problem, st.Enumerate(), throw=False)
    assert solution.status == st.Status.NO_SOLUTION


def test_a_choice_tells_what_enumeration_has_proved():
    # Lemke's method ends in a ray that proves nothing; that every support was tried does.
    solution = st.solve(classics()["siconos_lcp_Pang_isolated_sol_perturbed"].problem, throw=False)
    assert solution.status == st.Status.NO_SOLUTION
    assert any("Lemke: ray" in line for line in solution.trace)


def test_enumeration_decides_singular_supports():
    # z2 - 1 = 0 is the only equation for z1 > 0, and its block is zero: no basic solution has that support alone.
    problem = LCP([[0.0, 1.0], [-1.0, 0.0]], [-1.0, 1.0])
    assert st.solve(problem, st.Enumerate()).ok
    flat = LCP([[0.0, 0.0], [0.0, 0.0]], [0.0, 1.0])
    assert st.solve(flat, st.Enumerate()).ok
