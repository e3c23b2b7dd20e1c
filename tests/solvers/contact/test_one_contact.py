"""The exact solution of one contact, sweeps of it, and the map that measures them."""

from __future__ import annotations

import numpy as np
import pytest

from stiction.arrays.vectors import THREE, Six, Three
from stiction.solvers.contact.cone_newton.one_contact import (
    EXACT,
    Contacts,
    Point,
    alart_curnier,
    evaluate,
    into_cone,
    principal_axes,
    set_delassus,
    solve_contact,
    sweep,
)
from stiction.solvers.contact.cone_newton.one_wide_contact import solve_wide

VECTORS = {3: Three, 6: Six}


def response(seed, rank=3, size=3):
    rows = np.random.default_rng(seed).normal(size=(size, rank))
    return rows @ rows.T


def violation(D, b, mu, p):
    u = D @ p + b
    return alart_curnier(VECTORS[len(p)](*p), VECTORS[len(p)](*u), mu, False)[0] / (
        np.abs(b).max() + np.abs(D).max() * np.abs(p).max()
    )


@pytest.mark.parametrize("mu", [0.0, 0.01, 0.3, 1.0, 10.0, 1000.0])
def test_one_contact_satisfies_the_law(mu):
    for seed in range(200):
        D, b = response(seed), np.random.default_rng(seed + 1000).normal(size=3)
        p = np.array(solve_contact(D, *b, mu, EXACT))
        assert violation(D, b, mu, p) <= 1e-12 * max(1.0, mu)  # an error of p_n moves the rim by mu times as much
        assert np.hypot(p[1], p[2]) <= mu * p[0] * (1 + 1e-14)


@pytest.mark.parametrize("rank", [4, 6])
@pytest.mark.parametrize("mu", [0.0, 0.01, 0.3, 1.0, 10.0])
def test_one_contact_with_spin_and_rolling_satisfies_the_law(mu, rank):
    """Rank 4: spin and rolling depend on the others."""
    p = np.empty(6)
    for seed in range(200):
        D, b = response(seed, rank, 6), np.random.default_rng(seed + 1000).normal(size=6)
        if rank == 4:
            rows = np.random.default_rng(seed).normal(size=(6, rank))
            b = rows @ np.random.default_rng(seed + 1000).normal(size=rank)
        solve_wide(D, Six(*b), mu, EXACT, np.empty((3, 6, 6)), p)
        assert violation(D, b, mu, p) <= 1e-11 * max(1.0, mu)
        assert np.linalg.norm(p[1:]) <= mu * p[0] * (1 + 1e-14)


def test_an_approaching_contact_that_needs_little_friction_sticks():
    D, b = np.diag([1.0, 2.0, 3.0]), np.array([-1.0, 0.2, -0.3])
    np.testing.assert_allclose(D @ solve_contact(D, *b, 0.5, EXACT) + b, 0.0, atol=1e-13)


def test_a_sliding_contact_is_pushed_against_its_sliding():
    D, b = np.eye(3), np.array([-1.0, 3.0, 4.0])
    np.testing.assert_allclose(solve_contact(D, *b, 0.5, EXACT), [1.0, -0.3, -0.4], rtol=1e-14)


def test_a_rough_solution_lies_on_the_rim_and_near():
    D, b = np.diag([1.0, 2.0, 3.0]), np.array([-1.0, 4.0, -3.0])
    exact, rough = (np.array(solve_contact(D, *b, 0.3, accuracy)) for accuracy in (EXACT, 1e-2))
    assert np.hypot(rough[1], rough[2]) == pytest.approx(0.3 * rough[0], rel=1e-14)
    np.testing.assert_allclose(rough, exact, rtol=0.1)


def test_a_separating_contact_gets_nothing():
    assert solve_contact(response(0), 0.1, 5.0, 5.0, 1.0, EXACT) == (0.0, 0.0, 0.0)


def test_a_contact_whose_normal_moves_nothing_gets_nothing():
    assert solve_contact(np.zeros((3, 3)), -1.0, 0.0, 0.0, 1.0, EXACT) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("mu", [0.1, 1.0])
