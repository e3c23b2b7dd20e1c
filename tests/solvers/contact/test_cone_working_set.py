"""Few contacts instead of many of the same bodies: the same laws hold for all."""

from __future__ import annotations

import numpy as np
import pytest

from stiction.problems.zoo.contact_families import CONTACT_FAMILIES, grasp, peg, plate, with_friction
from stiction.solvers.contact.cone_newton.cone_newton import ConeNewton
from stiction.solvers.contact.cone_newton.working_set import group
from stiction.solvers.solve import solve


def test_runs_of_contacts_between_the_same_bodies():
    groups = np.empty(10, np.int64)
    segments = np.array([[0, 6, 0, 0]] * 2 + [[0, 6, 6, 6]] * 6 + [[0, 6, 0, 0]], np.int64)
    assert group(segments, groups) == (3, 6)
    assert list(groups[:4]) == [0, 2, 8, 9]


@pytest.mark.parametrize("n", [64, 512])
def test_of_many_contacts_few_carry(n):
    for seed in range(5):
        solution = solve(peg(n, seed), ConeNewton(), tolerance=1e-9)
        assert (solution.impulse[:, 0] > 0.0).sum() <= 16
        assert (solution.impulse[solution.impulse[:, 0] == 0.0] == 0.0).all()


@pytest.mark.parametrize("name", ["plate-144", "plate-gaps", "wedged-40", "duplicated", "grasp-tripled", "stack-5x8"])
def test_no_contact_left_out_is_violated(name):
    for seed in range(10):
        solution = solve(CONTACT_FAMILIES[name](seed), ConeNewton(), tolerance=1e-9)
        assert solution.certificate.penetration <= 1e-9 * solution.certificate.scale


@pytest.mark.parametrize("friction", [0.0, 0.1, 1000.0])
def test_any_friction(friction):
    for seed in range(5):
        for problem in (plate(8, seed), grasp(seed)):
            assert solve(with_friction(problem, friction), ConeNewton(), tolerance=1e-9).ok


def test_contacts_that_a_start_forgets_are_found():
    problem = peg(32, 1)
    whole = solve(problem, ConeNewton())
    start = whole.impulse.copy()
    start[np.argmax(start[:, 0])] = 0.0
    assert solve(problem, ConeNewton(), start=start, tolerance=1e-9).ok
