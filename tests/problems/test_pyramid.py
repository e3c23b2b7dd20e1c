"""The pyramid LCP, held against velocities computed from impulses in SI units."""

from __future__ import annotations

import numpy as np
import pytest

import stiction as st
from stiction.problems.contact import ContactProblem
from stiction.problems.laws import Coulomb
from stiction.problems.pyramid import directions_of, pyramid_directions, pyramid_impulse, pyramid_lcp
from stiction.problems.zoo.contact_families import CONTACT_FAMILIES, peg, stack
from stiction.solutions.contact import judge_contact


def judged(problem, impulse):
    velocity, joint_impulse = problem.respond(impulse)
    return judge_contact(problem, velocity, impulse, joint_impulse)


def point(mass, push, friction, law):
    """A point mass on the ground, falling at 1 m/s and pushed sideways."""
    return ContactProblem(mass * np.eye(3), [*push, -1.0], [[0, 0, 1]], [[[1, 0, 0], [0, 1, 0]]], [friction], law=law)


def test_one_point_by_hand():
    """Rows of a point are orthonormal, and its largest free velocity, 3 m/s, is the unit."""
    lcp = pyramid_lcp(point(2.0, (3.0, 0.0), 0.5, Coulomb(facets=4)))
    expected = [
        [1, 0, 0, 0, 0, 0],
        [0, 1, 0, -1, 0, 1],
        [0, 0, 1, 0, -1, 1],
        [0, -1, 0, 1, 0, 1],
        [0, 0, -1, 0, 1, 1],
        [0.5, -1, -1, -1, -1, 0],
    ]
    np.testing.assert_allclose(lcp.M, expected, atol=1e-15)
    np.testing.assert_allclose(lcp.q, [-1 / 3, 1, 0, -1, 0, 0], atol=1e-15)


@pytest.mark.parametrize(
    "family", ["peg-16", "stack-3", "chain", "motor", "plane-stack", "heap-delassus", "plate-gaps"]
)
def test_slacks_are_the_velocities_and_rooms_of_the_impulses(family):
    problem = CONTACT_FAMILIES[family](3).with_law(Coulomb(facets=5, rotation=0.3))
    white, directions, n = problem.whitened, directions_of(problem), problem.n
    d = len(directions)
    lcp = pyramid_lcp(problem)
    assert lcp.n == n * (d + 2)
    z = np.random.default_rng(0).uniform(0.0, 1.0, lcp.n)
    w = lcp.M @ z + lcp.q
    theta, phi, lam = z[:n], z[n : n * (d + 1)].reshape(n, d), z[n * (d + 1) :]
    _, u, _ = judged(problem, pyramid_impulse(problem, z))
    scaled = u * (white.scale / white.tau)[:, None]
    np.testing.assert_allclose(w[:n], scaled[:, 0], atol=1e-9)
    np.testing.assert_allclose(w[n : n * (d + 1)].reshape(n, d), scaled[:, 1:] @ directions.T + lam[:, None], atol=1e-9)
    np.testing.assert_allclose(w[n * (d + 1) :], problem.friction * theta - phi.sum(axis=1), atol=1e-12)


@pytest.mark.parametrize("problem", [peg(8, 0), stack(2, 1), CONTACT_FAMILIES["plane-ladder"](0)])
def test_its_solution_is_the_contact_problems(problem):
    problem = problem.with_law(Coulomb(facets=8))
    solution = st.solve(pyramid_lcp(problem), st.Lemke())
    assert judged(problem, pyramid_impulse(problem, solution.z))[0].residual <= 1e-9


def test_units_do_not_matter():
    """Tonnes and mm/s give the same numbers as kilograms and m/s."""
    heavy = pyramid_lcp(point(2e6, (3.0, 0.5), 0.5, Coulomb(facets=6)))
    light = point(2.0, (3.0, 0.5), 0.5, Coulomb(facets=6))
    fast = pyramid_lcp(
        ContactProblem(
            light.mass, 1e3 * light.velocity, [[0, 0, 1]], [[[1, 0, 0], [0, 1, 0]]], [0.5], law=Coulomb(facets=6)
        )
    )
    np.testing.assert_allclose(heavy.M, fast.M, atol=1e-14)
    np.testing.assert_allclose(heavy.q, fast.q, atol=1e-14)


def test_plane_keeps_the_two_furthest_directions():
    np.testing.assert_array_equal(pyramid_directions(8, 0.0, 2), [[1.0, 0.0], [-1.0, 0.0]])
    np.testing.assert_allclose(pyramid_directions(3, 0.0, 2)[:, 0], [1.0, -0.5])
    assert pyramid_directions(5, 0.1, 3).shape == (5, 2)
    with pytest.raises(ValueError, match="read-only"):
        pyramid_directions(5, 0.1, 3)[0] = 0.0


def test_no_contacts():
    none = ContactProblem(np.eye(3), np.ones(3), np.zeros((0, 3)), np.zeros((0, 2, 3)), [], law=Coulomb(facets=8))
    assert pyramid_lcp(none).n == 0
    assert pyramid_impulse(none, []).shape == (0, 3)


def test_bad_input_is_named():
    with pytest.raises(st.UnsupportedProblem, match=r"law must be Coulomb\(facets=d\), got Coulomb\(facets=None"):
        pyramid_lcp(peg(8, 0))
    problem = peg(8, 0).with_law(Coulomb(facets=8))
    with pytest.raises(st.InvalidProblem, match=r"z must have shape \(80,\) to match 8 contacts of 8 directions"):
        pyramid_impulse(problem, np.zeros(79))
