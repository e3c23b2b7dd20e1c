"""Contact solves and complementarity problems as differentiable functions of PyTorch tensors.

    velocity, impulse = st.torch.contact(problem, free=free, friction=friction)
    z = st.torch.lcp(M, q)

Tensors replace data of the problem, with a batch first if there is one; gradients are exact (`stiction.derivatives`).
At a kink, and where the motion is not determined, `backward` warns (`NotDifferentiableWarning`) and goes on with the
derivative of one side; with strict=True it raises `NotDifferentiable`. Tensors of any kind of number are solved in
float64 on the CPU, a batch of contact problems at once in threads (`st.solve_many`), and results come back as they
came. There are no second derivatives: asking for them raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stiction import optional
from stiction.derivatives.batched import BoxTask, contact_task
from stiction.errors import InvalidProblem

if TYPE_CHECKING:
    from stiction.problems.contact import ContactProblem

torch: Any = optional.torch()


def contact(
    problem: ContactProblem, *, solver: Any = None, tolerance: float = 1e-8, strict: bool = False, **tensors: Any
) -> tuple[Any, Any]:
    """Velocity (m,) and impulse (n, d) of a contact problem with these data; a batch first if a tensor has one.

    tensors: any of free, friction, gap_rate, joint_rate, mass, viscosity
    """
    task = contact_task("torch.contact", problem, solver, tolerance, strict, tensors)
    velocity, impulse = Solve.apply(task, *tensors.values())
    return velocity, impulse


def lcp(
    H: Any, q: Any, lo: Any = 0.0, hi: Any = np.inf, *, solver: Any = None, tolerance: float = 1e-8,
    strict: bool = False,
) -> Any:  # fmt: skip
    """z of the box problem lo <= z <= hi ⊥ H z + q, an LCP as it is; H (n, n), q (n,), or batches of these."""
    (z,) = Solve.apply(BoxTask(lo, hi, solver, tolerance, strict), H, q)
    return z


class Solve(torch.autograd.Function):  # type: ignore[misc]
    """A task of `derivatives.batched`, as PyTorch differentiates it."""

    @staticmethod
    def forward(ctx: Any, task: Any, *tensors: Any) -> Any:
        values, ctx.solutions = task.answers([numpy_of(tensor) for tensor in tensors])
        ctx.task, ctx.kinds = task, [(tuple(each.shape), each.dtype, each.device) for each in tensors]
        return tuple(tensor_of(value, *ctx.kinds[-1][1:]) for value in values)

    @staticmethod
    @torch.autograd.function.once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, *by: Any) -> Any:
        found = ctx.task.gradients(ctx.solutions, [numpy_of(each) for each in by], [kind[0] for kind in ctx.kinds])
        return (None, *(tensor_of(value, *kind[1:]) for value, kind in zip(found, ctx.kinds, strict=True)))


def numpy_of(tensor: Any) -> Any:
    if not isinstance(tensor, torch.Tensor):
        raise InvalidProblem(f"stiction.torch: not a tensor, but {type(tensor).__name__}; use torch.tensor(...)")
    return tensor.detach().cpu().double().numpy()


def tensor_of(array: Any, dtype: Any, device: Any) -> Any:
    return torch.as_tensor(np.ascontiguousarray(array)).to(dtype=dtype, device=device)
