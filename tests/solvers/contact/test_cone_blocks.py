"""Factors by blocks of bodies, and of the whole matrix, against plain linear algebra."""

from __future__ import annotations

import numpy as np
import pytest

from stiction.arrays.vectors import THREE
from stiction.solvers.contact.cone_newton.blocks import SIZE, Blocks, of_free_bodies, order_bodies
from stiction.solvers.contact.cone_newton.one_contact import Contacts
from stiction.solvers.contact.cone_newton.system import OPEN, System, core_of, solve_again, solve_system


def room(b):
    return Blocks(
        np.empty(b, np.int64), np.empty(b + 1, np.int64), np.empty(b * b, np.int64), np.empty((b, b), np.int64),
        np.empty((b * b, SIZE, SIZE)), np.empty(1, np.int64),
    )  # fmt: skip


def segments_of(pairs):
    """As the normal form has them; -1 is the world."""
    segments = [
        [6 * second, 6, 0, 0] if first < 0 else [6 * first, 6, 6 * second, 6 if second >= 0 else 0]
        for first, second in pairs
    ]
    return np.array(segments, np.int64).reshape(-1, 4)


def contacts_of(pairs, seed):
    n, rng = len(pairs), np.random.default_rng(seed)
    segments = segments_of(pairs)
    rows = rng.normal(size=(n, 3, 12))
    for i in range(n):
        rows[i, :, segments[i, 1] + segments[i, 3] :] = 0.0
    return Contacts(
        THREE, False, rows, segments, np.zeros((n, 3)), np.zeros(n), np.zeros((n, 3, 3)), np.ones(n),
        np.ones(n), np.zeros((0, 3, 3)),
    )  # fmt: skip


def laws(contacts, m, blocks, seed, stiffness=1.0):
    """Unsymmetric slopes as of sliding contacts, positive definite ones as of sticking; some contacts open."""
    n, rng = len(contacts.friction), np.random.default_rng(seed)
    slope = stiffness * np.abs(rng.normal(size=(n, 6)))
    slope[:, 4] = 0.0
    slope[:, 1:3] *= rng.choice([-0.3, 0.0, 0.3], (n, 2))
    mode = rng.integers(0, 3, n)
    return System(
        np.zeros((n, 3)), slope, mode, np.empty((m, m)), rng.normal(size=m), np.empty(m, np.int64),
        np.empty(m, np.int64), np.array([m]), blocks,
    )  # fmt: skip


def dense(contacts, system, m):
    A = np.eye(m)
    for i in range(len(contacts.friction)):
        if system.mode[i] == OPEN:
            continue
        L = np.zeros((3, m))
        start, length, other, more = contacts.segments[i]
        L[:, start : start + length] += contacts.rows[i, :, :length]
        L[:, other : other + more] += contacts.rows[i, :, length : length + more]
        nn, n1, n2, s11, s12, s22 = system.slope[i]
        A += L.T @ np.array([[nn, 0.0, 0.0], [n1, s11, s12], [n2, s12, s22]]) @ L
    return A


def graph(b, seed):
    rng = np.random.default_rng(seed)
    return [(int(rng.integers(-1, second)), second) for second in range(b) for _ in range(3)]


@pytest.mark.parametrize("bodies", [2, 5, 12])
@pytest.mark.parametrize("by_blocks", [True, False])
def test_the_system_is_solved(bodies, by_blocks):
    m = SIZE * bodies
    for seed in range(5):
        contacts = contacts_of(graph(bodies, seed), seed)
        blocks = room(bodies if by_blocks else 0)
        if by_blocks:
            order_bodies(contacts.segments, blocks)
        system = laws(contacts, m, blocks, seed, stiffness=10.0)
        A, right = dense(contacts, system, m), system.right.copy()
        assert solve_system(contacts, system)
        np.testing.assert_allclose(A @ system.right, right, atol=1e-9)
        again = np.cos(np.arange(m))
        other = again.copy()
        solve_again(system, again)
        np.testing.assert_allclose(A @ again, other, atol=1e-9)


@pytest.mark.parametrize("dry", [1, 3])
def test_velocities_of_dry_friction_are_eliminated(dry):
    """Each is the normal of one contact alone, which pushes two bodies along one tangent."""
    core = 2 * SIZE
    m = core + dry
    for seed in range(8):
        contacts = contacts_of(graph(2, seed), seed)
        rows, segments = np.zeros((dry, 3, 12)), np.zeros((dry, 4), np.int64)
        rows[:, 1, :SIZE] = np.random.default_rng(seed).normal(size=(dry, SIZE))
        rows[:, 0, SIZE] = 1.0 + np.arange(dry)
        segments[:] = [[SIZE * (k % 2), SIZE, core + k, 1] for k in range(dry)]
        contacts = contacts._replace(
            rows=np.concatenate([contacts.rows, rows]), segments=np.concatenate([contacts.segments, segments]),
            friction=np.zeros(len(contacts.friction) + dry),
        )  # fmt: skip
        assert core_of(contacts.rows, contacts.segments, m) == core
        system = laws(contacts, m, room(0), seed, stiffness=10.0)
        system.core[0] = core
        A, right = dense(contacts, system, m), system.right.copy()
        assert solve_system(contacts, system)
        np.testing.assert_allclose(A @ system.right, right, atol=1e-9)
        again = np.cos(np.arange(m))
        other = again.copy()
        solve_again(system, again)
        np.testing.assert_allclose(A @ again, other, atol=1e-9)


def test_a_stack_is_not_filled():
    pairs = [(b - 1, b) for b in range(20)]
    blocks = room(20)
    order_bodies(segments_of(pairs), blocks)
    assert blocks.count[0] == 20 + 2 * 19
    assert sorted(blocks.order) == list(range(20))


def test_the_centre_of_a_star_is_eliminated_last_or_next_to_last():
    pairs = [(0, b) for b in range(1, 9)]
    blocks = room(9)
    order_bodies(segments_of(pairs), blocks)
    assert 0 in blocks.order[-2:]
    assert blocks.count[0] == 9 + 2 * 8


def test_a_ring_is_filled_by_as_little_as_can_be():
    blocks = room(10)
    order_bodies(segments_of([(b, (b + 1) % 10) for b in range(10)]), blocks)
    assert blocks.count[0] == 10 + 2 * (10 + 7)  # a triangulated ring has 7 chords


@pytest.mark.parametrize(
    ("segments", "m", "free"),
    [
        ([[0, 6, 6, 6]], 12, True),
        ([[6, 6, 0, 0]], 12, True),
        ([[0, 6, 0, 0]], 6, False),  # one body is a block by itself
        ([[0, 12, 0, 0]], 12, False),
        ([[3, 6, 0, 0]], 12, False),
        ([[0, 6, 6, 6]], 13, False),
    ],
)
def test_free_bodies_are_recognised(segments, m, free):
    assert of_free_bodies(np.array(segments, np.int64), m) == free
