"""Lemke's path on the contact cells, judged by a natural map computed here with dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

import stiction as st
from stiction.arrays.compiled import workspace
from stiction.problems.contact import ContactProblem
from stiction.problems.laws import Coulomb
from stiction.problems.pyramid import directions_of, pyramid_directions
from stiction.problems.zoo.contact_families import CONTACT_FAMILIES, mass_ratio, peg, stack, with_friction
from stiction.solutions.status import Status
from stiction.solvers.contact.cell_lemke.basis import rebuild
from stiction.solvers.contact.cell_lemke.cell_lemke import CellLemke, fixed
from stiction.solvers.contact.cell_lemke.cells import (
    CELLS,
    CORNER,
    EDGE,
    FREE,
    LINE,
    ROW,
    SEPARATED,
    SIZE,
    SMOOTH,
    VERTEX,
)
from stiction.solvers.contact.cell_lemke.cover import draw_cover, start_random
from stiction.solvers.contact.cell_lemke.path import follow, prepare, sizes, views

# Sizes from 1e-1.5 to 1e1.5 m, masses as their cubes: doubles end here, so not every seed is solved.
BEYOND_DOUBLES = {"stack-lengths"}
FAMILIES = sorted(set(CONTACT_FAMILIES) - BEYOND_DOUBLES)


def dense_mass(problem):
    if problem.mass.ndim == 2:
        return problem.mass
    mass = np.zeros((problem.m, problem.m))
    for b, block in enumerate(problem.mass):
        mass[6 * b : 6 * b + 6, 6 * b : 6 * b + 6] = block
    return mass


def contact_velocities(problem, impulse):
    """u, the free u and the mean diagonal of each contact's Delassus block, joints included, by dense solves."""
    n = problem.n
    if problem.mass is None:
        u_free = problem.offset.reshape(n, 3)
        u = u_free + (problem.delassus @ impulse.ravel()).reshape(n, 3)
        return u, u_free, problem.delassus.diagonal().reshape(n, 3).mean(axis=1)
    mass, joints, rows = dense_mass(problem), problem.joints, problem.dense_rows().reshape(3 * n, problem.m)
    momentum = np.column_stack([np.zeros(problem.m), rows.T @ impulse.ravel(), rows.T])
    change = np.linalg.solve(mass, momentum)
    change[:, 0] = problem.velocity
    if len(joints):
        effective = joints @ np.linalg.solve(mass, joints.T)
        error = joints @ change
        error[:, 0] += problem.joint_rate
        change -= np.linalg.solve(mass, joints.T) @ np.linalg.lstsq(effective, error, rcond=1e-12)[0]
    u_free = (rows @ change[:, 0]).reshape(n, 3)
    u_free[:, 0] += problem.gap_rate
    u = u_free + (rows @ change[:, 1]).reshape(n, 3)
    return u, u_free, (rows @ change[:, 2:]).diagonal().reshape(n, 3).mean(axis=1)


def onto_polygon(point, corners):
    """The nearest point of a convex polygon, corners counterclockwise; it may be a single point, zero."""
    if not corners.any():
        return np.zeros(2)
    ends = np.roll(corners, -1, axis=0)
    sides, away = ends - corners, point - corners
    if (sides[:, 0] * away[:, 1] - sides[:, 1] * away[:, 0] >= 0.0).all():
        return point
    squares = np.maximum((sides**2).sum(axis=1), 1e-300)
    along = np.clip((sides * away).sum(axis=1) / squares, 0.0, 1.0)
    nearest = corners + along[:, None] * sides
    return nearest[np.argmin(((nearest - point) ** 2).sum(axis=1))]


def residual(problem, impulse):
    """The natural map of the pyramid law, in units of the largest free contact velocity."""
    u, u_free, W = contact_velocities(problem, impulse)
    angle = problem.law.rotation + 2.0 * np.pi * np.arange(problem.law.facets) / problem.law.facets
    corners = np.column_stack([np.cos(angle), np.sin(angle)])
    worst = 0.0
    for i, p in enumerate(impulse):
        worst = max(worst, -u[i, 0], -W[i] * p[0], abs(min(u[i, 0], W[i] * p[0])))
        target = onto_polygon(p[1:] - u[i, 1:] / W[i], problem.friction[i] * max(p[0], 0.0) * corners)
        worst = max(worst, W[i] * np.linalg.norm(p[1:] - target))
    return worst / (np.abs(u_free).max(initial=0.0) or 1.0)


