"""Contact solves and complementarity problems as differentiable functions of PyTorch tensors.

    velocity, impulse = st.torch.contact(problem, free=free, friction=friction)
    z = st.torch.lcp(M, q)

Tensors replace data of the problem, with a batch first if there is one; gradients are exact (`stiction.derivatives`).
At a kink, and where the motion is not determined, `backward` warns (`NotDifferentiableWarning`) and goes on with the
derivative of one side; with strict=True it raises `NotDifferentiable`. Tensors of any kind of number are solved in
float64 on the CPU, and results come back as they came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stiction import optional
from stiction.derivatives.batched import VARYING, box_gradients, contact_gradients, solve_boxes, solve_contacts
from stiction.errors import InvalidProblem

if TYPE_CHECKING:
    from stiction.problems.contact import ContactProblem

torch: Any = optional.torch()


def contact(
    problem: ContactProblem, *, solver: Any = None, tolerance: float = 1e-8, strict: bool = False, **tensors: Any
) -> tuple[Any, Any]:
    """Velocity (m,) and impulse (n, 3) of a contact problem with these data; a batch first if a tensor has one.

    tensors: any of free, friction, gap_rate, joint_rate, mass, viscosity
    """
    if not tensors:
        raise InvalidProblem(f"torch.contact: give at least one of {', '.join(VARYING)}")
    names = tuple(tensors)
    velocity, impulse = Contact.apply(problem, solver, tolerance, strict, names, *tensors.values())
    return velocity, impulse


def lcp(
    H: Any, q: Any, lo: Any = 0.0, hi: Any = np.inf, *, solver: Any = None, tolerance: float = 1e-8,
    strict: bool = False,
) -> Any:  # fmt: skip
    """z of the box problem lo <= z <= hi ⊥ H z + q, an LCP as it is; H (n, n), q (n,), or batches of these."""
    return Box.apply(H, q, lo, hi, solver, tolerance, strict)


class Contact(torch.autograd.Function):  # type: ignore[misc]
    """A batch of contact problems."""

    @staticmethod
    def forward(ctx: Any, problem: Any, solver: Any, tolerance: Any, strict: Any, names: Any, *tensors: Any) -> Any:
        arrays = {name: numpy_of(tensor) for name, tensor in zip(names, tensors, strict=True)}
        velocity, impulse, ctx.solutions = solve_contacts(problem, arrays, solver, tolerance)
        ctx.strict, ctx.shapes = strict, {name: value.shape for name, value in arrays.items()}
        ctx.like = tensors
        return like(velocity, tensors[0]), like(impulse, tensors[0])

    @staticmethod
    def backward(ctx: Any, by_velocity: Any, by_impulse: Any) -> Any:
        found = contact_gradients(ctx.solutions, numpy_of(by_velocity), numpy_of(by_impulse), ctx.shapes, ctx.strict)
        gradients = [like(found[name], tensor) for name, tensor in zip(ctx.shapes, ctx.like, strict=True)]
        return (None,) * 5 + tuple(gradients)


class Box(torch.autograd.Function):  # type: ignore[misc]
    """A batch of box problems."""

    @staticmethod
    def forward(ctx: Any, H: Any, q: Any, lo: Any, hi: Any, solver: Any, tolerance: Any, strict: Any) -> Any:
        z, ctx.solutions = solve_boxes(numpy_of(H), numpy_of(q), lo, hi, solver, tolerance)
        ctx.like, ctx.strict = (H, q), strict
        return like(z, q)

    @staticmethod
    def backward(ctx: Any, by_z: Any) -> Any:
        H, q = ctx.like
        found = box_gradients(ctx.solutions, numpy_of(by_z), tuple(H.shape), tuple(q.shape), ctx.strict)
        return like(found[0], H), like(found[1], q), None, None, None, None, None


def numpy_of(tensor: Any) -> Any:
    if not isinstance(tensor, torch.Tensor):
        raise InvalidProblem(f"stiction.torch: not a tensor, but {type(tensor).__name__}; use torch.tensor(...)")
    return tensor.detach().cpu().double().numpy()


def like(array: Any, tensor: Any) -> Any:
    """The array as a tensor of the same kind, where the other is."""
    return torch.as_tensor(np.ascontiguousarray(array)).to(dtype=tensor.dtype, device=tensor.device)
