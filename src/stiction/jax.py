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

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction import optional
from stiction.derivatives.batched import (
    VARYING,
    batch_of,
    box_gradients,
    contact_gradients,
    shapes_of,
    solve_boxes,
    solve_contacts,
)
from stiction.errors import InvalidProblem

if TYPE_CHECKING:
    from stiction.problems.contact import ContactProblem

jax: Any = optional.jax()


def contact(
    problem: ContactProblem, *, solver: Any = None, tolerance: float = 1e-8, strict: bool = False, **arrays: Any
) -> tuple[Any, Any]:
    """Velocity (m,) and impulse (n, 3) of a contact problem with these data; a batch first if an array has one.

    arrays: any of free, friction, gap_rate, joint_rate, mass, viscosity
    """
    if not arrays:
        raise InvalidProblem(f"jax.contact: give at least one of {', '.join(VARYING)}")
    shapes_of(problem)
    values = {name: jax.numpy.asarray(value) for name, value in arrays.items()}

    @jax.custom_vjp  # type: ignore[untyped-decorator]
    def solved(given: dict[str, Any]) -> Any:
        return run(given)

    def run(given: dict[str, Any]) -> Any:
        size = batch_of(problem, {name: tuple(value.shape) for name, value in given.items()})
        kind = next(iter(given.values())).dtype
        lead = () if size is None else (size,)
        out = tuple(jax.ShapeDtypeStruct((*lead, *tail), kind) for tail in ((problem.m,), (problem.n, 3)))

        def call(inside: dict[str, Any]) -> Any:
            velocity, impulse, _ = solve_contacts(problem, doubles(inside), solver, tolerance)
            return velocity.astype(kind), impulse.astype(kind)

        return jax.pure_callback(call, out, given, vmap_method="sequential")

    def forward(given: dict[str, Any]) -> Any:
        return run(given), given

    def backward(given: dict[str, Any], by: Any) -> Any:
        out = {name: jax.ShapeDtypeStruct(value.shape, value.dtype) for name, value in given.items()}

        def call(inside: dict[str, Any], velocity: Any, impulse: Any) -> Any:
            data = doubles(inside)
            solutions = solve_contacts(problem, data, solver, tolerance)[2]
            shapes = {name: value.shape for name, value in data.items()}
            found = contact_gradients(solutions, double(velocity), double(impulse), shapes, strict)
            return {name: value.astype(out[name].dtype) for name, value in found.items()}

        return (jax.pure_callback(call, out, given, by[0], by[1], vmap_method="sequential"),)

    solved.defvjp(forward, backward)
    velocity, impulse = solved(values)
    return velocity, impulse


def lcp(
    H: Any, q: Any, lo: Any = 0.0, hi: Any = np.inf, *, solver: Any = None, tolerance: float = 1e-8,
    strict: bool = False,
) -> Any:  # fmt: skip
    """z of the box problem lo <= z <= hi ⊥ H z + q, an LCP as it is; H (n, n), q (n,), or batches of these."""

    @jax.custom_vjp  # type: ignore[untyped-decorator]
    def solved(H: Any, q: Any) -> Any:
        return run(H, q)

    def run(H: Any, q: Any) -> Any:
        lead = (H if H.ndim == 3 else q).shape[:1] if H.ndim == 3 or q.ndim == 2 else ()
        out = jax.ShapeDtypeStruct((*lead, q.shape[-1]), q.dtype)
        call = partial(answers, lo=lo, hi=hi, solver=solver, tolerance=tolerance)
        return jax.pure_callback(call, out, H, q, vmap_method="sequential")

    def forward(H: Any, q: Any) -> Any:
        return run(H, q), (H, q)

    def backward(given: Any, by_z: Any) -> Any:
        out = tuple(jax.ShapeDtypeStruct(each.shape, each.dtype) for each in given)

        def call(H: Any, q: Any, z: Any) -> Any:
            solutions = solve_boxes(double(H), double(q), lo, hi, solver, tolerance)[1]
            found = box_gradients(solutions, double(z), H.shape, q.shape, strict)
            return tuple(each.astype(kind.dtype) for each, kind in zip(found, out, strict=True))

        return jax.pure_callback(call, out, *given, by_z, vmap_method="sequential")

    solved.defvjp(forward, backward)
    return solved(jax.numpy.asarray(H), jax.numpy.asarray(q))


def answers(H: Any, q: Any, *, lo: Any, hi: Any, solver: Any, tolerance: float) -> Any:
    return solve_boxes(double(H), double(q), lo, hi, solver, tolerance)[0].astype(q.dtype)


def doubles(given: dict[str, Any]) -> dict[str, Any]:
    return {name: double(value) for name, value in given.items()}


def double(value: Any) -> Any:
    return np.asarray(value, np.float64)
