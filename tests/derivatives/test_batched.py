"""Solves and gradients as `stiction.torch` and `stiction.jax` use them, and both where they are installed."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import stiction as st
from stiction.derivatives import batched

EYE = np.eye(3)
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed")
needs_jax = pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")


def point():
    return st.ContactProblem(EYE, [3.0, 4.0, -2.0], EYE[2:], EYE[None, :2], [0.5])


def two_points():
    """Two that slide apart, so that nothing is redundant."""
    mass, rows = np.diag([1.0, 1.0, 1.0, 2.0, 2.0, 2.0]), np.eye(6)
    return st.ContactProblem(
        mass, [3.0, 4.0, -2.0, -1.0, 2.0, -1.5], rows[[2, 5]], np.stack([rows[:2], rows[3:5]]), [0.5, 0.3]
    )


def test_a_batch_is_its_members():
    problem = two_points()
    free = np.array([problem.velocity, 1.1 * problem.velocity, 0.9 * problem.velocity])
    velocity, impulse, solutions = batched.solve_contacts(
        problem, {"free": free, "friction": np.array([0.5, 0.3])}, None, 1e-8
    )
    assert velocity.shape == (3, 6)
    assert impulse.shape == (3, 2, 3)
    for k in range(3):
        alone = st.solve(problem.replace(velocity=free[k]))
        assert velocity[k] == pytest.approx(alone.velocity)
    by = np.ones((3, 6)), np.zeros((3, 2, 3))
    found = batched.contact_gradients(solutions, *by, {"free": (3, 6), "friction": (2,)}, True)
    parts = [st.differentiate(each).vjp(np.ones(6)) for each in solutions]
    assert found["free"] == pytest.approx(np.array([part.free for part in parts]))
    assert found["friction"] == pytest.approx(sum(part.friction for part in parts))  # shared by all of them


def test_a_batch_is_one_call_of_solve_many(monkeypatch):
    """Whatever varies; with a solver of the caller's own, members are solved by it."""
    problem, calls = two_points(), []
    many = batched.solve_many
    monkeypatch.setattr(batched, "solve_many", lambda *a, **k: calls.append(k) or many(*a, **k))
    monkeypatch.setattr(batched, "solve", lambda *_a, **_k: pytest.fail("one by one"))
    free = np.array([problem.velocity, 1.1 * problem.velocity, 0.9 * problem.velocity])
    mass = np.array([problem.mass, 2.0 * problem.mass, 3.0 * problem.mass])
    both = [
        batched.solve_contacts(problem, data, None, 1e-8)
        for data in ({"free": free, "friction": np.array([0.4, 0.3])}, {"free": free, "mass": mass})
    ]
    assert [sorted(each) for each in calls] == [["friction", "tolerance", "velocity"], ["tolerance"]]
    monkeypatch.undo()
    for (velocity, impulse, solutions), changed in zip(both, ({"friction": [0.4, 0.3]}, {}), strict=True):
        for k, solution in enumerate(solutions):
            assert solution.ok
            assert solution.velocity == pytest.approx(velocity[k], abs=1e-12)
            assert solution.impulse == pytest.approx(impulse[k], abs=1e-12)
            if changed:
                assert velocity[k] == pytest.approx(st.solve(problem.replace(velocity=free[k], **changed)).velocity)
    velocity, _, solutions = batched.solve_contacts(problem, {"free": free}, st.ConeNewton(), 1e-8)
    assert [type(each.solver).__name__ for each in solutions] == ["ConeNewton"] * 3
    assert batched.solve_contacts(problem, {"free": free[:0]}, None, 1e-8)[0].shape == (0, 6)


def test_a_member_that_is_not_solved_raises():
    problem = two_points()
    with pytest.raises(st.SolveFailed):
        batched.solve_contacts(problem, {"free": np.array([problem.velocity, 2.0 * problem.velocity])}, None, 1e-300)


def test_mass_varies():
    problem = two_points()
    eps = 1e-6
    way = np.diag([0.3, 0.1, 0.2, 0.5, 0.4, 0.6])
    ahead, back = (
        batched.solve_contacts(problem, {"mass": problem.mass + t * way}, None, 1e-8)[0] for t in (eps, -eps)
    )
    solutions = batched.solve_contacts(problem, {"mass": problem.mass}, None, 1e-8)[2]
    by = np.arange(6.0)
    gradient = batched.contact_gradients(solutions, by, np.zeros((2, 3)), {"mass": (6, 6)}, True)["mass"]
    assert (gradient * way).sum() == pytest.approx(by @ (ahead - back) / (2.0 * eps), rel=1e-6)


