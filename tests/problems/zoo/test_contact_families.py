"""Generated contact problems are those their docstrings describe: the same from the same seed, and physically right."""

import numpy as np
import pytest

from stiction.errors import InvalidProblem
from stiction.problems.laws import BoxFriction, Coulomb, Frictionless, NoSlip, Viscous
from stiction.problems.zoo.contact_classics import contact_classics, lloyd_contact_sets
from stiction.problems.zoo.contact_families import (
    CONTACT_FAMILIES,
    SINGLE_BODY,
    arm,
    cannonballs,
    chain,
    duplicated,
    grasp,
    grasp_tripled,
    heap,
    heap_delassus,
    impact,
    incline,
    lengths_scaled,
    mass_ratio,
    mixed_friction,
    motor,
    nearly_duplicated,
    painleve_forces,
    painleve_rod,
    peg,
    plate,
    single_body,
    stack,
    stack_in_plane,
    stack_pushed,
    wall,
    with_friction,
)
from stiction.problems.zoo.rigid_bodies import ball, block, frames, rod

PER_BODY = [name for name, make in CONTACT_FAMILIES.items() if make(0).mass is not None and make(0).mass.ndim == 3]


def arrays(problem):
    return [value.tobytes() for value in vars(problem).values() if isinstance(value, np.ndarray)]


def impulse(problem):
    """(b, 6) what acts on each body, if it started from rest."""
    return np.einsum("bij,bj->bi", problem.mass, problem.velocity.reshape(-1, 6))


def test_there_are_many():
    assert len(CONTACT_FAMILIES) >= 25
    assert all(name == name.lower() for name in CONTACT_FAMILIES)


@pytest.mark.parametrize("name", CONTACT_FAMILIES)
def test_the_same_seed_gives_the_same_problem_and_another_another(name):
    make = CONTACT_FAMILIES[name]
    assert arrays(make(7)) == arrays(make(7))
    assert arrays(make(7)) != arrays(make(8))


@pytest.mark.parametrize("name", CONTACT_FAMILIES)
def test_problems_can_be_posed_under_every_law(name):
    problem = CONTACT_FAMILIES[name](0)
    assert problem.law == Coulomb()
    laws = [Frictionless(), NoSlip(), Coulomb(facets=8), BoxFriction()]
    if problem.mass is not None:
        laws.append(Viscous())
        assert (problem.viscosity > 0.0).all()
    for law in laws:
        assert problem.with_law(law).law == law


@pytest.mark.parametrize("name", PER_BODY)
@pytest.mark.parametrize("seed", [0, 1])
def test_frames_are_orthonormal_and_opposite_on_both_bodies(name, seed):
    problem = CONTACT_FAMILIES[name](seed)
    for row, segment in zip(problem.rows, problem.segments, strict=True):
        first = row[:, :3]
        np.testing.assert_allclose(first @ first.T, np.eye(3), atol=1e-14)
        if segment[3]:
            np.testing.assert_array_equal(row[:, 6:9], -first)


@pytest.mark.parametrize("name", PER_BODY)
def test_inertias_are_those_of_bodies(name):
    """Symmetric, diagonal mass, and principal moments that obey the triangle inequality."""
    for block_ in CONTACT_FAMILIES[name](1).mass:
        mass = block_[0, 0]
        np.testing.assert_array_equal(block_[:3, :3], mass * np.eye(3))
        assert not block_[:3, 3:].any()
        moments = np.linalg.eigvalsh(block_[3:, 3:])
        assert moments[0] > 0.0
        assert moments[2] <= (moments[0] + moments[1]) * (1.0 + 1e-12)


@pytest.mark.parametrize("name", PER_BODY)
def test_contacts_between_bodies_keep_the_momentum(name):
    """Equal and opposite impulses at one point: linear and angular momentum of a pair do not change."""
    problem = CONTACT_FAMILIES[name](2)
    for row, segment in zip(problem.rows, problem.segments, strict=True):
        if not segment[3]:
            continue
        one, two = row[:, :6], row[:, 6:]
        np.testing.assert_array_equal(one[:, :3] + two[:, :3], 0.0)
        # arm1 x d - arm2 x d = (centre2 - centre1) x d for each of the three directions, one vector for all
        torque, d = one[:, 3:] + two[:, 3:], one[:, :3]
        apart = np.linalg.lstsq(
            np.vstack([[[0.0, z, -y], [-z, 0.0, x], [y, -x, 0.0]] for x, y, z in d]), torque.ravel(), rcond=None
        )[0]
        np.testing.assert_allclose(np.cross(apart, d), torque, atol=1e-12 * max(1.0, np.abs(torque).max()))


