"""Factors by fronts of blocks, of free bodies and of trees, against plain linear algebra."""

from __future__ import annotations

import numpy as np
import pytest

from stiction.arrays.compiled import workspace
from stiction.arrays.layout import layout
from stiction.arrays.vectors import THREE
from stiction.solvers.contact.cone_newton.elimination import FRONTS, PANEL, PLACE, forget_order
from stiction.solvers.contact.cone_newton.one_contact import Contacts
from stiction.solvers.contact.cone_newton.system import OPEN, SLIP, STICK, System, keep_order, solve_again, solve_system

sizes, views = layout(System, "n", "d", "m", "width")


def segments_of(pairs):
    """As the normal form has them; -1 is the world."""
    segments = [
        [6 * second, 6, 0, 0] if first < 0 else [6 * first, 6, 6 * second, 6 if second >= 0 else 0]
        for first, second in pairs
    ]
    return np.array(segments, np.int64).reshape(-1, 4)


def contacts_of(segments, rng):
    """Random rows at these runs."""
    n = len(segments)
    rows = rng.normal(size=(n, 3, int((segments[:, 1] + segments[:, 3]).max(initial=0))))
    for i in range(n):
        rows[i, :, segments[i, 1] + segments[i, 3] :] = 0.0
    return Contacts(
        THREE, False, rows, segments, np.zeros((n, 3)), np.zeros(n), np.zeros((n, 3, 3)), np.ones(n),
        np.ones(n), np.zeros(n, np.int64), np.zeros((0, 3, 3)),
    )  # fmt: skip


def system_of(contacts, m, rng, stiffness=10.0):
    """Unsymmetric slopes as of sliding contacts, positive definite ones as of sticking; some contacts open."""
    n, _, width = contacts.rows.shape
    system = views(n, 3, m, width, *workspace(*sizes(n, 3, m, width)))
    system.slope[:] = stiffness * np.abs(rng.normal(size=(n, 8)))
    system.slope[:, 4] = 0.0
    system.slope[:, 6:] = 0.0
    system.slope[:, 1:3] *= rng.choice([-0.3, 0.0, 0.3], (n, 2))
    system.mode[:] = rng.integers(0, 3, n)
    system.right[:] = rng.normal(size=m)
    forget_order(system.blocks)
    return system


def dense(contacts, system, m):
    A = np.eye(m)
    for i in range(len(contacts.friction)):
        if system.mode[i] == OPEN:
            continue
        L = np.zeros((3, m))
        start, length, other, more = contacts.segments[i]
        L[:, start : start + length] += contacts.rows[i, :, :length]
        L[:, other : other + more] += contacts.rows[i, :, length : length + more]
        nn, t1, t2, s11, s12, s22, n1, n2 = system.slope[i]
        A += L.T @ np.array([[nn, n1, n2], [t1, s11, s12], [t2, s12, s22]]) @ L
    return A


def check(contacts, system, m):
    """The system is solved, and once more from the same factors."""
    A, right = dense(contacts, system, m), system.right.copy()
    assert solve_system(contacts, system)
    np.testing.assert_allclose(A @ system.right, right, atol=1e-9)
    again = np.cos(np.arange(m))
    other = again.copy()
    solve_again(contacts, system, again)
    np.testing.assert_allclose(A @ again, other, atol=1e-9)


def dry_friction(m, joints, first, seed):
    """Contacts whose normal is a velocity of their own, and whose tangent is over some of the m others; limits, too."""
    rng = np.random.default_rng(seed)
    segments = np.array(
        [(m + k, 1, 0, m) if k % 2 == first else (0, m, m + k, 1) for k in range(joints)] + [(0, m, 0, 0)]
    )
    rows = np.zeros((joints + 1, 3, m + 1))
    for k in range(joints):
        own, others = (0, 1) if k % 2 == first else (m, 0)
        rows[k, 0, own] = 1.0 + rng.random()
        rows[k, 1, others : others + m] = rng.normal(size=m) * (rng.random(m) < 0.4)
    rows[joints, 0, :m] = rng.normal(size=m) * (rng.random(m) < 0.3)
    n = joints + 1
    return Contacts(
        THREE, False, rows, segments, np.zeros((n, 3)), np.zeros(n), np.zeros((n, 3, 3)), np.ones(n), np.ones(n),
        np.zeros(n, np.int64), np.zeros((0, 3, 3)),
    )  # fmt: skip


@pytest.mark.parametrize(("m", "joints"), [(1, 1), (7, 3), (20, 20), (60, 50)])
@pytest.mark.parametrize("seed", range(4))
def test_dry_friction_is_known_before_the_others(m, joints, seed):
    """Would catch a tangent that does not follow its normal, or a velocity of its own that is left in a front."""
    contacts, rng = dry_friction(m, joints, seed % 2, seed), np.random.default_rng(seed)
    system = system_of(contacts, m + joints, rng)
    system.slope[system.mode == SLIP, 3] = 0.0
    check(contacts, system, m + joints)
    assert (system.blocks.block[m:] == -1).all()


def graph(b, seed):
    rng = np.random.default_rng(seed)
    return [(int(rng.integers(-1, second)), second) for second in range(b) for _ in range(3)]


@pytest.mark.parametrize("bodies", [1, 2, 5, 12, 40])
def test_free_bodies_are_solved(bodies):
    for seed in range(5):
        rng = np.random.default_rng(seed)
        contacts = contacts_of(segments_of(graph(bodies, seed)), rng)
        check(contacts, system_of(contacts, 6 * bodies, rng), 6 * bodies)


