"""The normal form says the same as the problem, in all three forms: same W, same q, same joints."""

import numpy as np
import pytest

from stiction.errors import InvalidProblem
from stiction.problems.contact import ContactProblem, densified, from_fields
from stiction.problems.response import response
from stiction.problems.zoo.contact_families import CONTACT_FAMILIES, chain, heap, motor, stack
from stiction.problems.zoo.rigid_bodies import Touch, block, posed


def mass_of(problem):
    if problem.mass.ndim == 2:
        return problem.mass
    whole = np.zeros((problem.m, problem.m))
    for b, part in enumerate(problem.mass):
        whole[6 * b : 6 * b + 6, 6 * b : 6 * b + 6] = part
    return whole


def operator(problem):
    """W and q from the problem itself, joints eliminated by the textbook."""
    if problem.mass is None:
        return 0.5 * (problem.delassus + problem.delassus.T), problem.offset
    J, M = problem.joints, mass_of(problem)
    H = problem.dense_rows().reshape(3 * problem.n, problem.m)
    inverse = np.linalg.inv(M)
    # pinv of an orthonormal basis of the rows, so that redundant ones do no harm
    basis, sizes, _ = np.linalg.svd(J @ inverse @ J.T) if len(J) else (np.zeros((0, 0)), np.zeros(0), None)
    rank = int((sizes > 1e-12 * sizes.max(initial=1e-300)).sum())
    keep = basis[:, :rank]
    K = keep.T @ J
    project = inverse - inverse @ K.T @ np.linalg.solve(K @ inverse @ K.T, K @ inverse) if rank else inverse
    free = problem.velocity
    if rank:
        shift = np.linalg.solve(K @ inverse @ K.T, K @ free + keep.T @ problem.joint_rate)
        free = free - inverse @ K.T @ shift
    q = H @ free
    q[0::3] += problem.gap_rate
    return H @ project @ H.T, q


def whitened_operator(problem):
    """W and q in the problem's units, from its normal form."""
    white = problem.whitened
    dense = densified(white.rows, white.segments, len(white.free))
    L = (dense / white.scale[:, None, None]).reshape(3 * problem.n, len(white.free))
    bias = (white.bias / white.scale[:, None]).ravel()
    return L @ L.T, white.tau * (L @ white.free + bias)


def close(a, b, tolerance=1e-12):
    size = np.abs(b).max(initial=0.0)
    assert np.abs(a - b).max(initial=0.0) <= tolerance * size + 1e-300


@pytest.mark.parametrize("name", CONTACT_FAMILIES)
def test_the_operator_is_that_of_the_problem(name):
    problem = CONTACT_FAMILIES[name](3)
    for got, wanted in zip(whitened_operator(problem), operator(problem), strict=True):
        close(got, wanted, 1e-11)


@pytest.mark.parametrize("name", CONTACT_FAMILIES)
def test_contacts_have_unit_size_and_free_velocities_at_most_one(name):
    problem = CONTACT_FAMILIES[name](5)
    white = problem.whitened
    np.testing.assert_allclose((white.rows**2).sum(axis=(1, 2)), 3.0, rtol=1e-12)
    dense = densified(white.rows, white.segments, len(white.free))
    assert np.abs(dense @ white.free + white.bias).max() == pytest.approx(1.0, rel=1e-12)
    assert white.friction is problem.friction


@pytest.mark.parametrize("name", ["heap-3", "chain", "motor", "stack-mass-1e6", "plate-gaps"])
def test_forms_agree(name):
    bodies = CONTACT_FAMILIES[name](1)
    dense = ContactProblem(
        mass_of(bodies), bodies.velocity, bodies.normal, bodies.tangent, bodies.friction,
        gap_rate=bodies.gap_rate, joints=bodies.joints, joint_rate=bodies.joint_rate,
    )  # fmt: skip
    W, q = operator(bodies)
    delassus = ContactProblem.from_delassus(0.5 * (W + W.T), q, bodies.friction)
    for other in (dense, delassus):
        for got, wanted in zip(whitened_operator(other), whitened_operator(bodies), strict=True):
            close(got, wanted, 1e-11)
    np.testing.assert_allclose(delassus.whitened.scale, bodies.whitened.scale, rtol=1e-9)
    # With W alone gaps and approach cannot be told apart, so that the scales differ, by little.
    assert 0.3 <= delassus.whitened.tau / bodies.whitened.tau <= 3.0