def test_tasks_are_what_libraries_call():
    """Shapes, answers and gradients by position, as PyTorch and JAX hand arrays over."""
    problem = two_points()
    free, friction = np.array([problem.velocity, 1.1 * problem.velocity]), np.array([0.5, 0.3])
    task = batched.contact_task("here", problem, None, 1e-8, True, {"free": free, "friction": friction})
    shapes = [free.shape, friction.shape]
    (velocity, impulse), solutions = task.answers([free, friction])
    assert task.shapes(shapes) == [velocity.shape, impulse.shape]
    by_free, by_friction = task.gradients(solutions, [np.ones((2, 6)), np.zeros((2, 2, 3))], shapes)
    parts = [st.differentiate(each).vjp(np.ones(6)) for each in solutions]
    assert by_free == pytest.approx(np.array([part.free for part in parts]))
    assert by_friction == pytest.approx(sum(part.friction for part in parts))
    with pytest.raises(st.InvalidProblem, match=r"here: give at least one of free, friction"):
        batched.contact_task("here", problem, None, 1e-8, True, {})
    H, q = np.array([[2.0, 0.5], [0.0, 1.0]]), np.array([[-1.0, -1.0], [-2.0, 1.0]])
    box = batched.BoxTask(0.0, np.inf, None, 1e-8, True)
    (z,), found = box.answers([H, q])
    assert box.shapes([H.shape, q.shape]) == [z.shape]
    by_H, by_q = box.gradients(found, [np.ones((2, 2))], [H.shape, q.shape])
    assert (by_H.shape, by_q.shape) == (H.shape, q.shape)


def test_boxes_in_batches():
    H, q = np.array([[2.0, 0.5], [0.0, 1.0]]), np.array([[-1.0, -1.0], [-2.0, 1.0]])
    z, solutions = batched.solve_boxes(H, q, 0.0, np.inf, None, 1e-8)
    assert z == pytest.approx(np.array([[0.25, 1.0], [1.0, 0.0]]))
    by_H, by_q = batched.box_gradients(solutions, np.ones((2, 2)), (2, 2), (2, 2), True)
    parts = [st.differentiate(each).vjp(np.ones(2)) for each in solutions]
    assert by_q == pytest.approx(np.array([part.q for part in parts]))
    assert by_H == pytest.approx(parts[0].H + parts[1].H)


def test_a_gradient_at_a_kink_warns():
    problem = point().replace(velocity=[0.5, 0.0, -1.0])
    solutions = batched.solve_contacts(problem, {"free": problem.velocity}, None, 1e-8)[2]
    with pytest.warns(st.NotDifferentiableWarning, match="one side: at a kink: contact 0 sticks or slides"):
        batched.contact_gradients(solutions, np.ones(3), np.zeros((1, 3)), {"free": (3,)}, False)
    with pytest.raises(st.NotDifferentiable):
        batched.contact_gradients(solutions, np.ones(3), np.zeros((1, 3)), {"free": (3,)}, True)


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"rows": (3,)}, "'rows' cannot vary; what can is free"),
        ({"free": (4,)}, r"free must have shape \(3,\), or a batch of these.*got \(4,\)"),
        ({"free": (2, 3), "friction": (3, 1)}, "friction is a batch of 3, but others are batches of 2"),
    ],
)
def test_bad_shapes(shapes, message):
    with pytest.raises(st.InvalidProblem, match=message):
        batched.batch_of(point(), shapes)


def test_bad_problems():
    with pytest.raises(st.InvalidProblem, match="Delassus form has no velocities"):
        batched.shapes_of(st.ContactProblem.from_delassus(EYE, [-1.0, 0.0, 0.0], [0.5]))
    with pytest.raises(st.InvalidProblem, match=r"H must be \(n, n\)"):
        batched.solve_boxes(np.ones(2), np.ones(2), 0.0, np.inf, None, 1e-8)
    with pytest.raises(st.InvalidProblem, match="H is a batch of 2, but q is one of 3"):
        batched.solve_boxes(np.ones((2, 1, 1)), np.ones((3, 1)), 0.0, np.inf, None, 1e-8)