def test_one_tangent_only(mu):
    for seed in range(50):
        rng = np.random.default_rng(seed)
        rows = np.zeros((3, 2))
        rows[:2] = rng.normal(size=(2, 2))
        D, b = rows @ rows.T, np.append(rng.normal(size=2), 0.0)
        p = np.array(solve_contact(D, *b, mu, EXACT))
        assert p[2] == 0.0
        assert violation(D, b, mu, p) <= 1e-12


def test_principal_axes_diagonalise():
    for seed in range(50):
        a = np.random.default_rng(seed).normal(size=(2, 2))
        S = a @ a.T
        large, small, v1, v2 = principal_axes(S[0, 0], S[0, 1], S[1, 1])
        np.testing.assert_allclose([small, large], np.linalg.eigvalsh(S), rtol=1e-10, atol=1e-14)
        np.testing.assert_allclose(S @ [v1, v2], large * np.array([v1, v2]), rtol=1e-10, atol=1e-14)
    assert principal_axes(2.0, 0.0, 2.0) == (2.0, 2.0, 1.0, 0.0)


def contacts_on_two_bodies(n, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 3, 12))
    segments = np.tile([0, 6, 6, 6], (n, 1))
    segments[0] = [6, 6, 0, 0]
    rows[0, :, 6:] = 0.0
    contacts = Contacts(
        THREE, False, rows, segments, rng.normal(size=(n, 3)), rng.uniform(0.1, 0.9, n), np.empty((n, 3, 3)),
        np.ones(n), np.ones(n), np.zeros(n, np.int64), np.empty((0, 3, 3)),
    )  # fmt: skip
    set_delassus(contacts)
    return contacts


def dense(contacts):
    L = np.zeros((len(contacts.friction), 3, 12))
    for i, (start, length, other, more) in enumerate(contacts.segments):
        L[i, :, start : start + length] += contacts.rows[i, :, :length]
        L[i, :, other : other + more] += contacts.rows[i, :, length : length + more]
    return L.reshape(-1, 12)


def test_velocities_follow_from_impulses():
    contacts = contacts_on_two_bodies(5, 1)
    point = Point(np.random.default_rng(2).normal(size=(5, 3)), np.empty(12), np.empty((5, 3)))
    largest, square = evaluate(contacts, point)
    L = dense(contacts)
    np.testing.assert_allclose(point.x, L.T @ point.p.ravel(), rtol=1e-13)
    np.testing.assert_allclose(point.u.ravel(), L @ point.x + contacts.offset.ravel(), rtol=1e-12)
    for i in range(5):
        block = L[3 * i : 3 * i + 3]
        np.testing.assert_allclose(contacts.delassus[i], block @ block.T, rtol=1e-13)
    assert 0.0 < largest**2 <= square


def test_nan_comes_through_the_residual():
    contacts = contacts_on_two_bodies(3, 1)
    point = Point(np.full((3, 3), np.nan), np.empty(12), np.empty((3, 3)))
    assert np.isnan(evaluate(contacts, point)[0])


def test_sweeps_converge_and_keep_the_velocity():
    contacts = contacts_on_two_bodies(3, 4)
    point = Point(np.zeros((3, 3)), np.zeros(12), np.empty((3, 3)))
    for _ in range(400):
        sweep(contacts, point, EXACT)
    np.testing.assert_allclose(point.x, dense(contacts).T @ point.p.ravel(), atol=1e-12)
    assert evaluate(contacts, point)[0] <= 1e-12


def test_into_cone_shortens_and_releases():
    p = np.array([[1.0, 3.0, 4.0], [-1.0, 0.5, 0.5], [1.0, 0.1, 0.1]])
    into_cone(p, contacts_on_two_bodies(3, 0)._replace(friction=np.array([0.5, 0.5, 0.5])))
    np.testing.assert_allclose(p, [[1.0, 0.3, 0.4], [0.0, 0.0, 0.0], [1.0, 0.1, 0.1]])