def test_bodies():
    np.testing.assert_allclose(block((1.0, 2.0, 3.0), (0, 0, 0), 12.0).inertia, np.diag([13.0, 10.0, 5.0]))
    np.testing.assert_allclose(ball(2.0, (0, 0, 0), 5.0).inertia, 8.0 * np.eye(3))
    np.testing.assert_allclose(rod(2.0, 1.0, (0.0, 0.0, 1.0), (0, 0, 0), 12.0).inertia, np.diag([7.0, 7.0, 6.0]))
    turn = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
    np.testing.assert_allclose(block((1.0, 2.0, 3.0), (0, 0, 0), 12.0, turn).inertia, np.diag([10.0, 13.0, 5.0]))


def test_frames_of_any_normal():
    normals = np.concatenate([np.eye(3), -np.eye(3), np.random.default_rng(0).normal(size=(50, 3))])
    for frame in frames(normals):
        np.testing.assert_allclose(frame @ frame.T, np.eye(3), atol=1e-15)
        assert np.linalg.det(frame) == pytest.approx(1.0)


def test_peg_of_the_measured_figures():
    """The numbers for which times and success rates were published: seed 0, eight contacts."""
    problem = peg(8, 0)
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(problem.friction, rng.uniform(0.2, 0.3, 8))
    wrench = rng.normal(size=6)
    np.testing.assert_allclose(np.diag(problem.mass[0]), [1, 1, 1, 4.75 / 12, 4.75 / 12, 0.125])
    np.testing.assert_allclose(impulse(problem)[0], wrench, rtol=1e-14)
    np.testing.assert_allclose(problem.normal[0], [-1, 0, 0, 0, 1, 0], atol=1e-15)
    np.testing.assert_allclose(problem.normal[5], [0, -1, 0, 1, 0, 0], atol=1e-15)
    for n in (2, 16, 64):
        assert peg(n, 0).n == n
    for n in (0, 7):
        with pytest.raises(InvalidProblem, match=f"peg: n must be even and at least 2, got {n}"):
            peg(n, 0)


def test_stack_of_the_measured_figures():
    problem = stack(3, 4, per=8)
    rng = np.random.default_rng(4)
    wanted = np.tile([0, 0, -9.81, 0, 0, 0], (3, 1))
    wanted[2] += 2.0 * rng.normal(size=6)
    np.testing.assert_allclose(impulse(problem), wanted, rtol=1e-14)
    np.testing.assert_array_equal(problem.friction, rng.uniform(0.2, 0.3, 24))
    np.testing.assert_allclose(np.diag(problem.mass[1]), [1, 1, 1, 1 / 6, 1 / 6, 1 / 6])
    assert problem.segments[8].tolist() == [0, 6, 6, 6]
    with pytest.raises(InvalidProblem, match="stack: per must be 4 or 8, got 5"):
        stack(1, 0, per=5)


def test_grasp_of_the_measured_figures():
    problem = grasp(0)
    assert problem.n == 36
    wanted = np.zeros((4, 6))
    wanted[0, 0], wanted[3, 0], wanted[1:3, 2] = 20.0, -20.0, -9.81
    np.testing.assert_allclose(impulse(problem), wanted, atol=1e-14)
    assert [part[0, 0] for part in problem.mass] == [5.0, 1.0, 1.0, 5.0]
    np.testing.assert_allclose(impulse(grasp(3)), wanted + 0.3 * np.random.default_rng(3).normal(size=24).reshape(4, 6))
    # Squeezed together, every contact closes at the same speed.
    np.testing.assert_allclose((problem.normal @ problem.velocity)[:12], -4.0)
    assert len(np.unique(problem.rows[:12].round(12), axis=0)) == 12


def test_grasp_has_three_normals_at_every_corner():
    problem = grasp_tripled(1)
    assert problem.n == 36
    normals = problem.rows[:, 0, 6:9].reshape(12, 3, 3)
    assert all(np.linalg.matrix_rank(corner) == 3 for corner in normals)
    assert (problem.friction == 100.0).all()


