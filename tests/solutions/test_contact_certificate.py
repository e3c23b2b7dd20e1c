"""The judge of contact: physics known by hand passes, and every kind of wrong answer is caught."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import stiction as st
from stiction.arrays.vectors import THREE
from stiction.problems.laws import KINDS, LawNumbers
from stiction.problems.zoo.contact_families import chain, incline, motor, stack
from stiction.solutions.contact_laws import onto_polygon, tangential

G, DT = 9.81, 0.01


def answer(problem, impulse):
    velocity, joint_impulse = problem.respond(np.asarray(impulse, float))
    return SimpleNamespace(impulse=np.asarray(impulse, float), velocity=velocity, joint_impulse=joint_impulse)


def resting(mu, angle=0.0):
    """A block of 1 kg on a slope: normal impulses by hand, friction what holds it, or mu times that."""
    problem = incline(0, angle=angle, friction=mu)
    normal, along = G * DT * np.cos(angle) / 4, G * DT * np.sin(angle) / 4
    return problem, normal, min(along, mu * normal)


def downhill(problem):
    """The tangent coordinates of the direction that gravity pulls in."""
    free = problem.tangent @ problem.velocity
    size = np.linalg.norm(free, axis=1, keepdims=True)
    return np.divide(free, size, out=np.zeros_like(free), where=size > 0)


def by_hand(mu, angle):
    """The lever arm of friction tilts the load: the impulses of the lower pair carry more."""
    problem, normal, friction = resting(mu, angle)
    # Moments about the centre: friction at depth 0.1 m below it is balanced by normals 0.2 m apart from it.
    shift = friction * 0.1 / 0.2
    x = np.array([touch[0] for touch in problem.rows[:, 0, 4:5]])  # the y-torque of a unit normal, -x
    lower = np.sign(-x)
    share = normal + lower * shift
    impulse = np.zeros((4, 3))
    impulse[:, 0] = share
    impulse[:, 1:] = -downhill(problem) * (friction if friction < mu * normal else mu * share[:, None])
    return problem, impulse


def test_a_block_at_rest_is_certified():
    problem, impulse = by_hand(0.5, 0.2)
    certificate = st.certify(problem, answer(problem, impulse))
    assert certificate.residual <= 1e-14
    assert certificate.scale == pytest.approx(np.abs(problem.dense_rows() @ problem.velocity).max())


def test_a_sliding_block_is_certified():
    problem, impulse = by_hand(0.2, 0.6)
    found = answer(problem, impulse)
    assert st.certify(problem, found).residual <= 1e-14
    # a = g (sin - mu cos)
    assert np.linalg.norm(found.velocity[:3]) == pytest.approx(G * DT * (np.sin(0.6) - 0.2 * np.cos(0.6)))


@pytest.mark.parametrize(
    ("part", "change"),
    [
        ("penetration", lambda p: p * 0.9),
        ("complementarity", lambda p: p * 1.1),
        ("cone", lambda p: p * [1.0, 1.5, 1.5]),
        ("dissipation", lambda p: p * [1.0, 0.5, 0.5]),
        ("dissipation", lambda p: p * [1.0, -1.0, -1.0]),
    ],
)
def test_wrong_impulses_are_caught_in_the_right_part(part, change):
    problem, impulse = by_hand(0.2, 0.6)
    certificate = st.certify(problem, answer(problem, change(impulse)))
    assert certificate.residual > 1e-3
    assert getattr(certificate, part) > 1e-3 * certificate.scale
    assert 0 <= certificate.contact < 4


def test_pulling_is_caught():
    problem, impulse = by_hand(0.5, 0.2)
    assert st.certify(problem, answer(problem, -impulse)).residual > 0.1


def test_momentum_out_of_nowhere_is_caught():
    problem, impulse = by_hand(0.5, 0.2)
    found = answer(problem, impulse)
    found.velocity = found.velocity + 1e-6
    assert st.certify(problem, found).momentum == pytest.approx(1e-6, rel=1.0)


def test_a_broken_joint_is_caught():
    problem = chain(3, 0)
    found = answer(problem, np.zeros((problem.n, 3)))
    assert st.certify(problem, found).joint <= 1e-12
    assert st.certify(problem, found).momentum <= 1e-12
    found.velocity = problem.velocity
    found.joint_impulse = np.zeros_like(found.joint_impulse)
    broken = st.certify(problem, found)
    assert broken.joint > 1e-3
    assert broken.residual >= broken.joint / broken.scale


def test_driven_joints_keep_their_rate():
    problem = motor(0)
    found = answer(problem, np.zeros((problem.n, 3)))
    assert np.abs(problem.joints @ found.velocity + problem.joint_rate).max() <= 1e-12


@pytest.mark.parametrize("field", ["impulse", "velocity"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_a_number_fails(field, value):
    problem, impulse = by_hand(0.5, 0.2)
    found = answer(problem, impulse)
    getattr(found, field).flat[0] = value
    assert not st.certify(problem, found).passes(1e300)


def test_shapes_are_checked():
    problem, impulse = by_hand(0.5, 0.2)
    found = answer(problem, impulse)
    found.impulse = impulse[:3]
    with pytest.raises(st.InvalidProblem, match=r"impulse must have shape \(4, 3\).*got \(3, 3\)"):
        st.certify(problem, found)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("mass", [1e-6, 1.0, 1e6])
def test_units_do_not_matter(unit, mass):
    problem, impulse = by_hand(0.2, 0.6)
    # lengths in other units: velocities (and the translational part) scale, angles do not
    scale = np.array([unit] * 3 + [1.0] * 3)
    other = st.ContactProblem(
        mass * problem.mass[0] / np.outer(scale, scale), problem.velocity * scale, unit * problem.normal / scale,
        unit * problem.tangent / scale, problem.friction,
    )  # fmt: skip
    worse = impulse * [1.0, 0.9, 1.1]
    here = st.certify(problem, answer(problem, worse))
    there = st.certify(other, answer(other, worse * mass / unit))
    assert there.residual == pytest.approx(here.residual, rel=1e-9)


def test_the_polygon():
    rng = np.random.default_rng(0)
    for facets in (3, 4, 5, 8, 16):
        for rotation in (0.0, 0.3, -2.0):
            corners = rotation + 2.0 * np.pi * np.arange(facets) / facets
            vertices = 2.0 * np.column_stack([np.cos(corners), np.sin(corners)])
            weights = rng.dirichlet(np.full(facets, 0.3), 400)
            inside = weights @ vertices
            for y in rng.normal(0.0, 3.0, (40, 2)):
                nearest = np.array(onto_polygon(y[0], y[1], 2.0, facets, rotation))
                # The variational inequality of a projection: (y - nearest) · (x - nearest) <= 0 for all x inside.
                assert ((inside - nearest) @ (y - nearest)).max() <= 1e-12
            for x in inside[:20]:
                assert onto_polygon(x[0], x[1], 2.0, facets, rotation) == pytest.approx(tuple(x), abs=1e-12)


@pytest.mark.parametrize("law", [st.Frictionless(), st.NoSlip(), st.Viscous(), st.Viscous(implicit=True)])
def test_laws_without_a_cone(law):
    problem = stack(3, 1).with_law(law)
    solution = st.solve(problem, st.PrincipalPivot())
    assert solution.certificate.residual <= 1e-12
    wrong = SimpleNamespace(**solution._asdict())
    wrong.impulse = solution.impulse + np.array([0.0, 1e-3, 0.0])
    wrong.velocity, wrong.joint_impulse = problem.respond(wrong.impulse)
    assert st.certify(problem, wrong).residual > 1e-6


def test_no_slip_holds_where_coulomb_would_slide():
    problem = incline(0, angle=0.6, friction=0.1).with_law(st.NoSlip())
    solution = st.solve(problem, st.PrincipalPivot())
    assert np.abs(solution.velocity).max() <= 1e-15
    assert (solution.mode == st.Mode.STICK).all()


def test_no_slip_lets_open_contacts_go():
    problem = stack(2, 0)
    thrown = st.ContactProblem(
        np.kron(np.eye(2), problem.mass[0]), [1.0, 0, 2.0, 0, 0, 0, 1.0, 0, 2.0, 0, 0, 0], problem.normal,
        problem.tangent, problem.friction, law=st.NoSlip(),
    )  # fmt: skip
    solution = st.solve(thrown, st.PrincipalPivot())
    assert solution.velocity == pytest.approx(thrown.velocity)
    assert not solution.impulse.any()
    assert (solution.mode[:4] == st.Mode.OPEN).all()


def test_viscous_friction_slows_by_its_coefficient():
    problem = incline(0, angle=0.3, friction=0.0)
    sticky = st.ContactProblem(
        problem.mass[0], problem.velocity, problem.normal, problem.tangent, problem.friction, viscosity=1e3,
        law=st.Viscous(implicit=True),
    )  # fmt: skip
    solution = st.solve(sticky, st.PrincipalPivot())
    sliding = np.linalg.norm(solution.contact_velocity[:, 1:], axis=1)
    assert np.linalg.norm(solution.impulse[:, 1:], axis=1) == pytest.approx(1e3 * sliding)
    assert np.linalg.norm(solution.velocity[:3]) == pytest.approx(G * DT * np.sin(0.3) / (1.0 + 4e3), rel=1e-2)


def test_no_contacts_is_ordinary():
    problem = st.ContactProblem(np.eye(2), [1.0, 2.0], np.zeros((0, 2)), np.zeros((0, 2, 2)), [])
    for law in (st.Frictionless(), st.NoSlip()):
        solution = st.solve(problem.with_law(law), st.PrincipalPivot())
        assert solution.velocity == pytest.approx([1.0, 2.0])
        assert solution.certificate.residual == 0.0


def test_a_law_that_the_judge_does_not_know_is_never_certified():
    """Else a new law whose case is forgotten would be judged as another."""
    as_written = getattr(tangential, "py_func", tangential)
    at_rest = as_written(LawNumbers(len(KINDS)), None, 1.0, 1.0, THREE, THREE)
    assert at_rest == (np.inf, np.inf)
