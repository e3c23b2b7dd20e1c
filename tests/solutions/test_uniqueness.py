"""Which forces are determined: tables and stools, and the smallest of what is not."""

import numpy as np
import pytest
from scipy.optimize import minimize

import stiction as st
from stiction.problems.zoo.contact_families import CONTACT_FAMILIES, stack
from stiction.solutions.uniqueness import onto_edges, onto_round

LAWS = [st.Coulomb(), st.Coulomb(facets=6, rotation=0.2), st.Frictionless(), st.NoSlip()]


CONE = st.Coulomb()


def table(legs, law=CONE, push=(0.0, 0.0, -1.0), mu=0.5):
    """A body of unit mass on legs at these places of the ground, pushed through its middle."""
    normal = [[0.0, 0.0, 1.0, y, -x, 0.0] for x, y in legs]
    tangent = [[[1.0, 0, 0, 0, 0, -y], [0, 1.0, 0, 0, 0, x]] for x, y in legs]
    return st.ContactProblem(np.eye(6), [*push, 0.0, 0.0, 0.0], normal, tangent, mu, law=law)


STOOL = [(1.0, 0.0), (-0.5, 0.8), (-0.5, -0.8)]
TABLE = [(1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0)]


def test_normal_forces_of_a_stool_are_determined_and_of_a_table_are_not():
    stool = st.solve(table(STOOL, st.Frictionless())).uniqueness()
    assert stool.unique
    assert stool.determined.all()
    assert str(stool) == "all contact forces are determined"
    told = st.solve(table(TABLE, st.Frictionless())).uniqueness()
    assert told.dimension == 1
    assert not told.determined.any()
    assert str(told) == "4 of 4 contact forces are not determined (1 dimensions)"
    # One pair of opposite legs takes what the other gives.
    direction = told.directions[0, :, 0]
    np.testing.assert_allclose(np.abs(direction), np.abs(direction[0]), rtol=1e-12)
    np.testing.assert_allclose(np.sign(direction) * np.sign(direction[0]), [1, -1, 1, -1])


def test_sticking_friction_is_less_determined_than_sliding():
    sticking = st.solve(table(STOOL)).uniqueness()
    assert sticking.dimension == 9 - 6
    sliding = st.solve(table(STOOL, push=(5.0, 0.0, -1.0), mu=0.1))
    assert (sliding.mode == st.Mode.SLIDE).all()
    assert sliding.uniqueness().unique


def test_directions_move_nothing():
    for law in LAWS:
        problem = stack(2, 3).with_law(law)
        told = st.solve(problem).uniqueness()
        for direction in told.directions:
            moved = problem.respond(direction)[0] - problem.respond(np.zeros_like(direction))[0]
            assert np.abs(problem.dense_rows() @ moved).max() <= 1e-9 * problem.whitened.tau


def test_contacts_that_open_are_determined():
    problem = table([*STOOL, (9.0, 9.0)], st.Frictionless())
    lifted = st.ContactProblem(
        problem.mass, problem.velocity, problem.normal, problem.tangent, 0.5,
        gap_rate=[0.0, 0.0, 0.0, 5.0], law=st.Frictionless(),
    )  # fmt: skip
    assert st.solve(lifted).uniqueness().unique


def test_redundant_joints_are_told():
    row = [1.0, 0, 0, 0, 0, 0]
    problem = st.ContactProblem(np.eye(6), np.ones(6), [], [], [], joints=[row, [0, 1.0, 0, 0, 0, 0], row])
    told = st.solve(problem).uniqueness()
    assert told.redundant_joints.tolist() == [2]
    assert not told.unique


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_four_legs_share_alike_in_least_norm(law):
    found = st.solve(table(TABLE, law)).least_norm()
    assert found.ok
    np.testing.assert_allclose(found.impulse[:, 0], 0.25, rtol=1e-10)
    np.testing.assert_allclose(found.impulse[:, 1:], 0.0, atol=1e-12)


@pytest.mark.parametrize("law", LAWS, ids=str)
@pytest.mark.parametrize("name", ["stack-3", "grasp", "peg-8", "chain", "heap-3", "plane-stack", "heap-delassus"])
def test_least_norm_is_certified_and_no_larger(name, law):
    solution = st.solve(CONTACT_FAMILIES[name](0).with_law(law))
    least = solution.least_norm()
    assert least.ok, least
    white = least.problem.whitened
    assert np.linalg.norm(white.scaled(least.impulse)) <= (1.0 + 1e-9) * np.linalg.norm(white.scaled(solution.impulse))
    np.testing.assert_allclose(
        least.contact_velocity, solution.contact_velocity, atol=1e-7 * white.tau * white.scale.max() ** 0
    )


def test_projections_against_a_general_optimiser():
    random = np.random.default_rng(0)
    square = np.array([[1.0, 0.5, 0.5], [1.0, -0.5, 0.5], [1.0, -0.5, -0.5], [1.0, 0.5, -0.5]])
    for y in random.normal(size=(40, 3)):
        point, turn = onto_edges(y, square)
        best = minimize(lambda w: 0.5 * ((w @ square - y) ** 2).sum(), np.ones(4), bounds=[(0, None)] * 4, tol=1e-14)  # noqa: B023
        np.testing.assert_allclose(point, best.x @ square, atol=1e-5)
        for project, cone in ((onto_edges, square), (onto_round, 0.7), (onto_round, np.inf)):
            point, turn = project(y, cone)
            np.testing.assert_allclose(project(point, cone)[0], point, atol=1e-14)
            ahead = random.normal(size=3) * 1e-7
            np.testing.assert_allclose(project(y + ahead, cone)[0] - point, turn @ ahead, atol=1e-12)


def test_a_solution_without_its_problem_says_so():
    solution = st.solve(table(STOOL))._replace(problem=None)
    with pytest.raises(st.InvalidProblem, match="without its problem"):
        solution.uniqueness()
    failed = st.solve(table(STOOL))._replace(status=st.Status.STALLED)
    with pytest.raises(st.InvalidProblem, match="not certified"):
        failed.least_norm()