@pytest.mark.parametrize("name", CONTACT_FAMILIES)
def test_response_obeys_momentum_and_joints(name):
    problem = CONTACT_FAMILIES[name](2)
    if problem.mass is None:
        assert response(problem, np.ones((problem.n, 3)))[0].shape == (0,)
        return
    impulse = np.random.default_rng(0).normal(size=(problem.n, 3)) * problem.whitened.scale[:, None]
    if problem.dim == 2:
        impulse[:, 2] = 0.0
    velocity, joint_impulse = response(problem, impulse)
    H = problem.dense_rows().reshape(3 * problem.n, problem.m)
    pushed = H.T @ impulse.ravel() + problem.joints.T @ joint_impulse
    size = np.abs(mass_of(problem)) @ np.abs(velocity) + np.abs(H).T @ np.abs(impulse.ravel())
    assert (np.abs(mass_of(problem) @ (velocity - problem.velocity) - pushed) <= 1e-9 * size.max()).all()
    moved = np.abs(problem.joints) @ np.abs(velocity) + np.abs(problem.joint_rate)
    assert np.abs(problem.joints @ velocity + problem.joint_rate).max(initial=0.0) <= 1e-12 * moved.max(initial=1.0)


@pytest.mark.parametrize("name", ["heap-6", "plane-arm", "stack-mass-1e6"])
def test_without_impulses_the_velocity_comes_back(name):
    problem = CONTACT_FAMILIES[name](0)
    np.testing.assert_allclose(response(problem, np.zeros((problem.n, 3)))[0], problem.velocity, rtol=1e-12, atol=1e-14)


def test_impulses_change_scales_and_back():
    problem = heap(3, 0)
    impulse = np.random.default_rng(0).normal(size=(problem.n, 3))
    white = problem.whitened
    np.testing.assert_allclose(white.impulse(white.scaled(impulse)), impulse, rtol=1e-15)
    # u = L x + b in units of tau and of the contact's size
    dense = densified(white.rows, white.segments, problem.m)
    x = white.free + np.einsum("ncm,nc->m", dense, white.scaled(impulse))
    u = np.einsum("ncm,m->nc", problem.dense_rows(), response(problem, impulse)[0])
    u[:, 0] += problem.gap_rate
    np.testing.assert_allclose((dense @ x + white.bias) * white.tau / white.scale[:, None], u, atol=1e-11)


@pytest.mark.parametrize("hinged", [False, True])
def test_joints_are_orthonormal_and_redundant_ones_found(hinged):
    problem = chain(4, 1, hinged=hinged)
    white = problem.whitened
    assert len(white.kept) == np.linalg.matrix_rank(problem.joints) == (20 if hinged else 12)
    assert (np.diff(white.kept) > 0).all()
    close(white.joints @ white.joints.T, np.eye(len(white.kept)), 1e-13)
    G = np.linalg.cholesky(mass_of(problem)[::-1, ::-1])[::-1, ::-1]  # upper triangular, M = G Gᵀ
    close(white.triangle @ white.joints, np.linalg.solve(G, problem.joints[white.kept].T).T, 1e-12)
    assert not np.triu(white.triangle, 1).any()
    dense = densified(white.rows, white.segments, problem.m)
    assert np.abs(dense @ white.joints.T).max() <= 1e-12


def test_driven_joints_move_the_contacts():
    problem = motor(3)
    velocity, _ = response(problem, np.zeros((problem.n, 3)))
    np.testing.assert_allclose(problem.joints @ velocity + problem.joint_rate, 0.0, atol=1e-13)
    assert abs(velocity[4]) > 1.0
    u = problem.dense_rows()[4] @ velocity
    close(whitened_operator(problem)[1][12:], u, 1e-12)
    assert np.abs(u).max() == pytest.approx(0.3 * abs(velocity[4]))