def test_stack_pushed_has_ties():
    problem = stack_pushed(3)
    push = impulse(problem)[-1]
    assert len(np.unique(problem.friction)) == 1
    assert (8.0 * np.arctan2(push[1], push[0]) / np.pi) % 1.0 == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("case", "n"),
    list(zip(SINGLE_BODY, [1, 2, 3, 4, 6, 8, 8, 12, 16, 16], strict=True)),
)
def test_single_bodies(case, n):
    problem = single_body(case, 0)
    assert (problem.n, problem.m) == (n, 6)
    assert ((problem.friction >= 0.2) & (problem.friction <= 0.3)).all()
    if case != "channel":
        # Pressed on: moving along the press closes contacts, and the opposite opens all of them.
        away = {"corner": [1.0, 1.0, 1.0]}.get(case, [0.0, 0.0, 1.0])
        assert (problem.normal[:, :3] @ away > 0.0).all()


def test_unknown_single_body():
    with pytest.raises(InvalidProblem, match="there is no case 'cliff'; known are point, edge, tripod"):
        single_body("cliff", 0)


def test_plates():
    assert plate(12, 0).n == 144
    uneven = plate(5, 0, gaps=1e-3)
    assert uneven.gap_rate.min() < 0.0 < uneven.gap_rate.max()
    assert np.abs(uneven.gap_rate).max() <= 0.1
    assert np.linalg.matrix_rank(plate(4, 0).normal) == 3


def test_incline_slides_beyond_the_angle_of_friction():
    """The free velocity is g dt (sin, -cos): its direction decides, tan(angle) against mu."""
    problem = incline(0, angle=0.5, friction=0.4)
    np.testing.assert_allclose(problem.velocity, 0.0981 * np.array([np.sin(0.5), 0, -np.cos(0.5), 0, 0, 0]), atol=1e-15)
    assert (problem.friction == 0.4).all()
    speeds = [np.linalg.norm(incline(seed).velocity[:2]) > 0.1 for seed in range(60)]
    assert 10 < sum(speeds) < 50


def test_mass_ratios():
    top = mass_ratio(3, 0, 1e6)
    assert [part[0, 0] for part in top.mass] == [1.0, 1.0, 1e6]
    assert [part[0, 0] for part in mass_ratio(4, 0, 1e3, alternating=True).mass] == [1.0, 1e3, 1.0, 1e3]
    np.testing.assert_allclose(impulse(top)[:2, 2], -9.81)


def test_lengths_scale_everything_alike():
    """In units of its own length, mass and time step every stack of one seed is the same family of numbers."""
    edges = []
    for seed in range(20):
        problem = lengths_scaled(2, seed)
        mass = problem.mass[0, 0, 0]
        edge = (mass / 1000.0) ** (1.0 / 3.0)
        edges.append(edge)
        assert problem.mass[0, 3, 3] == pytest.approx(mass * edge**2 / 6.0)
        assert problem.velocity[2] == pytest.approx(-9.81 * 0.01 * edge**0.5)
        np.testing.assert_allclose(np.abs(problem.rows[0, 0, 3:5]), 0.5 * edge)
    assert min(edges) < 1e-2
    assert max(edges) > 1e2


def test_duplicates():
    problem = duplicated(0)
    rows = problem.rows.reshape(16, 3, 3, 12)
    assert (rows == rows[:, :1]).all()
    near = nearly_duplicated(0)
    assert 0.0 < np.abs(near.rows - problem.rows).max() < 1e-4


def test_wall_carries_its_weight():
    problem = wall(4, 3, 0)
    assert problem.m == 6 * 10
    assert problem.n == 4 * (3 + 4 + 4 + 4)
    np.testing.assert_allclose(impulse(problem)[: 3 + 2 + 3, 2], -9.81)


def test_heap_and_its_operator():
    known, told = heap(4, 1), heap_delassus(4, 1)
    assert told.n == known.n
    assert told.mass is None
    assert np.linalg.matrix_rank(told.delassus) == known.m < 3 * known.n


def test_cannonballs_touch_where_they_should():
    problem = cannonballs(3, 0)
    assert problem.m == 6 * 10
    assert (problem.segments[:, 3] == 0).sum() == 6  # on the ground
    assert (problem.segments[:, 3] > 0).sum() == 24  # edges of the tetrahedral lattice
    mass = problem.mass[0, 0, 0]
    assert mass == pytest.approx(4.18879, rel=1e-5)
    # A ball's contact lies at its radius, along the normal: no torque from normals.
    np.testing.assert_allclose(problem.rows[:, 0, [3, 4, 5, 9, 10, 11]], 0.0, atol=1e-15)


def test_impact_bounces():
    problem = impact(2, 0, restitution=0.5)
    approach = problem.normal @ problem.velocity
    np.testing.assert_allclose(problem.gap_rate, 0.5 * np.minimum(approach, 0.0))
    assert (problem.gap_rate < 0.0).any()
    assert not impact(2, 0, restitution=0.0).gap_rate.any()