@pytest.mark.parametrize("facets", [3, 4, 8, 16])
@pytest.mark.parametrize("family", FAMILIES)
def test_solves_every_family(family, facets):
    for seed in range(2):
        law = Coulomb(facets=facets, rotation=0.0 if facets == 8 else 0.3 * seed)
        problem = CONTACT_FAMILIES[family](seed).with_law(law)
        found = CellLemke().propose(problem, None)
        assert found.status == Status.SOLVED
        assert residual(problem, found.impulse) <= 1e-9


def test_judges_a_wrong_answer_as_wrong():
    problem = stack(2, 1).with_law(Coulomb(facets=8))
    impulse = CellLemke().propose(problem, None).impulse
    assert residual(problem, 1.001 * impulse) > 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_solves_many_seeds(family):
    for seed in range(100):
        problem = CONTACT_FAMILIES[family](seed).with_law(Coulomb(facets=8))
        assert residual(problem, CellLemke().propose(problem, None).impulse) <= 2e-9


def sliding_block(push, friction, law):
    """A point mass of 2 kg on the ground: 3 velocities, one contact, falling at 1 m/s and pushed sideways."""
    return ContactProblem(2.0 * np.eye(3), [*push, -1.0], [[0, 0, 1]], [[[1, 0, 0], [0, 1, 0]]], [friction], law=law)


def test_sliding_point_by_hand():
    problem = sliding_block((3.0, 0.0), 0.5, Coulomb(facets=8))
    found = CellLemke().propose(problem, None)
    np.testing.assert_allclose(found.impulse, [[2.0, -1.0, 0.0]], atol=1e-14)


def test_sticking_point_by_hand():
    problem = sliding_block((0.3, 0.2), 0.5, Coulomb(facets=8))
    found = CellLemke().propose(problem, None)
    np.testing.assert_allclose(found.impulse, [[2.0, -0.6, -0.4]], atol=1e-14)


def test_square_pyramid_slides_at_its_corner():
    """Between two directions the pyramid's answer is the nearer corner, not the opposite of the sliding."""
    problem = sliding_block((3.0, 2.0), 0.5, Coulomb(facets=4))
    found = CellLemke().propose(problem, None)
    np.testing.assert_allclose(found.impulse, [[2.0, -1.0, 0.0]], atol=1e-14)
    turned = sliding_block((3.0, 2.0), 0.5, Coulomb(facets=4, rotation=np.arctan2(2.0, 3.0)))
    found = CellLemke().propose(turned, None)
    np.testing.assert_allclose(found.impulse[0, 1:], -np.array([3.0, 2.0]) / np.sqrt(13.0), atol=1e-14)


def test_separating_and_empty_problems_need_no_pivot():
    apart = ContactProblem(
        np.eye(3), [1.0, 0, 1.0], [[0, 0, 1]], [[[1, 0, 0], [0, 1, 0]]], [0.5], law=Coulomb(facets=8)
    )
    found = CellLemke().propose(apart, None)
    assert (found.status, found.iterations) == (Status.SOLVED, 0)
    assert not found.impulse.any()
    none = ContactProblem(np.eye(3), np.ones(3), np.zeros((0, 3)), np.zeros((0, 2, 3)), [], law=Coulomb(facets=8))
    found = CellLemke().propose(none, None)
    assert found.status == Status.SOLVED
    assert found.impulse.shape == (0, 3)


def test_contacts_that_contradict_each_other_end_in_a_ray():
    """Two walls closing on a body from both sides."""
    normal, tangent = [[1.0, 0, 0], [-1.0, 0, 0]], np.tile([[0.0, 1, 0], [0, 0, 1]], (2, 1, 1))
    problem = ContactProblem(
        np.eye(3), np.zeros(3), normal, tangent, [0.5, 0.5], gap_rate=[-1.0, -1.0], law=Coulomb(facets=8)
    )
    found = CellLemke().propose(problem, None)
    assert found.status == Status.RAY
    np.testing.assert_allclose(found.ray / found.ray[0, 0], [[1, 0, 0], [1, 0, 0]], atol=1e-9)  # squeezed ever more


def test_pivot_limit_is_a_status():
    problem = stack(3, 0).with_law(Coulomb(facets=8))
    found = CellLemke(tries=2, max_pivots=3).propose(problem, None)
    assert found.status == Status.MAX_ITERATIONS
    assert found.iterations == 6


