"""Islands solved apart: the same answers as each by itself, whatever the order of contacts."""

from __future__ import annotations

import numpy as np
import pytest

from stiction.arrays.compiled import workspace
from stiction.arrays.vectors import ZEROS
from stiction.problems.zoo.contact_families import stack
from stiction.solvers.contact.cone_newton.cone_newton import Given, cone_newton
from stiction.solvers.contact.cone_newton.cone_newton import sizes as whole_sizes
from stiction.solvers.contact.cone_newton.parts import sizes, solve_parts
from stiction.solvers.contract import SOLVED


def given_of(problem):
    white = problem.whitened
    return Given(
        white.rows.copy(), white.segments.copy(), white.free.copy(), white.bias.copy(), problem.friction.copy(),
        white.scale.copy(), white.pace.copy(), np.empty(0), False, False,
    ), white.tau  # fmt: skip


def side_by_side(parts, order):
    """One problem of several, their contacts in this order."""
    shift, width, segments = 0, max(each.rows.shape[2] for each in parts), []
    for each in parts:
        moved = each.segments.copy()
        moved[:, 0::2] += np.where(moved[:, 1::2] > 0, shift, 0)
        segments.append(moved)
        shift += len(each.free)
    rows = [np.pad(each.rows, ((0, 0), (0, 0), (0, width - each.rows.shape[2]))) for each in parts]
    columns = [np.concatenate([getattr(each, name) for each in parts])[order] for name in Given._fields[3:7]]
    return Given(
        np.concatenate(rows)[order], np.concatenate(segments)[order], np.concatenate([each.free for each in parts]),
        *columns, np.empty(0), False, False,
    )  # fmt: skip


def solved(kernel, room, given, tau, start, tolerance=1e-11):
    n, d, width = given.rows.shape
    p = np.empty((n, d))
    status, steps, violation = kernel(
        given, tau, start, 20, 80, np.inf, tolerance, *workspace(*room(n, d, len(given.free), width)), p, ZEROS[3]
    )
    assert status == SOLVED
    assert violation <= 1e-9
    return p, steps


@pytest.mark.parametrize("warm", [False, True])
def test_islands_get_the_answers_that_they_have_alone(warm):
    problems = [stack(bodies, seed) for seed, bodies in enumerate((1, 4, 2, 3))]
    parts = [given_of(problem)[0] for problem in problems]
    tau = 1.0
    count = [len(each.friction) for each in parts]
    order = np.random.default_rng(5).permutation(sum(count))
    inside = np.repeat(np.arange(4), count)[order]
    alone = []
    for k, each in enumerate(parts):
        mine = order[inside == k] - sum(count[:k])
        apart = side_by_side([each], mine)
        begin = np.full((count[k], 3), 0.01) if warm else np.empty((0, 3))
        alone.append(solved(cone_newton, whole_sizes, apart, tau, begin))
    begin = np.full((len(order), 3), 0.01) if warm else np.empty((0, 3))
    p, steps = solved(solve_parts, sizes, side_by_side(parts, order), tau, begin)
    assert steps == sum(steps for _, steps in alone)
    for k, (expected, _) in enumerate(alone):
        assert (p[inside == k] == expected).all()


def test_an_island_at_rest_costs_no_step_beside_one_that_moves():
    first, second = (given_of(stack(2, seed))[0] for seed in (0, 1))
    answer, _ = solved(cone_newton, whole_sizes, first, 1.0, np.empty((0, 3)), 1e-13)
    order = np.arange(len(first.friction) + len(second.friction))
    start = np.concatenate([answer, np.zeros((len(second.friction), 3))])
    p, steps = solved(solve_parts, sizes, side_by_side([first, second], order), 1.0, start)
    _, expected = solved(cone_newton, whole_sizes, second, 1.0, np.zeros((len(second.friction), 3)))
    assert steps == expected
    assert (p[: len(answer)] == answer).all()


def test_contacts_of_what_cannot_move_carry_nothing():
    given, _ = given_of(stack(2, 3))
    fixed = given._replace(segments=np.vstack([given.segments, np.zeros((1, 4), np.int64)]))
    fixed = fixed._replace(
        **{
            name: np.concatenate([getattr(given, name), getattr(given, name)[:1]])
            for name in ("rows", *Given._fields[3:7])
        }
    )
    two = side_by_side([fixed, given], np.arange(2 * len(given.friction) + 1))
    p, _ = solved(solve_parts, sizes, two, 1.0, np.empty((0, 3)))
    assert (p[len(given.friction)] == 0.0).all()
