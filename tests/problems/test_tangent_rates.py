"""Surfaces that move by themselves, as data of a `ContactProblem`: u_t = T v + tangent_rate."""

from __future__ import annotations

import numpy as np
import pytest

import stiction as st
from stiction.problems.contact import ContactProblem

MU, G = 0.3, 9.81
RATE = [[-0.5, 0.0]]


def block(rate=RATE, mass=2.0, **options) -> ContactProblem:
    """A mass on a belt that runs at 0.5 m/s along x, after a second of gravity."""
    eye = np.eye(3)
    return ContactProblem(
        mass * eye, [0.0, 0.0, -G], eye[2:], eye[None, :2], [MU], tangent_rate=rate, **options
    )  # fmt: skip


def two(rate=None) -> ContactProblem:
    """Two blocks, free bodies, side by side: two islands."""
    mass = np.array([np.diag([2.0, 2.0, 2.0, 0.1, 0.1, 0.1])] * 2)
    rows = np.zeros((2, 3, 2, 6))
    for i in range(2):
        rows[i, 0, 0, 2], rows[i, 1, 0, 0], rows[i, 2, 0, 1] = 1.0, 1.0, 1.0
    velocity = np.array([[0.1, 0, -0.2, 0, 0, 0], [0, 0, -0.3, 0, 0, 0]])
    return ContactProblem.from_bodies(
        mass, velocity, [[0, -1], [1, -1]], rows[:, 0], rows[:, 1:], [MU, MU], tangent_rate=rate
    )


