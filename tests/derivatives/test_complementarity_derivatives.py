"""Derivatives of LCP and BoxLCP: in exact fractions, against differences, at kinks, and where there are none."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import stiction as st
from stiction.problems import FAMILIES


def exact_step(H, q, between, way_q, way_H, z_bound):
    """dz in fractions, by a difference of the exact answers of the variables between their bounds."""

    def answer(t):
        A = [[Fraction(float(H[i, j])) + t * Fraction(float(way_H[i, j])) for j in range(len(q))] for i in between]
        b = [-(Fraction(float(q[i])) + t * Fraction(float(way_q[i]))) for i in between]
        inside = [[row[j] for j in between] for row in A]
        rest = [j for j in range(len(q)) if j not in set(between)]
        b = [value - sum(row[j] * Fraction(float(z_bound[j])) for j in rest) for value, row in zip(b, A, strict=True)]
        return solved(inside, b)

    t = Fraction(1, 10**12)
    return [(a - b) / (2 * t) for a, b in zip(answer(t), answer(-t), strict=True)]


def solved(A, b):
    n = len(b)
    A = [[*row, value] for row, value in zip(A, b, strict=True)]
    for k in range(n):
        pivot = next(i for i in range(k, n) if A[i][k] != 0)
        A[k], A[pivot] = A[pivot], A[k]
        for i in range(n):
            if i != k and A[i][k] != 0:
                factor = A[i][k] / A[k][k]
                A[i] = [a - factor * c for a, c in zip(A[i], A[k], strict=True)]
    return [A[i][n] / A[i][i] for i in range(n)]


@pytest.mark.parametrize("boxed", [False, True])
def test_in_fractions(boxed):
    compared = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 7))
        half = rng.integers(-3, 4, (n, n))
        H = (half @ half.T + np.diag(rng.integers(1, 4, n)) + np.triu(rng.integers(-1, 2, (n, n)), 1)).astype(float)
        q = rng.integers(-6, 7, n).astype(float)
        problem = st.BoxLCP(H, q, -1.0, 1.0) if boxed else st.LCP(H, q)
        solution = st.solve(problem, throw=False)
        if not solution.ok:
            continue
        found = st.differentiate(solution)
        if not found.smooth:
            assert found.kinks
            continue
        way_q, way_H = rng.integers(-3, 4, n).astype(float), rng.integers(-2, 3, (n, n)).astype(float)
        response = found.jvp({"q": way_q, "H": way_H})
        between = found.between.tolist()
        exact = np.zeros(n)
        exact[between] = [float(x) for x in exact_step(H, q, between, way_q, way_H, solution.z)]
        assert response.z == pytest.approx(exact, rel=1e-10, abs=1e-10)
        assert response.w == pytest.approx(H @ exact + way_q + way_H @ solution.z, rel=1e-9, abs=1e-9)
        assert response.residual <= 1e-12
        compared += 1
    assert compared >= 40


@pytest.mark.parametrize("name", sorted(FAMILIES))
def test_families_against_differences(name):
    rng, compared, without = np.random.default_rng(0), 0, 0
    for seed in range(4):
        problem = FAMILIES[name].make(8, seed)
        solution = st.solve(problem, throw=False)
        if not solution.ok:
            continue
        found = st.differentiate(solution)
        if not found.smooth:  # of a semidefinite matrix z need not be determined
            without += 1
            assert found.kinks or "not determined" in found.reason
            continue
        scale = np.abs(problem.q).max()
        way = scale * rng.normal(size=problem.n)
        response = found.jvp({"q": way})
        best = np.inf
        for eps in (1e-6, 1e-5, 1e-7, 1e-8, 1e-4):
            made = [made_again(problem, problem.q + t * way) for t in (eps, -eps)]
            both = [st.solve(each, throw=False) for each in made]
            if all(each.ok for each in both) and same_places(found, both):
                difference = (both[0].z - both[1].z) / (2.0 * eps)
                size = max(np.abs(difference).max(), np.abs(solution.z).max()) or 1.0
                best = min(best, np.abs(difference - response.z).max() / size)
        if np.isfinite(best):
            assert best <= 1e-6
            compared += 1
    assert compared or without == 4
    if "P" in FAMILIES[name].classes:
        assert compared


def made_again(problem, q):
    return st.LCP(problem.H, q) if isinstance(problem, st.LCP) else st.BoxLCP(problem.H, q, problem.lo, problem.hi)


def same_places(found, solutions):
    """Whether the step has crossed no kink."""
    return all((st.differentiate(each, strict=False).place == found.place).all() for each in solutions)


def test_vjp_is_the_transpose_of_jvp():
    rng = np.random.default_rng(2)
    problem = FAMILIES["unsymmetric_definite"].make(12, 3)
    found = st.differentiate(st.solve(problem))
    way, weights = {"q": rng.normal(size=12), "H": rng.normal(size=(12, 12))}, rng.normal(size=12)
    gradient = found.vjp(weights)
    expected = gradient.q @ way["q"] + (gradient.H * way["H"]).sum()
    assert weights @ found.jvp(way).z == pytest.approx(expected, rel=1e-10)
    assert weights @ found.by_q == pytest.approx(gradient.q, rel=1e-10)
    assert found.by_H.apply(way["H"]) == pytest.approx(found.jvp({"H": way["H"]}).z)
    assert found.by_H.transpose(weights) == pytest.approx(gradient.H)
    assert found.residual <= 1e-12


def test_kinks_by_hand():
    """z = max(0, -q / 2) at q = 0: half on one side, nothing on the other."""
    found = st.differentiate(st.solve(st.LCP([[2.0]], [0.0])))
    assert [k.index for k in found.kinks] == [0]
    with pytest.raises(st.NotDifferentiable, match=r"z\[0\] .*one_sided"):
        found.jvp({"q": [1.0]})
    assert found.one_sided({"q": [-1.0]}).z == pytest.approx([0.5])
    assert found.one_sided({"q": [1.0]}).z == pytest.approx([0.0])


def test_a_kink_at_the_upper_bound():
    found = st.differentiate(st.solve(st.BoxLCP([[1.0, 0.5], [0.5, 2.0]], [-1.75, 0.0], [-9.0, -9.0], [2.0, 9.0])))
    assert [k.index for k in found.kinks] == [0]
    # Pushed further into the bound z_0 stays, else both follow H⁻¹.
    assert found.one_sided({"q": [-1.0, 1.0]}).z == pytest.approx([0.0, -0.5])
    inverse = np.linalg.inv([[1.0, 0.5], [0.5, 2.0]])
    assert found.one_sided({"q": [1.0, 0.0]}).z == pytest.approx(-inverse[:, 0])


def test_one_sided_derivatives_are_exact_differences():
    """Piecewise linear in q: at a constructed kink a short step along a direction is the derivative itself."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        half = rng.normal(size=(6, 6))
        H = half @ half.T + np.eye(6)
        z = np.array([1.0, 2.0, 0.0, 0.0, 0.0, 0.5])
        w = np.array([0.0, 0.0, 0.0, 0.0, 1.5, 0.0])  # kinks at 2 and 3
        problem = st.LCP(H, w - H @ z)
        solution = st.solve(problem)
        found = st.differentiate(solution)
        assert [k.index for k in found.kinks] == [2, 3]
        way = rng.normal(size=6)
        ahead = st.solve(st.LCP(H, problem.q + 1e-3 * way))
        assert found.one_sided({"q": way}).z == pytest.approx((ahead.z - solution.z) / 1e-3, abs=1e-9)