@pytest.mark.parametrize("name", ["torch", "jax"])
def test_what_is_missing_names_its_extra(name):
    if importlib.util.find_spec(name) is not None:
        pytest.skip(f"{name} is installed")
    with pytest.raises(st.MissingDependency, match=rf"pip install 'stiction\[{name}\]'"):
        getattr(st, name)


@needs_torch
def test_gradcheck_of_torch():
    import torch

    problem = two_points()
    free = torch.tensor(np.array(problem.velocity), requires_grad=True)
    friction = torch.tensor([0.5, 0.3], dtype=torch.float64, requires_grad=True)
    mass = torch.tensor(np.array(problem.mass), requires_grad=True)
    assert torch.autograd.gradcheck(lambda f, mu: st.torch.contact(problem, free=f, friction=mu), (free, friction))
    assert torch.autograd.gradcheck(lambda half: st.torch.contact(problem, mass=0.5 * (half + half.T))[0], (mass,))
    batch = torch.stack([free.detach(), 1.1 * free.detach()]).requires_grad_()
    assert torch.autograd.gradcheck(lambda f: st.torch.contact(problem, free=f)[0], (batch,))
    H = torch.tensor([[2.0, 0.5], [0.0, 1.0]], dtype=torch.float64, requires_grad=True)
    q = torch.tensor([[-1.0, -1.0], [-2.0, 1.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(st.torch.lcp, (H, q))
    both = torch.stack([friction.detach(), 0.9 * friction.detach()]).requires_grad_()
    assert torch.autograd.gradcheck(lambda f, mu: st.torch.contact(problem, free=f, friction=mu), (batch, both))
    masses = torch.stack([mass.detach(), 1.5 * mass.detach()]).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda half: st.torch.contact(problem, mass=0.5 * (half + half.transpose(1, 2)), free=batch.detach())[0],
        (masses,),
    )
    (first,) = torch.autograd.grad((st.torch.contact(problem, free=free)[0] ** 2).sum(), free, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.sum().backward()
    single = st.torch.contact(problem, free=free.detach().float())[0]
    assert single.dtype == torch.float32


@needs_jax
def test_gradients_of_jax():
    import jax
    from jax.test_util import check_grads

    jax.config.update("jax_enable_x64", True)
    problem = two_points()
    free = jax.numpy.asarray(np.array(problem.velocity))
    friction = jax.numpy.asarray([0.5, 0.3])
    check_grads(lambda f, mu: st.jax.contact(problem, free=f, friction=mu), (free, friction), 1, ["rev"])
    batch = jax.numpy.stack([free, 1.1 * free])
    check_grads(lambda f: st.jax.contact(problem, free=f)[0], (batch,), 1, ["rev"])
    mapped = jax.vmap(lambda f: st.jax.contact(problem, free=f)[0])(batch)
    assert np.asarray(mapped) == pytest.approx(np.asarray(st.jax.contact(problem, free=batch)[0]))
    gradient = jax.grad(lambda f, mu: st.jax.contact(problem, free=f, friction=mu)[0].sum(), (0, 1))
    whole = gradient(batch, friction)
    mapped_free, mapped_friction = jax.vmap(gradient, (0, None))(batch, friction)
    assert np.asarray(mapped_free) == pytest.approx(np.asarray(whole[0]))
    assert np.asarray(mapped_friction).sum(axis=0) == pytest.approx(np.asarray(whole[1]))
    twice = jax.vmap(lambda f: st.jax.contact(problem, free=f)[0])(jax.numpy.stack([batch, 0.9 * batch]))
    assert np.asarray(twice[0]) == pytest.approx(np.asarray(mapped))
    assert jax.jit(lambda f: st.jax.contact(problem, free=f)[0].sum())(free) == pytest.approx(mapped[0].sum())
    H, q = jax.numpy.array([[2.0, 0.5], [0.0, 1.0]]), jax.numpy.array([[-1.0, -1.0], [-2.0, 1.0]])
    check_grads(st.jax.lcp, (H, q), 1, ["rev"])
