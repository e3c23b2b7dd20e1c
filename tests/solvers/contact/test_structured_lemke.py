"""Lloyd's methods, judged by the certificate, and held against Lemke's tableau on the assembled LCP."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

from stiction.arrays.compiled import workspace
from stiction.problems.contact import ContactProblem
from stiction.problems.laws import Coulomb
from stiction.problems.pyramid import directions_of, pyramid_impulse, pyramid_lcp
from stiction.problems.zoo.contact_families import CONTACT_FAMILIES, mass_ratio, peg, single_body, stack, with_friction
from stiction.solutions.contact import judge_contact
from stiction.solutions.status import Status
from stiction.solvers.contact.cell_lemke.answer import impulses
from stiction.solvers.contact.cell_lemke.basis import rebuild
from stiction.solvers.contact.cell_lemke.cell_lemke import fixed
from stiction.solvers.contact.cell_lemke.cells import (
    CORNER,
    EDGE,
    FREE,
    INACTIVE,
    LINE,
    NORMAL,
    REDUCED,
    ROW,
    SIZE,
    SMOOTH,
    STRUCTURAL,
    VERTEX,
)
from stiction.solvers.contact.cell_lemke.cover import draw_cover, start_random
from stiction.solvers.contact.cell_lemke.path import follow, prepare, sizes, views
from stiction.solvers.contact.structured_lemke.structured_lemke import StructuredLemke

# Sizes from 1e-1.5 to 1e1.5 m, masses as their cubes: doubles end here, so not every seed is solved.
BEYOND_DOUBLES = {"stack-lengths"}
FAMILIES = sorted(set(CONTACT_FAMILIES) - BEYOND_DOUBLES)
BOTH = pytest.mark.parametrize("reduced", [True, False])


def residual(problem, impulse):
    velocity, joint_impulse = problem.respond(impulse)
    return judge_contact(problem, velocity, impulse, joint_impulse)[0].residual


@BOTH
@pytest.mark.parametrize("family", FAMILIES)
def test_solves_every_family(family, reduced):
    for seed, facets in enumerate((8, 3, 4)):
        problem = CONTACT_FAMILIES[family](seed).with_law(Coulomb(facets=facets, rotation=0.2 * seed))
        found = StructuredLemke(reduced).propose(problem, None)
        assert found.status == Status.SOLVED
        assert residual(problem, found.impulse) <= 1e-8


@pytest.mark.slow
@BOTH
@pytest.mark.parametrize("family", FAMILIES)
def test_solves_many_seeds(family, reduced):
    for seed in range(100):
        problem = CONTACT_FAMILIES[family](seed).with_law(Coulomb(facets=8))
        assert residual(problem, StructuredLemke(reduced).propose(problem, None).impulse) <= 1e-8


def draw(path):
    """The cover of the first try."""
    draw_cover(path.contacts, np.uint64(start_random(1)))


def path_of(problem, reduced, pivots):
    """The path after some pivots, and how it ended."""
    white, directions = problem.whitened, directions_of(problem)
    n, _, width = white.rows.shape
    lengths = n, white.free.size, width, len(directions)
    inputs = white.rows, fixed(white.segments), white.free, white.bias, fixed(white.friction)
    path = views(*lengths, *inputs, directions, REDUCED if reduced else STRUCTURAL, *workspace(*sizes(*lengths)))
    prepare(path.contacts, path.watch, white.scale, path.candidate)
    draw(path)
    status, count = follow(*path[:4], False, pivots, 0)
    return path, status, count


def lemke_tableau(M, q, cover):
    """Lemke's method as in textbooks, on the whole tableau w = M z + c z0 + q. Returns z and the number of pivots."""
    n = len(q)
    table = np.column_stack([np.eye(n), -M, -cover, q])  # of w, z, z0, constant
    basis = np.arange(n)
    row, entering, pivots = int(np.argmax(-q / cover)), 2 * n, 0
    while True:
        table[row] /= table[row, entering]
        others = np.arange(n) != row
        table[others] -= np.outer(table[others, entering], table[row])
        leaving, basis[row] = basis[row], entering
        if leaving == 2 * n:
            z = np.zeros(2 * n + 1)
            z[basis] = table[:, -1]
            return z[n : 2 * n], pivots
        entering = leaving + n if leaving < n else leaving - n
        column = table[:, entering]
        falling = column > 1e-9 * np.abs(column).max()
        assert falling.any()
        ratios = np.where(falling, table[:, -1] / np.where(falling, column, 1.0), np.inf)
        z0 = np.flatnonzero(basis == 2 * n)[0]
        row = int(z0 if ratios[z0] <= ratios.min() * (1.0 + 1e-9) else np.argmin(ratios))
        pivots += 1


