"""ConeNewton on the circular cone, judged from problem and impulse alone."""

from __future__ import annotations

import numpy as np
import pytest
from numba.core.runtime import _nrt_python, rtsys

import stiction as st
import stiction.solvers.contact.cone_newton.cone_newton as module
from stiction.arrays.calls import kinds_of
from stiction.arrays.compiled import workspace
from stiction.arrays.vectors import ZEROS
from stiction.problems.contact import ContactProblem
from stiction.problems.zoo.contact_classics import contact_classics
from stiction.problems.zoo.contact_families import (
    CONTACT_FAMILIES,
    arch,
    heap,
    lengths_stack,
    peg,
    stack,
    with_friction,
)
from stiction.solutions.status import Status
from stiction.solvers.contact.cone_newton.cone_newton import ConeNewton
from stiction.solvers.contact.cone_newton.tolerances import MANY
from turning import with_turning

PUBLISHED = [name for name, problem in contact_classics().items() if problem.n < 200]
# Light blocks bear 1e5 times what would stop them: that much of the digits is lost to rounding.
LOADED = ("stack-lengths", "stack-mass-1e6")


@pytest.mark.parametrize("directions", [3, 6])
def test_it_is_compiled_ahead_for_what_it_is_called_with(directions, monkeypatch):
    """Steps begin to compile it in another process; for other arguments that would be in vain."""
    called = []
    monkeypatch.setattr(module, "cone_newton", lambda *given: called.append(kinds_of(given)) or (1, 0, 1.0))
    problem = stack(2, 0) if directions == 3 else with_turning(stack(2, 0), (0.01, 0.001, 0.001))
    ConeNewton().propose(problem, None)
    assert set(called) == {kinds_of(module.sample(ZEROS[directions]))}


def delassus_of(problem):
    """W and q of u = W p + q, by plain matrices."""
    if problem.delassus is not None:
        return problem.delassus, problem.offset
    m, at = problem.m, 0
    mass = np.zeros((m, m))
    for block in problem.mass_blocks:
        mass[at : at + len(block), at : at + len(block)] = block
        at += len(block)
    inverse, velocity = np.linalg.inv(mass), problem.velocity
    J = problem.joints
    if len(J):
        response = np.linalg.pinv(J @ inverse @ J.T, rcond=1e-12)
        velocity = velocity - inverse @ J.T @ response @ (J @ velocity + problem.joint_rate)
        inverse = inverse - inverse @ J.T @ response @ J @ inverse
    rows = problem.dense_rows().reshape(-1, m)
    q = rows @ velocity
    q[::3] += problem.gap_rate
    return rows @ inverse @ rows.T, q


def residual(problem, p):
    """The largest violation of non-penetration, complementarity, cone and dissipation, over the velocity scale."""
    if problem.n == 0:
        return 0.0
    W, q = delassus_of(problem)
    u, mu = (W @ p.ravel() + q).reshape(-1, 3), problem.friction
    w = W.diagonal().reshape(-1, 3).mean(axis=1)
    radius, length = mu * np.maximum(p[:, 0], 0.0), np.hypot(p[:, 1], p[:, 2])
    aim = p[:, 1:] - u[:, 1:] / w[:, None]
    reach = np.maximum(np.hypot(aim[:, 0], aim[:, 1]), 1e-300)
    aim = aim * np.minimum(1.0, radius / reach)[:, None]
    worst = np.max(
        [
            np.maximum(0.0, -u[:, 0]),
            np.abs(np.minimum(u[:, 0], w * p[:, 0])),
            w * np.maximum(0.0, length - radius),
            w * np.linalg.norm(p[:, 1:] - aim, axis=1),
        ]
    )
    return worst / (np.abs(q).max() or 1.0)


def box_on_ground(friction, push=(0.0, 0.0, 0.0), copies=1, size=1.0):
    """A unit box at rest for 0.1 s under gravity and a pushing force, on its four corners."""
    mass = np.diag([1.0, 1.0, 1.0] + [size**2 / 6.0] * 3)
    normal, tangent = [], []
    for x in (-0.5, 0.5):
        for y in (-0.5, 0.5):
            arm = size * np.array([x, y, -0.5])
            rows = [np.append(d, np.cross(arm, d)) for d in np.eye(3)]
            normal.append(rows[2])
            tangent.append(rows[:2])
    velocity = np.zeros(6)
    velocity[:3] = 0.1 * (np.array(push) - [0.0, 0.0, 9.81])
    return ContactProblem(mass, velocity, normal * copies, tangent * copies, friction)