def test_same_seed_same_bits():
    problem = stack(5, 3).with_law(Coulomb(facets=8))
    first, second, other = (CellLemke(seed=s).propose(problem, None).impulse for s in (1, 1, 2))
    assert first.tobytes() == second.tobytes()
    assert first.tobytes() != other.tobytes()
    assert residual(problem, other) <= 1e-9


def test_inputs_are_untouched_and_nothing_is_allocated():
    problem = peg(16, 0).with_law(Coulomb(facets=8))
    white = problem.whitened
    before = [np.array(a) for a in white[:-1]]
    CellLemke().propose(problem, None)
    _nrt_python.memsys_enable_stats()
    allocated = rtsys.get_allocation_stats().alloc
    CellLemke().propose(problem, None)
    assert rtsys.get_allocation_stats().alloc == allocated
    assert all(np.array_equal(a, b) for a, b in zip(before, white[:-1], strict=True))


def test_plane_keeps_the_two_furthest_directions():
    np.testing.assert_array_equal(pyramid_directions(8, 0.0, 2), [[1.0, 0.0], [-1.0, 0.0]])
    np.testing.assert_allclose(pyramid_directions(3, 0.0, 2)[:, 0], [1.0, -0.5])
    assert pyramid_directions(5, 0.1, 3).shape == (5, 2)


def path_of(problem, pivots):
    """The cells and the basis after some pivots."""
    white, directions = problem.whitened, directions_of(problem)
    n, _, width = white.rows.shape
    lengths = n, white.free.size, width, len(directions)
    inputs = white.rows, fixed(white.segments), white.free, white.bias, fixed(white.friction)
    contacts, cells, basis, watch, candidate = views(*lengths, *inputs, directions, CELLS, *workspace(*sizes(*lengths)))
    prepare(contacts, watch, white.scale, candidate)
    draw_cover(contacts, np.uint64(start_random(1)))
    follow(contacts, cells, basis, watch, False, pivots, 0)
    return contacts, cells, basis


def test_updated_inverse_is_the_inverse_in_every_state():
    """After each pivot of some paths the updated inverse agrees with a fresh one; all states of the table are met."""
    met = set()
    for problem in (stack(2, 0), with_friction(stack(2, 1), [0.0, 0.3] * 4), mass_ratio(2, 0, 3.0), peg(8, 2)):
        for pivots in range(1, 30):
            contacts, cells, basis = path_of(problem.with_law(Coulomb(facets=8)), pivots)
            size = basis.now[SIZE]
            updated, driven = basis.inverse[:size, :size].copy(), basis.now[ROW]
            met.update(cells.state.tolist())
            assert 0 <= driven < size <= len(basis.y)
            assert rebuild(contacts, cells, basis)
            fresh = basis.inverse[:size, :size]
            np.testing.assert_allclose(updated, fresh, atol=1e-9 * np.abs(fresh).max())
    assert met >= {SEPARATED, SMOOTH, FREE, LINE, VERTEX, EDGE, CORNER}


@pytest.mark.parametrize("facets", [3, 4, 8])
@pytest.mark.parametrize("name", ["peg-16", "stack-5", "grasp", "chain", "plane-stack", "heap-6", "stack-mixed"])
def test_a_start_in_the_right_cells_needs_no_path(name, facets):
    problem = CONTACT_FAMILIES[name](1).with_law(
        Coulomb(facets=facets, rotation=0.1 if problem_is_solid(name) else 0.0)
    )
    cold = st.solve(problem, CellLemke())
    warm = st.solve(problem, CellLemke(), start=cold)
    assert warm.ok
    assert warm.iterations == 0
    np.testing.assert_allclose(warm.contact_velocity, cold.contact_velocity, atol=1e-7 * cold.certificate.scale)


def problem_is_solid(name):
    return not name.startswith("plane")


@pytest.mark.parametrize("name", ["peg-16", "stack-5", "grasp", "heap-6"])
def test_a_start_in_the_wrong_cells_does_no_harm(name):
    problem = CONTACT_FAMILIES[name](2).with_law(Coulomb(facets=8))
    cold = st.solve(problem, CellLemke())
    random = np.random.default_rng(0)
    wrong = [random.normal(size=(problem.n, 3)), np.full((problem.n, 3), 1e6), np.zeros((problem.n, 3)), -cold.impulse]
    for start in wrong:
        warm = st.solve(problem, CellLemke(), start=start)
        assert warm.ok
        np.testing.assert_array_equal(warm.impulse, cold.impulse)