@pytest.mark.parametrize("trees", [1, 3, 8])
def test_trees_beside_free_bodies_are_solved(trees):
    """Trees of 17 velocities: a root of five, and four limbs of three each, of which contacts touch part of one."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        bodies, starts, lengths = 3, [], []
        for _ in range(trees):
            starts.append(sum(lengths))
            lengths.append(17)
        for _ in range(bodies):
            starts.append(sum(lengths))
            lengths.append(6)
        m = sum(lengths)
        pairs = [rng.choice(trees + bodies, 2, replace=False) for _ in range(6 * trees)]
        segments = np.array([[starts[a], lengths[a], starts[b], lengths[b]] for a, b in pairs], np.int64)
        segments[::4, 2:] = 0
        contacts = contacts_of(segments, rng)
        for i in range(len(segments)):
            at = 0
            for length in segments[i, 1::2]:
                if length == 17:
                    limb, reach = rng.integers(4), rng.integers(4)
                    for k in range(4):
                        begin = at + 5 + 3 * k + (reach if k == limb else 0)
                        contacts.rows[i, :, begin : at + 5 + 3 * k + 3] = 0.0
                at += length
        check(contacts, system_of(contacts, m, rng), m)


@pytest.mark.parametrize("dry", [1, 3])
def test_velocities_of_dry_friction_fill_nothing(dry):
    """Each is the normal of one contact alone, which pushes one of seven bodies along one tangent."""
    core = 42
    m = core + dry
    for seed in range(8):
        rng = np.random.default_rng(seed)
        own = np.array([[6 * (k % 2), 6, core + k, 1] for k in range(dry)])
        contacts = contacts_of(np.concatenate([segments_of(graph(7, seed)), own]), rng)
        contacts.rows[-dry:] = 0.0
        contacts.rows[-dry:, 1, :6] = rng.normal(size=(dry, 6))
        contacts.rows[-dry:, 0, 6] = 1.0 + np.arange(dry)
        system = all_closed(contacts, system_of(contacts, m, rng))
        without = contacts_of(contacts.segments[:-dry], rng)
        less = all_closed(without, system_of(without, core, rng))
        assert entries(system) == entries(less)
        check(contacts, system, m)


def test_velocities_that_no_contact_touches_are_left_alone():
    rng = np.random.default_rng(0)
    contacts = contacts_of(np.array([[4, 3, 9, 3]]), rng)
    system = all_closed(contacts, system_of(contacts, 14, rng))
    assert entries(system) == 36
    check(contacts, system, 14)


def test_the_order_follows_what_is_closed():
    """A new order is made when a contact closes between bodies that were not coupled, or when many have opened."""
    rng = np.random.default_rng(0)
    pairs = [(b, (b + 1) % 20) for b in range(20) for _ in range(2)]
    contacts = contacts_of(segments_of(pairs), rng)
    system = system_of(contacts, 120, rng)
    assert entries(all_closed(contacts, system)) == 36 * (20 + 2 * (20 + 17))
    system.mode[:2] = OPEN  # one couple of forty: the order is kept
    check(contacts, system, 120)
    assert entries(system) == 36 * (20 + 2 * (20 + 17))
    system.mode[20:] = OPEN
    check(contacts, system, 120)
    assert entries(system) == 36 * (10 + 2 * 9)
    system.mode[30] = SLIP
    check(contacts, system, 120)
    assert entries(system) == 36 * (12 + 2 * 10)
    system.mode[31] = STICK  # of the same bodies
    known = system.blocks.covered.copy()
    check(contacts, system, 120)
    assert (system.blocks.covered == known).all()


def test_a_front_that_is_singular_is_refused():
    contacts = contacts_of(np.array([[0, 3, 0, 0]]), np.random.default_rng(0))
    system = system_of(contacts, 3, np.random.default_rng(0))
    contacts.rows[0] = np.eye(3)
    system.mode[0], system.slope[0] = 1, [-1.0, 0.0, 0.0, -1.0, 0.0, -1.0, 0.0, 0.0]
    assert not solve_system(contacts, system)


def ordered(pairs, bodies):
    rng = np.random.default_rng(0)
    contacts = contacts_of(segments_of(pairs), rng)
    return all_closed(contacts, system_of(contacts, 6 * bodies, rng))


def all_closed(contacts, system):
    """With the order for that."""
    system.mode[:] = STICK
    keep_order(contacts, system)
    return system


def entries(system):
    """Of the factors."""
    return system.blocks.fronts[system.blocks.total[FRONTS], PANEL]


def test_a_stack_is_not_filled():
    system = ordered([(b - 1, b) for b in range(20)], 20)
    assert entries(system) == 36 * (20 + 2 * 19)
    order = sorted(system.blocks.table[:20, PLACE])
    assert order == list(range(0, 120, 6))


def test_the_centre_of_a_star_is_eliminated_last_or_next_to_last():
    system = ordered([(0, b) for b in range(1, 9)], 9)
    assert system.blocks.table[0, PLACE] >= 6 * 7
    assert entries(system) == 36 * (9 + 2 * 8)


def test_a_ring_is_filled_by_as_little_as_can_be():
    system = ordered([(b, (b + 1) % 10) for b in range(10)], 10)
    assert entries(system) == 36 * (10 + 2 * (10 + 7))  # a triangulated ring has 7 chords


@pytest.mark.parametrize(("side", "most"), [(10, 13), (30, 24)])
def test_a_wall_is_filled_like_n_log_n(side, most):
    """A grid of side², in blocks for each body; an order by rows would take twice the side."""
    at = np.arange(side * side).reshape(side, side)
    pairs = [(k, k + 1) for k in at[:, :-1].ravel()] + [(k, k + side) for k in at[:-1].ravel()]
    assert entries(ordered(pairs, side * side)) <= 36 * most * side * side
