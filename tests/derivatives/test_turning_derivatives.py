"""Derivatives with torsional and rolling friction: against differences, by hand, and the transpose."""

from __future__ import annotations

import numpy as np
import pytest

import stiction as st
from stiction.derivatives.modes import EDGE, STICK
from turning import FAMILIES, disc, with_turning

STEPS = (1e-5, 1e-4, 1e-6, 1e-3)
AWAY = 1e-3  # margin, over the island's pace, at which no such step reaches the next mode


def agree(make, joint, seeds):
    """How many directions were compared, and the modes that were met."""
    rng, compared, met = np.random.default_rng(2), 0, set()
    for seed in seeds:
        problem = make(seed)
        problem = problem if problem.dim == 6 else with_turning(problem, (0.05, 0.01, 0.01))
        problem = problem.with_law(st.Coulomb(joint=joint))
        solution = st.solve(problem, throw=False)
        if not solution.ok:
            continue
        found = st.differentiate(solution)
        if not found.smooth or (found.margin <= AWAY * problem.whitened.pace).any():
            continue
        met |= set(found.modes.mode.tolist())
        assert found.residual <= 1e-9
        ways = {
            "velocity": np.abs(problem.velocity).max() * rng.normal(size=problem.m),
            "friction": problem.friction * rng.uniform(0.5, 1.0),
            "gap_rate": -problem.normal @ rng.normal(size=problem.m),
        }
        for field, way in ways.items():
            try:
                response = found.jvp({"free" if field == "velocity" else field: way})
            except st.NotDifferentiable as error:
                assert field != "velocity"
                assert "share" in str(error)
                continue
            error = np.inf
            for eps in STEPS:
                ahead, back = (
                    st.solve(problem.replace(**{field: getattr(problem, field) + t * way}), start=solution, throw=False)
                    for t in (eps, -eps)
                )
                if ahead.ok and back.ok:
                    difference = (ahead.velocity - back.velocity) / (2.0 * eps)
                    size = max(np.abs(problem.velocity).max(), np.abs(difference).max())
                    error = min(error, np.abs(difference - response.velocity).max() / size)
                if error <= 1e-6:
                    break
            assert error <= 1e-6, (make, joint, seed, field, error)
            compared += 1
    return compared, met


@pytest.mark.parametrize("joint", [True, False])
def test_against_differences(joint):
    compared, met = 0, set()
    for name in FAMILIES:
        more, kinds = agree(FAMILIES[name], joint, range(2))
        compared, met = compared + more, met | kinds
    assert compared >= 8
    assert met >= {STICK}


def loose(seed):
    """Two contacts of a body with many velocities, which slide, spin and roll."""
    rng = np.random.default_rng(seed)
    half = rng.normal(size=(9, 9))
    return st.ContactProblem(
        half @ half.T + 9.0 * np.eye(9), rng.normal(size=9), rng.normal(size=(2, 9)), rng.normal(size=(2, 5, 9)),
        rng.uniform(0.1, 0.3, 2), gap_rate=rng.normal(size=2) - 2.0,
    )  # fmt: skip


@pytest.mark.parametrize("joint", [True, False])
def test_sliding_against_differences(joint):
    compared, met = agree(loose, joint, range(8))
    assert compared >= 10
    assert met >= {EDGE}


@pytest.mark.slow
@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("name", FAMILIES)
def test_many_against_differences(name, joint):
    compared, _ = agree(FAMILIES[name], joint, range(3, 40))
    assert compared > 0


@pytest.mark.parametrize("joint", [True, False])
def test_one_disc_that_slides_spins_and_rolls(joint):
    """Velocities, impulses and contact velocities, in all directions."""
    problem = disc((3.0, 2.0, 1.0), push=(0.7, 2.0), coefficients=(0.5, 0.2, 0.1, 0.1), joint=joint)
    solution = st.solve(problem)
    found = st.differentiate(solution)
    assert found.smooth
    rng = np.random.default_rng(0)
    way = {"free": rng.normal(size=6), "friction": rng.normal(size=1), "gap_rate": rng.normal(size=1)}
    response = found.jvp(way)

    def moved(t):
        return st.solve(
            problem.replace(
                velocity=problem.velocity + t * way["free"], friction=problem.friction + t * way["friction"],
                gap_rate=problem.gap_rate + t * way["gap_rate"],
            ),
            start=solution,
        )  # fmt: skip

    ahead, back = moved(1e-5), moved(-1e-5)
    for name in ("velocity", "impulse", "contact_velocity"):
        difference = (getattr(ahead, name) - getattr(back, name)) / 2e-5
        assert getattr(response, name) == pytest.approx(difference, abs=1e-8)


