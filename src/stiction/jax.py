"""Contact solves and complementarity problems as differentiable functions of JAX arrays.

    velocity, impulse = st.jax.contact(problem, free=free, friction=friction)
    z = st.jax.lcp(M, q)

Arrays replace data of the problem, with a batch first if there is one; gradients are exact (`stiction.derivatives`).
The solve runs on the CPU through `jax.pure_callback`, so that it may stand inside `jit` and `grad`; `vmap` calls it for
each member. At a kink, and where the motion is not determined, the gradient is that of one side, with a
`NotDifferentiableWarning`; with strict=True `NotDifferentiable` is raised. Numbers are solved in float64; results have
the kind of number that arrays came in, so enable `jax_enable_x64` for more than seven digits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stiction import optional
from stiction.derivatives.batched import BoxTask, contact_task

if TYPE_CHECKING:
    from stiction.derivatives.batched import Task
    from stiction.problems.contact import ContactProblem

jax: Any = optional.jax()


def contact(
    problem: ContactProblem, *, solver: Any = None, tolerance: float = 1e-8, strict: bool = False, **arrays: Any
) -> tuple[Any, Any]:
    """Velocity (m,) and impulse (n, d) of a contact problem with these data; a batch first if an array has one.

    arrays: any of free, friction, gap_rate, joint_rate, mass, viscosity
    """
    velocity, impulse = solved(contact_task("jax.contact", problem, solver, tolerance, strict, arrays), arrays.values())
    return velocity, impulse


def lcp(
    H: Any, q: Any, lo: Any = 0.0, hi: Any = np.inf, *, solver: Any = None, tolerance: float = 1e-8,
    strict: bool = False,
) -> Any:  # fmt: skip
    """z of the box problem lo <= z <= hi ⊥ H z + q, an LCP as it is; H (n, n), q (n,), or batches of these."""
    (z,) = solved(BoxTask(lo, hi, solver, tolerance, strict), (H, q))
    return z


def solved(task: Task, arrays: Any) -> Any:
    """A task of `derivatives.batched`, as JAX differentiates it: solved once more for the gradient."""

    @jax.custom_vjp  # type: ignore[untyped-decorator]
    def apply(*given: Any) -> Any:
        return run(*given)

    def run(*given: Any) -> Any:
        kind = given[-1].dtype
        out = tuple(jax.ShapeDtypeStruct(shape, kind) for shape in task.shapes([tuple(each.shape) for each in given]))

        def call(*inside: Any) -> Any:
            return tuple(value.astype(kind) for value in task.answers(doubles(inside))[0])

        return jax.pure_callback(call, out, *given, vmap_method="sequential")

    def forward(*given: Any) -> Any:
        return run(*given), given

    def backward(given: Any, by: Any) -> Any:
        out = tuple(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in given)

        def call(*inside: Any) -> Any:
            data, weights = doubles(inside[: len(given)]), doubles(inside[len(given) :])
            found = task.gradients(task.answers(data)[1], weights, [each.shape for each in data])
            return tuple(value.astype(like.dtype) for value, like in zip(found, out, strict=True))

        return jax.pure_callback(call, out, *given, *by, vmap_method="sequential")

    apply.defvjp(forward, backward)
    return apply(*map(jax.numpy.asarray, arrays))


def doubles(arrays: Any) -> list[Any]:
    return [np.asarray(each, np.float64) for each in arrays]