def test_a_singular_matrix_has_no_determined_answer():
    found = st.differentiate(st.solve(st.BoxLCP([[1.0, 1.0], [1.0, 1.0]], [-2.0, -2.0], -np.inf, np.inf)))
    with pytest.raises(st.NotDifferentiable, match="z is not determined"):
        _ = found.by_q
    smallest = st.differentiate(found.solution, strict=False).jvp({"q": [-1.0, -1.0]})
    assert smallest.z == pytest.approx([0.5, 0.5])


def test_fixed_variables_do_not_move():
    found = st.differentiate(st.solve(st.BoxLCP(np.eye(2), [-1.0, -1.0], [0.5, 0.0], [0.5, 9.0])))
    assert found.jvp({"q": [1.0, 1.0]}).z == pytest.approx([0.0, -1.0])


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ({"p": [1.0]}, "'p' is no datum of LCP; there are q, H"),
        ({"q": [1.0, 2.0]}, r"q must have shape \(1,\).*got \(2,\)"),
        ({}, "changes nothing; give q or H"),
        (7, "must be an LCPChange or a mapping, got int"),
    ],
)
def test_bad_input(way, message):
    found = st.differentiate(st.solve(st.LCP([[2.0]], [-1.0])))
    with pytest.raises(st.InvalidProblem, match=message):
        found.jvp(way)
    with pytest.raises(st.InvalidProblem, match="made without its problem"):
        st.differentiate(found.solution._replace(problem=None))
