"""What is set in a model so that MuJoCo poses its constraints as we need them, and how it is set back.

The elliptic cone gives rows n, t1, t2; the Euler step must not damp a second time; MuJoCo's islands, its dual solvers
and its noslip pass would compute what nobody reads; sleeping bodies would be left out; speculative contacts and the
global override would replace distance and friction. Margins follow the motion (`contacts.margins`). Nothing else of a
model is changed.
"""

from __future__ import annotations

from typing import Any

from stiction.optional import mujoco

mj = mujoco()

OPTIONS = {
    "cone": mj.mjtCone.mjCONE_ELLIPTIC,
    "integrator": mj.mjtIntegrator.mjINT_EULER,
    "solver": mj.mjtSolver.mjSOL_NEWTON,
    "noslip_iterations": 0,
}
DISABLED = mj.mjtDisableBit.mjDSBL_EULERDAMP | mj.mjtDisableBit.mjDSBL_ISLAND
NOT_ENABLED = (
    mj.mjtEnableBit.mjENBL_OVERRIDE
    | mj.mjtEnableBit.mjENBL_SLEEP
    | mj.mjtEnableBit.mjENBL_DIAGEXACT
    | mj.mjtEnableBit.mjENBL_IPC
    | mj.mjtEnableBit.mjENBL_SPECULATIVE
)
MARGINS = ("geom_margin", "body_margin", "pair_margin", "jnt_margin", "tendon_margin")


def original(model: Any) -> dict[str, Any]:
    """What `apply` and the margins of every step will change."""
    kept: dict[str, Any] = {name: getattr(model.opt, name) for name in (*OPTIONS, "disableflags", "enableflags")}
    return kept | {name: getattr(model, name).copy() for name in MARGINS}


def apply(model: Any) -> None:
    for name, value in OPTIONS.items():
        setattr(model.opt, name, int(value))
    model.opt.disableflags |= int(DISABLED)
    model.opt.enableflags &= ~int(NOT_ENABLED)


def restore(model: Any, kept: dict[str, Any]) -> None:
    for name, value in kept.items():
        if name in MARGINS:
            getattr(model, name)[:] = value
        else:
            setattr(model.opt, name, value)