def test_a_block_on_a_belt_is_carried_as_far_as_friction_goes():
    """mu g = 2.9 m/s are more than the belt's 0.5: it sticks to it. On a faster belt it slides, and gains mu g."""
    found = st.solve(block())
    np.testing.assert_allclose(found.velocity, [0.5, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.contact_velocity, 0.0, atol=1e-12)
    assert found.mode.tolist() == [st.Mode.STICK]
    found = st.solve(block([[-5.0, 0.0]]))
    np.testing.assert_allclose(found.velocity, [MU * G, 0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.contact_velocity, [[0.0, MU * G - 5.0, 0.0]], atol=1e-12)
    assert found.mode.tolist() == [st.Mode.SLIDE]
    assert found.certificate.energy <= 0.0


def test_an_answer_that_ignores_the_belt_is_not_certified():
    still = st.solve(block(None))
    assert st.certify(block(None), still).residual < 1e-12
    assert st.certify(block(), still).residual > 1e-2


def test_friction_that_differs_between_directions_scales_the_rates_too():
    """The rows are multiplied by the ratio of coefficients, and so is what is added to them."""
    eye = np.eye(3)
    given = ([0.0, 0.0, -G], eye[2:], eye[None, :2], [[0.3, 0.03]])
    problem = ContactProblem(eye, *given, tangent_rate=[[0.0, -5.0]])
    np.testing.assert_allclose(problem.tangent_rate, [[0.0, -0.5]])
    np.testing.assert_allclose(st.solve(problem).velocity, [0.0, 0.03 * G, 0.0], atol=1e-12)


@pytest.mark.parametrize("law", [st.Coulomb(facets=8), st.BoxFriction(), st.NoSlip()], ids=str)
def test_other_laws(law):
    found = st.solve(block(law=law))
    np.testing.assert_allclose(found.velocity, [0.5, 0.0, 0.0], atol=1e-9)


@pytest.mark.parametrize("implicit", [False, True])
def test_viscous_friction_is_relative_to_the_surface(implicit):
    found = st.solve(block(law=st.Viscous(implicit=implicit), viscosity=[0.4]))
    np.testing.assert_allclose(found.velocity[0], 0.4 * 0.5 / (2.0 + 0.4 * implicit), rtol=1e-12)


def test_rates_make_islands_judged_by_themselves():
    problem = two([[-0.01, 0.0], [0.02, 0.01]])
    found = st.solve(problem)
    np.testing.assert_allclose(found.velocity[[0, 1]], [0.1 - MU * 0.2, 0.0], atol=1e-12)
    np.testing.assert_allclose(found.velocity[[6, 7]], [-0.02, -0.01], atol=1e-12)
    many = st.solve_many([problem, two()])
    np.testing.assert_allclose(many.velocity[0], found.velocity, atol=1e-10)
    np.testing.assert_allclose(many.velocity[1], st.solve(two()).velocity, atol=1e-10)


@pytest.mark.parametrize("name", ["a.npz", "a.hdf5", "a.dat"])
@pytest.mark.parametrize("make", [block, lambda: two([[-0.01, 0.0], [0.02, 0.01]])], ids=["dense", "bodies"])
def test_files_keep_them(tmp_path, name, make):
    problem = make()
    problem.save(tmp_path / name)
    again = st.load(tmp_path / name)
    np.testing.assert_allclose(again.tangent_rate, problem.tangent_rate, rtol=1e-15)
    np.testing.assert_allclose(st.solve(again).velocity, st.solve(problem).velocity, atol=1e-12)


def test_replaced_and_taken_away():
    problem = block()
    np.testing.assert_allclose(st.solve(problem.replace(tangent_rate=[[-0.2, 0.0]])).velocity[0], 0.2, atol=1e-12)
    np.testing.assert_allclose(st.solve(problem.replace(tangent_rate=None)).velocity[0], 0.0, atol=1e-12)
    local = ContactProblem.from_delassus(np.eye(3), [-1.0, 0.5, 0.0], [MU])
    with pytest.raises(st.InvalidProblem, match="tangent_rate is part of q in Delassus form"):
        local.replace(tangent_rate=RATE)


@pytest.mark.parametrize(
    ("rate", "message"),
    [
        ([[0.1, 0.2, 0.3]], r"tangent_rate must have shape \(1, 1 or 2\), got \(1, 3\)"),
        ([0.1], r"tangent_rate must have shape \(1, 1 or 2\), got \(1,\)"),
        ([[np.nan, 0.0]], r"tangent_rate.*\[0, 0\]"),
        ([["a", 0.0]], "tangent_rate"),
    ],
)
def test_what_is_wrong_is_named(rate, message):
    with pytest.raises(st.InvalidProblem, match=message):
        block(rate)


@pytest.mark.parametrize("rate", [[[-0.5, 0.1]], [[-5.0, 1.0]]], ids=["sticks", "slides"])
@pytest.mark.parametrize("law", [st.Coulomb(), st.Viscous(), st.Viscous(implicit=True)], ids=str)
def test_derivatives(rate, law):
    """By the rates, against differences, and the transpose; a belt's speed may be what is to be found."""
    options = {"law": law, "viscosity": [0.4] if law.viscous else None}
    solution = st.solve(block(rate, **options))
    found, way, eps = st.differentiate(solution), np.array([[0.3, -0.7]]), 1e-6
    ahead, back = (st.solve(block(np.array(rate) + sign * eps * way, **options)).velocity for sign in (1.0, -1.0))
    jvp = found.jvp({"tangent_rate": way}).velocity
    np.testing.assert_allclose(jvp, (ahead - back) / (2 * eps), atol=1e-7)
    weight = np.array([1.0, -2.0, 0.5])
    assert float((found.vjp(weight).tangent_rate * way).sum()) == pytest.approx(float(weight @ jvp), abs=1e-10)
    # Everything else, beside a moving surface.
    change = {"free": np.array([0.1, -0.2, 0.3]), "friction": np.array([0.5])}
    ahead, back = (
        st.solve(
            block(rate, **options).replace(velocity=[sign * eps * 0.1, -sign * eps * 0.2, sign * eps * 0.3 - G],
                                           friction=[MU + sign * eps * 0.5])
        ).velocity
        for sign in (1.0, -1.0)
    )  # fmt: skip
    np.testing.assert_allclose(found.jvp(change).velocity, (ahead - back) / (2 * eps), atol=1e-7)
