"""Contact problems with torsional and rolling friction, and with unequal coefficients."""

from __future__ import annotations

import numpy as np
import pytest

import stiction as st
from stiction.problems.zoo import contact_families as zoo
from turning import FAMILIES, disc, with_turning


def test_impulses_are_those_of_the_ellipse():
    solution = st.solve(disc((3.0, 0.0, 0.0)))
    np.testing.assert_allclose(solution.as_given[0], [1.0, 0.0, 0.0, -0.01, 0.0, 0.0], atol=1e-12)
    assert solution.mode.tolist() == [st.Mode.SPIN]
    assert solution.velocity[3] == pytest.approx(3.0 - 0.01)
    solution = st.solve(disc((0.0, 3.0, 0.0)))
    np.testing.assert_allclose(solution.as_given[0], [1.0, 0.0, 0.0, 0.0, -0.002, 0.0], atol=1e-12)
    assert solution.mode.tolist() == [st.Mode.ROLL]


def test_together_or_apart():
    together = st.solve(disc((3.0, 2.0, 1.0), push=(0.1, 2.0)))
    share = together.as_given[0, 1:] / (together.as_given[0, 0] * np.array([0.5, 0.5, 0.01, 0.002, 0.002]))
    assert np.linalg.norm(share) == pytest.approx(1.0, rel=1e-12)
    apart = st.solve(disc((3.0, 2.0, 1.0), push=(0.1, 2.0), joint=False))
    p = apart.as_given[0]
    assert np.linalg.norm(p[1:3]) == pytest.approx(0.5 * p[0], rel=1e-12)
    assert abs(p[3]) == pytest.approx(0.01 * p[0], rel=1e-12)
    assert np.linalg.norm(p[4:]) == pytest.approx(0.002 * p[0], rel=1e-12)
    # Each opposes its own motion.
    v = apart.velocity
    np.testing.assert_allclose(p[1:3] / np.linalg.norm(p[1:3]), -v[1:3] / np.linalg.norm(v[1:3]), atol=1e-9)
    np.testing.assert_allclose(p[4:] / np.linalg.norm(p[4:]), -v[4:] / np.linalg.norm(v[4:]), atol=1e-9)


def test_the_ellipse_dissipates_most():
    """No other impulse in the ellipse takes more energy out of the motion after the step."""
    problem = disc((3.0, 2.0, 1.0), push=(0.1, 2.0))
    solution = st.solve(problem)
    u, p = solution.contact_velocity[0, 1:], solution.impulse[0]
    rng = np.random.default_rng(0)
    for _ in range(1000):
        other = rng.normal(size=5)
        other *= 0.5 * p[0] / np.linalg.norm(other)
        assert other @ u >= p[1:] @ u - 1e-12


def test_torsion_alone_is_the_same_with_and_without_rows_of_rolling():
    rows = np.zeros((1, 4, 2, 6))
    for k, column in enumerate((0, 1, 2, 3)):
        rows[0, k, 1, column] = 1.0
    velocity = np.array([[-1.0, 0.3, 0.0, 2.0, 0.0, 0.0]])
    made = st.ContactProblem.from_bodies(
        np.eye(6)[None], velocity, [[-1, 0]], rows[:, 0], rows[:, 1:], [[0.5, 0.5, 0.01]]
    )
    other = disc((2.0, 0.0, 0.0), push=(0.3, 0.0), coefficients=(0.5, 0.01, 0.0, 0.0))
    np.testing.assert_array_equal(st.solve(made).as_given, st.solve(other).as_given)


def test_unequal_sliding_is_an_ellipse():
    problem = st.ContactProblem(
        np.eye(3), [-1.0, 3.0, 4.0], [[1.0, 0.0, 0.0]], [[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]], [[0.5, 0.1]]
    )
    solution = st.solve(problem)
    p, v = solution.as_given[0], solution.velocity
    assert (p[1] / 0.5) ** 2 + (p[2] / 0.1) ** 2 == pytest.approx(p[0] ** 2, rel=1e-12)
    # The normal of the ellipse at p is opposed to the sliding.
    normal = np.array([p[1] / 0.25, p[2] / 0.01])
    np.testing.assert_allclose(normal / np.linalg.norm(normal), -v[1:] / np.linalg.norm(v[1:]), atol=1e-9)


def test_the_judge_knows_a_wrong_torque():
    problem = disc((3.0, 0.0, 0.0))
    solution = st.solve(problem)
    wrong = solution.impulse.copy()
    wrong[0, 3] *= 1.001
    velocity, joints = problem.respond(wrong)
    assert (
        st.certify(problem, solution._replace(impulse=wrong, velocity=velocity, joint_impulse=joints)).residual > 1e-6
    )
    assert st.certify(problem, solution).residual <= 1e-12


def check_family(name, seeds, joint):
    for seed in seeds:
        problem = with_turning(FAMILIES[name](seed), (0.05, 0.01, 0.01)).with_law(st.Coulomb(joint=joint))
        solution = st.solve(problem, throw=False)
        assert solution.ok, (name, seed, solution)


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("name", FAMILIES)
def test_random_problems_are_certified(name, joint):
    check_family(name, range(10), joint)


@pytest.mark.slow
@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("name", FAMILIES)
def test_a_thousand_random_problems_are_certified(name, joint):
    check_family(name, range(10, 1010), joint)


@pytest.mark.parametrize("joint", [True, False])
def test_which_forces_are_determined(joint):
    """Four contacts under a block share its weight in one way too many; what turns it is known only in sum."""
    stack = with_turning(zoo.stack(1, 0), (0.05, 0.01, 0.01)).with_law(st.Coulomb(joint=joint))
    found = st.solve(stack).uniqueness()
    assert found.directions.shape[1:] == (4, 6)
    assert found.dimension > 0
    alone = st.solve(disc((3.0, 0.0, 0.0), joint=joint)).uniqueness()
    assert alone.dimension == 0


def test_files_keep_them(tmp_path):
    problem = disc((3.0, 2.0, 1.0), push=(0.1, 2.0), joint=False)
    problem.save(tmp_path / "turning.npz")
    other = st.load(tmp_path / "turning.npz")
    assert other.law == problem.law
    np.testing.assert_array_equal(other.rows, problem.rows)
    np.testing.assert_array_equal(other.ratio, problem.ratio)
    np.testing.assert_array_equal(st.solve(other).as_given, st.solve(problem).as_given)
    with pytest.raises(st.InvalidProblem, match="FCLIB has no place for torsional"):
        problem.with_law(st.Coulomb()).save(tmp_path / "turning.hdf5")


def test_bad_input_is_named():
    with pytest.raises(st.InvalidProblem, match=r"friction must have shape \(1,\), or \(1, 3 or 5\)"):
        disc((0.0, 0.0, 0.0), coefficients=(0.5,))
    with pytest.raises(st.InvalidProblem, match=r"friction\[0, 2\] = -1"):
        disc((0.0, 0.0, 0.0), coefficients=(0.5, -1.0, 0.0, 0.0))
    with pytest.raises(st.InvalidProblem, match="need the law Coulomb"):
        disc((0.0, 0.0, 0.0)).with_law(st.NoSlip())
    with pytest.raises(st.InvalidProblem, match="joint must be True or False"):
        st.Coulomb(joint="no")
    with pytest.raises(st.UnsupportedProblem, match="no torsional or rolling friction"):
        st.solve(disc((0.0, 0.0, 0.0)), st.Baraff())