@pytest.mark.parametrize("hinged", [False, True])
def test_chains_start_within_their_joints(hinged):
    problem = chain(4, 3, hinged=hinged)
    assert len(problem.joints) == 4 * (6 if hinged else 3)
    start = problem.velocity - np.tile([0, 0, -0.0981, 0, 0, 0], 4)
    np.testing.assert_allclose(problem.joints @ start, 0.0, atol=1e-14)
    # A chain that moves as one rigid body moves its joints apart nowhere but at the anchor.
    shift = np.tile([0.3, -0.2, 0.1, 0, 0, 0], 4)
    moved = (problem.joints @ shift).reshape(-1, 3)
    anchored = 2 if hinged else 1
    np.testing.assert_allclose(moved[:anchored], [[0.3, -0.2, 0.1]] * anchored)
    assert not moved[anchored:].any()


def test_motor_turns_as_told():
    problem = motor(0)
    assert problem.joint_rate.tolist() == [0.0, 0.0, 0.0, -np.random.default_rng(0).uniform(-10.0, 10.0), 0.0]


def test_plane_problems():
    assert stack_in_plane(3, 0).dim == 2
    assert stack_in_plane(3, 0).rows.shape == (6, 3, 9)
    problem = arm(3, 0)
    assert problem.dim == 2
    assert problem.m == problem.n == 3
    assert not (problem.mass == np.diag(np.diag(problem.mass))).all()


def test_one_link_is_a_pendulum():
    """m l² / 3 about its end; the tip moves at l times the rate, across the link."""
    problem = arm(1, 0)
    assert problem.mass[0, 0] == pytest.approx(0.25 / 3.0)
    assert np.hypot(problem.normal[0, 0], problem.tangent[0, 0, 0]) == pytest.approx(0.5)


def test_rods_of_painleve():
    """Forces: A p_n = m g; A turns negative beyond mu = 4/3 at the worst angle."""
    for angle, mu in ((0.8, 0.5), (0.8, 3.0), (1.1, 2.0)):
        problem = painleve_forces(angle, mu)
        n, t = problem.normal[0], problem.tangent[0, 0]
        response = n @ np.linalg.solve(problem.mass, n - mu * problem.slip[0, 0] * t)
        assert response == pytest.approx(1.0 + 3.0 * np.cos(angle) * (np.cos(angle) - mu * np.sin(angle)))
        assert n @ problem.velocity == pytest.approx(-9.81)
    angles = np.linspace(0.01, 1.56, 2000)
    least = (1.0 + 3.0 * np.cos(angles) ** 2) / (3.0 * np.sin(angles) * np.cos(angles))
    assert least.min() == pytest.approx(4.0 / 3.0, rel=1e-4)
    assert painleve_rod(0).n == 2


def test_friction_is_replaced():
    problem = stack(2, 0)
    assert (with_friction(problem, 0.0).friction == 0.0).all()
    assert set(mixed_friction(plate(8, 0), 0).friction) == {0.0, 0.1, 0.5, 1.0, 10.0, 100.0}
    assert not with_friction(problem, 1.0).friction.flags.writeable
    with pytest.raises(InvalidProblem, match=r"friction must not be negative, but friction\[0\] = -1"):
        with_friction(problem, -1.0)


def test_published_problems():
    problems = contact_classics()
    assert len(problems) == 31
    assert sorted(problem.n for problem in problems.values())[-1] == 256
    assert problems["FC2D_SliderCrankLagrangian00000"].dim == 2
    assert problems["Box_Stacks-i0122-82-5"].mass.shape == (75, 6, 6)
    for problem in problems.values():
        white = problem.whitened
        assert np.isfinite(white.rows).all()
        assert white.tau > 0.0


def test_contact_sets_of_lloyd():
    sets = lloyd_contact_sets()
    assert [problem.n for problem in sets.values()] == [1, 1, 1, 1, 2, 2, 2, 2, 2, 4, 4, 4, 4, 8, 16, 16]
    assert sets["lloyd-01"].velocity.tolist() == [1.0, -1.0, 0.0, 0.0, 0.0, 0.0]
    assert sets["lloyd-09"].normal[1].tolist() == pytest.approx([0.5**0.5, 0.5**0.5, 0.0, 0.0, 0.0, -1.5 * 0.5**0.5])
    np.testing.assert_array_equal(sets["lloyd-15"].rows, sets["lloyd-16"].rows)
    assert sets["lloyd-16"].velocity[0] == 0.1