def solved(problem, tolerance=1e-9, start=None):
    proposal = ConeNewton().propose(problem, start)
    assert proposal.status == Status.SOLVED
    assert residual(problem, proposal.impulse) <= tolerance
    return proposal


@pytest.mark.parametrize("name", CONTACT_FAMILIES)
@pytest.mark.parametrize("seed", [2, 3])
def test_every_family(name, seed):
    solved(CONTACT_FAMILIES[name](seed), 1e-8 if name in LOADED else 1e-9)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_problems(name):
    solved(contact_classics()[name], 1e-8)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [1e-6, 1e-4])
def test_gaps_that_do_not_fit_together(size, seed):
    """Four contacts that stick ask twelve velocities of a stone that has six; which give way is a small matter."""
    problem = arch(20, seed)
    gap_rate = size * np.random.default_rng(seed).uniform(size=problem.n)
    solved(problem.replace(gap_rate=gap_rate), 1e-8)


def test_a_box_bears_its_weight():
    impulse = solved(box_on_ground(0.5)).impulse
    np.testing.assert_allclose(impulse.sum(axis=0), [0.981, 0.0, 0.0], atol=1e-9)


@pytest.mark.parametrize(("push", "slides"), [(0.49, False), (0.51, True)])
def test_a_box_slides_when_pushed_beyond_its_friction(push, slides):
    problem = box_on_ground(0.5, push=(0.6 * push * 9.81, 0.8 * push * 9.81, 0.0))
    impulse = solved(problem).impulse
    friction = np.hypot(*impulse[:, 1:].sum(axis=0))
    assert friction == pytest.approx(0.981 * min(push, 0.5), rel=1e-8)
    assert slides == (np.abs(impulse[:, 1:].sum(axis=0)) < 0.981 * push * np.array([0.6, 0.8]) - 1e-6).all()


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_lengths_do_not_matter(size):
    problem = box_on_ground(0.5, push=(3.0, 4.0, 1.0), size=size)
    np.testing.assert_allclose(solved(problem).impulse.sum(axis=0)[0], 0.881, rtol=1e-8)


def test_no_contacts():
    problem = ContactProblem(np.eye(6), np.zeros(6), np.zeros((0, 6)), np.zeros((0, 2, 6)), np.zeros(0))
    proposal = ConeNewton().propose(problem, None)
    assert proposal.status == Status.SOLVED
    assert proposal.impulse.shape == (0, 3)


@pytest.mark.parametrize("friction", [0.0, 1e-3, 10.0, 1e3])
def test_extreme_friction(friction):
    for seed in range(5):
        solved(with_friction(heap(3, seed), friction))
        solved(with_friction(peg(16, seed), friction))


def test_duplicated_contacts_share_the_load():
    once, often = (solved(box_on_ground(0.3, push=(4.0, 1.0, 0.0), copies=k)).impulse for k in (1, 5))
    np.testing.assert_allclose(often.sum(axis=0), once.sum(axis=0), atol=1e-9)


def test_one_tangent_only():
    problem = stack(2, 1)
    plane = ContactProblem(
        np.kron(np.eye(2), np.eye(6)), problem.velocity, problem.normal, problem.tangent[:, :1], problem.friction
    )
    assert plane.dim == 2
    assert (solved(plane).impulse[:, 2] == 0.0).all()


def test_an_unsymmetric_delassus_matrix():
    problem = heap(3, 1)
    W, q = delassus_of(problem)
    skew = np.random.default_rng(0).uniform(-1e-5, 1e-5, W.shape) * np.abs(W).max()
    solved(ContactProblem.from_delassus(W + skew - skew.T, q, problem.friction))


def test_where_nothing_moves_there_is_no_answer():
    problem = ContactProblem.from_delassus(np.zeros((3, 3)), [-1.0, 0.0, 0.0], [0.5])
    proposal = ConeNewton().propose(problem, None)
    assert proposal.status == Status.MAX_ITERATIONS
    assert np.isfinite(proposal.impulse).all()


def test_a_light_block_under_heavy_ones_needs_its_contacts_scaled_by_their_load():
    assert sum(ConeNewton().propose(lengths_stack(4, seed), None).status == Status.SOLVED for seed in range(2, 12)) >= 9