@pytest.mark.parametrize("facets", [3, 4, 8])
@pytest.mark.parametrize("problem", [peg(8, 0), peg(8, 1), stack(1, 2), stack(2, 0), single_body("corner", 1)])
def test_structural_path_is_lemkes_own(problem, facets):
    """With the same cover, the assembled LCP takes as many pivots to the same impulses."""
    problem = problem.with_law(Coulomb(facets=facets, rotation=0.1))
    path, status, pivots = path_of(problem, False, 1000)
    assert status == Status.SOLVED
    cover, directions, lcp = path.contacts.cover, directions_of(problem), pyramid_lcp(problem)
    along = cover[:, 3:4] + cover[:, 1:3] @ directions.T
    z, count = lemke_tableau(lcp.M, lcp.q, np.concatenate([cover[:, 0], along.ravel(), cover[:, 4]]))
    impulses(path.contacts, path.cells, path.basis.y, path.candidate)
    impulse = problem.whitened.impulse(path.candidate)
    assert pivots == count
    np.testing.assert_allclose(impulse, pyramid_impulse(problem, z), atol=1e-9 * np.abs(impulse).max())


@BOTH
def test_updated_inverse_is_the_inverse_in_every_form(reduced):
    """After each pivot of some paths the updated inverse agrees with a fresh one; all forms are met."""
    met, idle = set(), set()
    for problem in (stack(2, 0), with_friction(stack(2, 1), [0.0, 0.3] * 4), mass_ratio(2, 0, 3.0), peg(8, 2)):
        for pivots in range(1, 30):
            path, _, _ = path_of(problem.with_law(Coulomb(facets=8)), reduced, pivots)
            basis, cells = path.basis, path.cells
            size = basis.now[SIZE]
            updated, lift = basis.inverse[:size, :size].copy(), basis.lift.copy()
            met.update(cells.state.tolist())
            idle.update(cells.state[cells.column[:, NORMAL] == INACTIVE].tolist())
            assert 0 <= basis.now[ROW] < size <= len(basis.y)
            assert rebuild(path.contacts, cells, basis)
            fresh = basis.inverse[:size, :size]
            np.testing.assert_allclose(updated, fresh, atol=1e-9 * np.abs(fresh).max())
            np.testing.assert_allclose(lift, basis.lift, atol=1e-12)
    assert met >= {SMOOTH, FREE, LINE, VERTEX, EDGE, CORNER}
    assert reduced or idle >= {FREE, LINE, VERTEX}


@pytest.mark.parametrize("facets", [3, 4, 8])
@pytest.mark.parametrize("name", ["plane-stack", "stack-1"])
def test_every_contact_has_places_for_what_it_may_watch(name, facets):
    """A line watches θ, its force, the room and two σ; in the plane, too, where there are only two directions."""
    problem = CONTACT_FAMILIES[name](0).with_law(Coulomb(facets=facets))
    path, _, _ = path_of(problem, False, 1)
    most = max(5, 1 + len(directions_of(problem)))
    assert all(len(entries) >= most * problem.n for entries in path.watch[:5])


def test_basis_is_no_larger_than_the_velocities():
    path, status, _ = path_of(peg(128, 0).with_law(Coulomb(facets=16)), True, 1000)
    assert status == Status.SOLVED
    assert path.basis.now[SIZE] <= 6 + 2


def test_reduced_takes_fewer_pivots_and_they_do_not_grow():
    law = Coulomb(facets=8)
    few, many = (
        np.mean([StructuredLemke().propose(peg(n, seed).with_law(law), None).iterations for seed in range(10)])
        for n in (16, 128)
    )
    structural = StructuredLemke(reduced=False).propose(peg(128, 0).with_law(law), None).iterations
    assert many <= 2.0 * few
    assert structural > 5.0 * many


def sliding_block(push, friction, law):
    """A point mass of 2 kg on the ground: 3 velocities, one contact, falling at 1 m/s and pushed sideways."""
    return ContactProblem(2.0 * np.eye(3), [*push, -1.0], [[0, 0, 1]], [[[1, 0, 0], [0, 1, 0]]], [friction], law=law)


def test_covers_grow_where_a_sliding_contact_becomes_active():
    """What slides a hundred times faster than it falls is not covered when it closes [Lloyd2004, appendix D]."""
    problem = sliding_block((100.0, 0.0), 0.5, Coulomb(facets=8))
    path, status, _ = path_of(problem, True, 1000)
    assert status == Status.SOLVED
    grown = path.contacts.cover[0].copy()
    draw(path)
    drawn = path.contacts.cover[0]
    assert grown[3] * 0.01 / grown[0] > 1.0 > drawn[3] * 0.01 / grown[0]  # c_σ z0 against the speed, z0 = 0.01 / c_n
    np.testing.assert_array_equal(np.delete(grown, 3), np.delete(drawn, 3))
    np.testing.assert_allclose(StructuredLemke().propose(problem, None).impulse, [[2.0, -1.0, 0.0]], atol=1e-14)


