"""Contact solves and complementarity problems as differentiable functions of JAX arrays.

    velocity, impulse = st.jax.contact(problem, free=free, friction=friction)
    z = st.jax.lcp(M, q)

Arrays replace data of the problem, with a batch first if there is one; gradients are exact (`stiction.derivatives`).
The solve runs on the CPU through `jax.pure_callback`, so that it may stand inside `jit` and `grad`; a batch of contact
problems, given as one or made by `vmap`, is solved at once in threads (`st.solve_many`). At a kink, and where the
motion is not determined, the gradient is that of one side, with a `NotDifferentiableWarning`; with strict=True
`NotDifferentiable` is raised. Numbers are solved in float64; results have the kind of number that arrays came in, so
enable `jax_enable_x64` for more than seven digits.
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
        shapes = task.shapes([each.shape for each in given])
        out = tuple(jax.ShapeDtypeStruct(shape, given[-1].dtype) for shape in shapes)
        return called(lambda data: task.answers(data)[0], len(shapes[0]) == 1, out, given)

    def forward(*given: Any) -> Any:
        return run(*given), given

    def backward(given: Any, by: Any) -> Any:
        def gradients(both: Any) -> list[Any]:
            data, weights = both[: len(given)], both[len(given) :]
            return task.gradients(task.answers(data)[1], weights, [each.shape for each in data])

        out = tuple(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in given)
        return called(gradients, by[0].ndim == 1, out, (*given, *by))

    apply.defvjp(forward, backward)
    return apply(*map(jax.numpy.asarray, arrays))


def called(function: Any, single: bool, out: Any, arrays: Any) -> Any:
    """A function of a list of NumPy's arrays, as JAX calls it; single: it takes a batch where it has none.

    What `vmap` puts before the shapes is that batch; where there is one already, members are called one by one.
    """
    shapes = [each.shape for each in arrays]

    def call(*inside: Any) -> Any:
        data = [np.asarray(each, np.float64) for each in inside]
        lead = np.broadcast_shapes(*(each.shape[: each.ndim - len(s)] for each, s in zip(data, shapes, strict=True)))
        if lead:
            data = [np.broadcast_to(each, lead + s).reshape(-1, *s) for each, s in zip(data, shapes, strict=True)]
        if single or not lead:
            results = function(data)
        else:
            members = [function([each[k] for each in data]) for k in range(len(data[0]))]
            results = [np.stack(parts) for parts in zip(*members, strict=True)]
        return tuple(np.reshape(v, lead + o.shape).astype(o.dtype) for v, o in zip(results, out, strict=True))

    return jax.pure_callback(call, out, *arrays, vmap_method="expand_dims")