def test_the_answer_is_a_start_from_which_nothing_is_left_to_do():
    problem = stack(5, 1)
    assert solved(problem, start=solved(problem).impulse).iterations == 0


def test_a_start_near_the_answer_saves_steps():
    cold = near = 0
    for seed in range(5):
        problem = heap(6, seed)
        first = solved(problem)
        cold += first.iterations
        near += solved(problem, start=first.impulse * 1.001).iterations
    assert near < 0.5 * cold


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200, -1.0])
def test_a_bad_start_does_no_harm(value):
    problem = stack(2, 1)
    solved(problem, start=np.full((problem.n, 3), value))


def test_the_same_problem_gives_the_same_bytes_whatever_the_workspace_held():
    problem = heap(6, 13)
    answers = set()
    for fill in (0.0, np.nan, 1e300):
        work = workspace(10**5, 10**4)
        work.floats[:], work.ints[:] = fill, -1
        answers.add(ConeNewton().propose(problem, None).impulse.tobytes())
    assert len(answers) == 1


def test_the_problem_is_left_as_it_was():
    problem = lengths_stack(4, 1)
    before = [np.array(field) for field in problem.whitened[:-1]]
    ConeNewton().propose(problem, np.ones((problem.n, 3)))
    for field, copy in zip(problem.whitened[:-1], before, strict=True):
        np.testing.assert_array_equal(field, copy)


def test_the_kernel_allocates_nothing():
    problem = heap(6, 13)
    ConeNewton().propose(problem, None)
    _nrt_python.memsys_enable_stats()
    before = rtsys.get_allocation_stats().alloc
    ConeNewton().propose(problem, None)
    assert rtsys.get_allocation_stats().alloc == before


def test_the_last_digits_are_not_asked_of_what_has_stalled():
    # Heaps whose gaps do not fit: Newton's method alone does not do, and ends at a hundred tolerances after that.
    for seed in range(4):
        problem = heap(20, seed)
        exact, quick = (ConeNewton(tolerance=tolerance).propose(problem, None) for tolerance in (1e-12, 1e-10))
        assert {exact.status, quick.status} == {Status.SOLVED}
        assert quick.iterations <= exact.iterations
        assert residual(problem, exact.impulse) <= 1e-10
        assert residual(problem, quick.impulse) <= 1e-9


def test_too_few_cycles_are_admitted():
    proposal = ConeNewton(max_cycles=1, max_steps=1).propose(heap(6, 1), None)
    assert proposal.status == Status.MAX_ITERATIONS


def test_a_tall_stack_by_blocks_of_bodies():
    problem = stack(40, 1)
    impulse = solved(problem).impulse
    assert problem.m == 240
    np.testing.assert_allclose(impulse[:4, 0].sum() - 40 * 9.81, impulse[-4:, 0].sum() - 9.81, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CONTACT_FAMILIES if name not in LOADED])
def test_hundred_of_every_family(name):
    violations = [residual(p, ConeNewton().propose(p, None).impulse) for p in map(CONTACT_FAMILIES[name], range(100))]
    assert sum(not violation <= 1e-8 for violation in violations) <= 1


@pytest.mark.slow
def test_a_wedged_heap_of_300_bodies_is_certified():
    # Friction locks in it: without `proximal.loosen` no walk comes further than 2e-5.
    solution = st.solve(heap(300, 1))
    assert solution.certificate.residual <= 1e-8
    assert len(solution.trace) == 1


# Their first solve reaches its aim whatever the last digits of the data; with 60 bodies these decide whether it stalls
# before, where a hundred times as much is accepted.
@pytest.mark.parametrize("seed", [2, 7, 9])
def test_from_a_start_a_large_island_is_solved_to_a_part_of_what_changes(seed):
    problem = heap(40, seed)
    assert problem.n > MANY
    cold = st.solve(problem)
    assert cold.certificate.residual <= 1e-12
    moved = st.solve(problem.replace(velocity=1.01 * problem.velocity), start=cold.impulse)
    assert moved.certificate.residual <= 0.1 * 1e-8
    assert moved.iterations < cold.iterations / 10
    # What rests keeps its impulses.
    assert np.array_equal(st.solve(problem, start=cold.impulse).impulse, cold.impulse)