@BOTH
@pytest.mark.parametrize(
    ("push", "facets", "rotation", "expected"),
    [
        ((3.0, 0.0), 8, 0.0, (2.0, -1.0, 0.0)),  # slides
        ((0.3, 0.2), 8, 0.0, (2.0, -0.6, -0.4)),  # sticks
        ((3.0, 2.0), 4, 0.0, (2.0, -1.0, 0.0)),  # at the nearer corner of a square
        ((3.0, 2.0), 4, np.arctan2(2.0, 3.0), (2.0, -3.0 / 13.0**0.5, -2.0 / 13.0**0.5)),
    ],
)
def test_a_point_by_hand(reduced, push, facets, rotation, expected):
    problem = sliding_block(push, 0.5, Coulomb(facets=facets, rotation=rotation))
    found = StructuredLemke(reduced).propose(problem, None)
    np.testing.assert_allclose(found.impulse, [expected], atol=1e-14)


@BOTH
def test_without_friction_nothing_is_expanded(reduced):
    problem = with_friction(stack(3, 0), 0.0).with_law(Coulomb(facets=8))
    path, status, _ = path_of(problem, reduced, 1000)
    assert status == Status.SOLVED
    assert (path.cells.state == SMOOTH).all()


@BOTH
def test_separating_and_empty_problems(reduced):
    at_rest = ContactProblem(
        np.eye(3), [0, 0, 1.0], [[0, 0, 1]], [[[1, 0, 0], [0, 1, 0]]], [0.5], law=Coulomb(facets=8)
    )
    found = StructuredLemke(reduced).propose(at_rest, None)
    assert (found.status, found.iterations) == (Status.SOLVED, 0)
    sliding = ContactProblem(
        np.eye(3), [1.0, 0, 1.0], [[0, 0, 1]], [[[1, 0, 0], [0, 1, 0]]], [0.5], law=Coulomb(facets=8)
    )
    found = StructuredLemke(reduced).propose(sliding, None)
    assert found.status == Status.SOLVED
    assert (found.iterations == 0) == reduced  # the structural method finds the sliding speed of an open contact too
    assert not found.impulse.any()
    none = ContactProblem(np.eye(3), np.ones(3), np.zeros((0, 3)), np.zeros((0, 2, 3)), [], law=Coulomb(facets=8))
    found = StructuredLemke(reduced).propose(none, None)
    assert found.status == Status.SOLVED
    assert found.impulse.shape == (0, 3)


@BOTH
def test_contacts_that_contradict_each_other_end_in_a_ray(reduced):
    """Two walls closing on a body from both sides."""
    normal, tangent = [[1.0, 0, 0], [-1.0, 0, 0]], np.tile([[0.0, 1, 0], [0, 0, 1]], (2, 1, 1))
    problem = ContactProblem(
        np.eye(3), np.zeros(3), normal, tangent, [0.5, 0.5], gap_rate=[-1.0, -1.0], law=Coulomb(facets=8)
    )
    found = StructuredLemke(reduced).propose(problem, None)
    assert found.status == Status.RAY
    np.testing.assert_allclose(found.ray[:, 0] / found.ray[0, 0], [1, 1], atol=1e-9)  # squeezed ever more


def test_pivot_limit_is_a_status():
    problem = stack(3, 0).with_law(Coulomb(facets=8))
    found = StructuredLemke(tries=2, max_pivots=3).propose(problem, None)
    assert found.status == Status.MAX_ITERATIONS
    assert found.iterations == 6


def test_same_seed_same_bits():
    problem = stack(5, 3).with_law(Coulomb(facets=8))
    first, second, other = (StructuredLemke(seed=s).propose(problem, None).impulse for s in (1, 1, 2))
    assert first.tobytes() == second.tobytes()
    assert first.tobytes() != other.tobytes()
    assert residual(problem, other) <= 1e-9


def test_inverses_afresh_follow_the_same_path():
    for problem in (peg(16, 0), stack(3, 0), CONTACT_FAMILIES["grasp"](0)):
        law = Coulomb(facets=8)
        updated, afresh = (StructuredLemke(afresh=k).propose(problem.with_law(law), None) for k in (0, 1000))
        assert updated.iterations == afresh.iterations
        np.testing.assert_allclose(updated.impulse, afresh.impulse, atol=1e-9 * np.abs(afresh.impulse).max())


@BOTH
def test_inputs_are_untouched_and_nothing_is_allocated(reduced):
    problem = peg(16, 0).with_law(Coulomb(facets=8))
    white = problem.whitened
    before = [np.array(a) for a in white[:-1]]
    StructuredLemke(reduced).propose(problem, None)
    _nrt_python.memsys_enable_stats()
    allocated = rtsys.get_allocation_stats().alloc
    StructuredLemke(reduced).propose(problem, None)
    assert rtsys.get_allocation_stats().alloc == allocated
    assert all(np.array_equal(a, b) for a, b in zip(before, white[:-1], strict=True))
