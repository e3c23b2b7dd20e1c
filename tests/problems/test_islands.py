"""Problems fall apart where nothing touches, and say the same in parts as together."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy

import stiction as st
from stiction.problems.islands import islands, joining
from stiction.problems.zoo.contact_families import CONTACT_FAMILIES, chain, heap, heap_delassus, stack


class Answer(NamedTuple):
    impulse: Any
    velocity: Any
    joint_impulse: Any


def beside(*problems):
    """Problems of free bodies next to each other, their bodies and contacts shuffled."""
    random = np.random.default_rng(3)
    count = sum(len(p.mass) for p in problems)
    m = 6 * count
    order = random.permutation(count)
    mass, velocity = np.zeros((count, 6, 6)), np.zeros((count, 6))
    rows, pairs, friction, gap, joints, rate = [], [], [], [], [], []
    first = 0
    for p in problems:
        place = order[first : first + len(p.mass)]
        mass[place], velocity[place] = p.mass, p.velocity.reshape(-1, 6)
        bodies = np.where(p.segments[:, 1::2] > 0, p.segments[:, 0::2] // 6, -1)
        pairs.append(np.where(bodies >= 0, place[bodies], -1))
        rows.append(p.rows.reshape(p.n, 3, 2, 6))
        friction.append(p.friction)
        gap.append(p.gap_rate)
        wide = np.zeros((len(p.joints), m))
        for b, body in enumerate(place):
            wide[:, 6 * body : 6 * body + 6] = p.joints[:, 6 * b : 6 * b + 6]
        joints.append(wide)
        rate.append(p.joint_rate)
        first += len(p.mass)
    shuffle = random.permutation(sum(p.n for p in problems))
    rows = np.concatenate(rows)[shuffle]
    return st.ContactProblem.from_bodies(
        mass, velocity, np.concatenate(pairs)[shuffle], rows[:, 0], rows[:, 1:], np.concatenate(friction)[shuffle],
        gap_rate=np.concatenate(gap)[shuffle], joints=np.concatenate(joints), joint_rate=np.concatenate(rate),
    ), shuffle  # fmt: skip


def test_parts_are_the_problems_that_were_put_together():
    parts = [stack(2, 0), stack(1, 1), heap(3, 2), chain(3, 0)]
    together, shuffle = beside(*parts)
    found = islands(together)
    assert sorted(part.problem.n for part in found) == sorted(p.n for p in parts)
    assert np.array_equal(np.sort(np.concatenate([part.contacts for part in found])), np.arange(together.n))
    for part in found:
        whole = together.dense_rows()[part.contacts]
        np.testing.assert_array_equal(part.problem.dense_rows(), whole[:, :, part.velocities])
        np.testing.assert_array_equal(part.problem.velocity, together.velocity[part.velocities])
        np.testing.assert_array_equal(part.problem.joints, together.joints[np.ix_(part.joints, part.velocities)])
        others = np.setdiff1d(np.arange(together.m), part.velocities)
        assert not whole[:, :, others].any()
    assert len(shuffle) == together.n


def test_auto_solves_parts_apart_and_judges_the_whole():
    parts = [stack(2, 0), stack(1, 1), heap(3, 2), chain(3, 0)]
    together, shuffle = beside(*parts)
    solution = st.solve(together)
    assert solution.ok
    assert solution.certificate == st.certify(together, solution)
    assert sum("island" in line for line in solution.trace) >= len(islands(together))
    # Friction has several answers; without it velocities are unique.
    smooth = st.solve(together.with_law(st.Frictionless()))
    alone = np.concatenate([st.solve(p.with_law(st.Frictionless())).contact_velocity for p in parts])[shuffle]
    np.testing.assert_allclose(smooth.contact_velocity, alone, atol=1e-8)
    again = st.solve(together, start=solution)
    assert again.iterations <= solution.iterations


@pytest.mark.parametrize("name", ["stack-3", "peg-8", "plane-arm", "heap-delassus"])
def test_what_holds_together_is_one_island(name):
    problem = CONTACT_FAMILIES[name](0)
    (only,) = islands(problem)
    assert only.problem is problem
    assert len(only.contacts) == problem.n


def test_bodies_without_contact_are_left_out():
    problem, _ = beside(stack(1, 0), posed_alone())
    (only,) = islands(problem)
    assert only.velocities.size == 6
    assert st.solve(problem).ok


def posed_alone():
    one = stack(1, 5)
    return st.ContactProblem.from_bodies(one.mass, one.velocity, [], [], [], [])


def test_nothing():
    assert len(islands(st.ContactProblem.from_bodies([], [], [], [], [], []))) == 1


def test_a_delassus_matrix_that_falls_apart_has_the_answer_of_the_undivided_problem():
    parts = [heap_delassus(2, 0), heap_delassus(3, 1)]
    n = sum(p.n for p in parts)
    shuffle = np.random.default_rng(0).permutation(n)
    places = (3 * shuffle[:, None] + np.arange(3)).ravel()
    W = scipy.linalg.block_diag(*(p.delassus for p in parts))[np.ix_(places, places)]
    q, mu = np.concatenate([p.offset for p in parts])[places], np.concatenate([p.friction for p in parts])[shuffle]
    together = st.ContactProblem.from_delassus(W, q, mu)
    assert len(islands(together)) == 2
    divided, undivided = st.solve(together), st.solve(together, st.ConeNewton(tolerance=1e-12))
    np.testing.assert_allclose(divided.contact_velocity, undivided.contact_velocity, atol=1e-9 * np.abs(q).max())


def test_neither_a_judge_nor_a_response_factors_the_delassus_matrix_of_the_whole(monkeypatch):
    problem = heap_delassus(3, 0)
    impulse = st.solve(problem).impulse
    fresh = st.ContactProblem.from_delassus(problem.delassus, problem.offset, problem.friction)
    monkeypatch.setattr("stiction.problems.delassus_form.semidefinite_factor", None)
    velocity, joint_impulse = fresh.respond(impulse)
    assert st.certify(fresh, Answer(impulse, velocity, joint_impulse)).residual < 1e-9


def test_contacts_that_make_an_island_large():
    """Between the same two bodies four at most, and no dry friction: a robot on two feet is no heap."""
    pair, other, floor, dry = [0, 6, 6, 6], [0, 6, 12, 6], [6, 6, 0, 0], [18, 1, 0, 18]
    segments = np.array([*[pair] * 6, *[other] * 3, *[floor] * 4, *[dry] * 5])
    assert joining(segments, 4) == 4 + 3 + 4
    assert joining(segments, 100) == 6 + 3 + 4
    assert joining(segments[:0], 4) == 0