def test_what_joints_hold_entirely_is_no_contact():
    """Rounding errors of a projected row are not blown up to unit size, nor do they set the velocity scale."""
    still, loose = block((1.0, 1.0, 1.0), (0.1, 0.2, 0.5), 3.0), block((1.0, 1.0, 1.0), (0.3, 0.1, 1.5), 0.7)
    touches = [Touch((x, y, 0.0), (0.1, 0.2, 1.0), -1, 0) for x in (0.0, 0.3) for y in (0.0, 0.7)]
    touches.append(Touch((0.2, 0.2, 1.0), (0.0, 0.0, 1.0), 0, 1))
    turned = np.linalg.qr(np.random.default_rng(0).normal(size=(6, 6)))[0]
    joints = np.hstack([turned, np.zeros((6, 6))])
    problem = posed(
        [still, loose],
        touches,
        [0.0, 0.0, -9.81, 0.0, 0.0, 0.0],
        0.5,
        joints=joints,
        gap_rate=[0.1, 0.1, 0.1, 0.1, 0.0],
    )
    white = problem.whitened
    assert not white.rows[:4].any()
    free = posed([still, loose], touches, [0.0, 0.0, -9.81, 0.0, 0.0, 0.0], 0.5)
    np.testing.assert_allclose(white.scale[:4], free.whitened.scale[:4])  # the size that it would have without them
    assert white.tau < 20.0
    assert (white.rows[4] ** 2).sum() == pytest.approx(3.0)


def test_small_contacts_survive_beside_heavy_ones_in_delassus_form():
    light, heavy = np.diag([1e-12, 1e-12, 1e-12]), np.diag([1e6, 1e6, 1e6])
    W = np.block([[light, np.zeros((3, 3))], [np.zeros((3, 3)), heavy]])
    problem = ContactProblem.from_delassus(W, [-1e-9, 0, 0, -1.0, 0, 0], 0.5)
    got, _ = whitened_operator(problem)
    np.testing.assert_allclose(np.diag(got), np.diag(W), rtol=1e-12)


def test_contacts_of_no_effect_keep_their_place():
    problem = ContactProblem(np.eye(2), [0.0, 1.0], [[0.0, 0.0], [0.0, 1.0]], np.zeros((2, 2, 2)), 0.0)
    white = problem.whitened
    assert white.scale[0] == 1.0
    assert not white.rows[0].any()


def test_nothing_moves_nothing():
    problem = stack(2, 0)
    still = ContactProblem(mass_of(problem), np.zeros(12), problem.normal, problem.tangent, problem.friction)
    assert still.whitened.tau == 1.0
    assert not still.whitened.free.any()


@pytest.mark.parametrize("bodies", [False, True])
def test_joints_without_contacts(bodies):
    problem = chain(2, 0)
    if bodies:
        alone = ContactProblem.from_bodies(
            problem.mass, problem.velocity, [], [], [], [], joints=problem.joints, joint_rate=np.arange(6.0)
        )
    else:
        alone = ContactProblem(
            mass_of(problem), problem.velocity, [], [], [], joints=problem.joints, joint_rate=np.arange(6.0)
        )
    velocity, impulse = response(alone, np.zeros((0, 3)))
    np.testing.assert_allclose(problem.joints @ velocity, -np.arange(6.0), atol=1e-12)
    np.testing.assert_allclose(mass_of(problem) @ (velocity - problem.velocity), problem.joints.T @ impulse, atol=1e-12)


def test_a_mass_that_is_singular_to_rounding_is_refused():
    """What passed construction, by the width of a rounding error, is still refused by name."""
    problem = stack(1, 0)
    broken = from_fields({**vars(problem), "mass": np.ones((1, 6, 6))})
    with pytest.raises(InvalidProblem, match="mass must be positive definite; it is not from row 4 on"):
        broken.whitened  # noqa: B018