def test_by_hand():
    """A disc that spins alone: torsion takes mu_t p_n. Bounded apart, it does not slide, nor roll."""
    found = st.differentiate(st.solve(disc((3.0, 0.0, 0.0), coefficients=(0.5, 0.25, 0.1, 0.1), joint=False)))
    assert found.smooth
    # Pressed harder, it spins less; pushed across or turned about a tangent, it sticks.
    assert found.by_free[3] == pytest.approx([0.25, 0.0, 0.0, 1.0, 0.0, 0.0], abs=1e-12)
    assert found.by_free[[0, 1, 2, 4, 5]] == pytest.approx(np.zeros((5, 6)), abs=1e-12)
    # Together, what spins cannot stick: it slides and rolls as easily as it spins.
    found = st.differentiate(st.solve(disc((3.0, 0.0, 0.0), coefficients=(0.5, 0.25, 0.25, 0.25))))
    assert found.by_free[1, 1] > 0.1
    # All coefficients change together: mu by 1, that of torsion by a half.
    assert found.by_friction[:, 0] == pytest.approx([0.0, 0.0, 0.0, -0.5, 0.0, 0.0], abs=1e-12)


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("name", ["stack", "grasp", "heap"])
def test_vjp_is_the_transpose_of_jvp(name, joint):
    rng = np.random.default_rng(0)
    problem = with_turning(FAMILIES[name](1), (0.05, 0.01, 0.01)).with_law(st.Coulomb(joint=joint))
    found = st.differentiate(st.solve(problem), strict=False)
    n, m = problem.n, problem.m
    half = rng.normal(size=problem.mass.shape)
    way = {
        "free": rng.normal(size=m), "friction": rng.normal(size=n), "gap_rate": rng.normal(size=n),
        "mass": half + half.swapaxes(-1, -2), "rows": rng.normal(size=problem.rows.shape),
    }  # fmt: skip
    weights = {
        "velocity": rng.normal(size=m), "impulse": rng.normal(size=(n, 6)), "contact_velocity": rng.normal(size=(n, 6)),
    }  # fmt: skip
    response, gradient = found.jvp(way), found.vjp(weights)
    forward = sum(float((weights[name] * getattr(response, name)).sum()) for name in weights)
    terms = [float((way[name] * getattr(gradient, name)).sum()) for name in way]
    assert forward == pytest.approx(sum(terms), rel=1e-8, abs=1e-8 * max(np.abs(terms)))


def test_a_kink_is_known():
    """Torsion at its bound while nothing turns: it sticks on one side and spins on the other."""
    found = st.differentiate(st.solve(disc((0.25, 0.0, 0.0), coefficients=(0.5, 0.25, 0.1, 0.1), joint=False)))
    assert [(kink.contact, kink.between) for kink in found.kinks] == [(0, "sticks or slides")]
    with pytest.raises(st.NotDifferentiable, match="at a kink: contact 0 sticks or slides"):
        found.vjp(np.ones(6))
    with pytest.raises(st.NotDifferentiable, match="torsional or rolling friction are not supported"):
        found.one_sided({"free": np.ones(6)})


def test_rows_of_rolling_that_are_not_there():
    """Torsion alone, as condim 4 has it: tangents without a row leave nothing undetermined."""
    found = st.differentiate(st.solve(disc((0.1, 0.0, 0.0), coefficients=(0.5, 0.25, 0.0, 0.0))))
    assert found.smooth
    assert found.determined.all()
    assert found.by_free[4:, 4:] == pytest.approx(np.eye(2), abs=1e-12)
