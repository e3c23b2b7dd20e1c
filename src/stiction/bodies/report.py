"""Which features of a scene are used, which are ignored because hard contact does not need them, and which are refused.

A feature is refused if it would change the motion and is not supported. Some that are used can be ignored on request:
the scene then runs as if they were absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.errors import first_few
from stiction.optional import mujoco

if TYPE_CHECKING:
    from collections.abc import Iterator

mj = mujoco()

NAMED = 3  # geoms that a message names
IGNORABLE = ("torsion", "surfacevel")  # what `ignore` may name


@dataclass(frozen=True)
class Report:
    """One line for each feature; `str` of it is for people."""

    used: tuple[str, ...]
    ignored: tuple[str, ...]
    refused: tuple[str, ...]

    def __str__(self) -> str:
        parts = (("used", self.used), ("ignored", self.ignored), ("refused", self.refused))
        return "\n".join(
            f"{title}:\n" + "\n".join(f"  {line}" for line in lines or ("nothing",)) for title, lines in parts
        )


def inspect(model: Any, ignore: tuple[str, ...] = ()) -> Report:
    """Go through a model."""
    refused, dropped, turning = dict(refusals(model)), [], twisting(model)
    used = list(uses(model))
    if turning and "torsion" in ignore:
        dropped.append(f"torsional and rolling friction (condim 4 and 6) of {first_few(turning, NAMED)} (on request)")
    elif turning:
        used.append(f"torsional and rolling friction (condim 4 and 6) of {first_few(turning, NAMED)}, exactly")
    moving = [name_of(model, mj.mjtObj.mjOBJ_GEOM, g) for g in np.flatnonzero(model.geom_surfacevel.any(1)).tolist()]
    if moving and "surfacevel" in ignore:
        dropped.append(f"surfacevel (moving surfaces) of {first_few(moving, NAMED)} (on request)")
    elif moving:
        used.append(f"surfacevel (moving surfaces) of {first_few(moving, NAMED)}: friction carries what touches them")
    return Report(tuple(used), (*ignores(model), *dropped), tuple(refused.values()))


def twisting(model: Any) -> list[str]:
    """Geoms and pairs with torsional or rolling friction."""
    geoms = np.flatnonzero(colliding(model) & (model.geom_condim > 3)).tolist()
    pairs = np.flatnonzero(model.pair_dim > 3).tolist()
    return [
        *(name_of(model, mj.mjtObj.mjOBJ_GEOM, each) for each in geoms),
        *(name_of(model, mj.mjtObj.mjOBJ_PAIR, each) for each in pairs),
    ]


def counted(number: int, what: str, many: str = "") -> str:
    return f"{number} {what if number == 1 else many or what + 's'}"


def uses(model: Any) -> Iterator[str]:
    bodies, trees = counted(model.nbody - 1, "body", "bodies"), counted(model.ntree, "kinematic tree")
    yield f"{bodies} in {trees}, {model.nv} velocities"
    joints = np.bincount(model.jnt_type, minlength=4)
    kinds = [
        f"{number} {name}" for number, name in zip(joints, ("free", "ball", "slide", "hinge"), strict=True) if number
    ]
    if kinds:
        yield f"joints: {', '.join(kinds)}"
    if model.nactuator:
        yield f"{counted(model.nactuator, 'actuator')}; velocity gains of affine ones act implicitly"
    if model.dof_damping.any() or model.dof_dampingpoly.any():
        yield "joint damping, implicitly"
    if model.dof_armature.any():
        yield "armature"
    if model.jnt_stiffness.any():
        yield "joint springs"
    if model.ngravcomp:
        yield f"gravity compensation of {counted(model.ngravcomp, 'body', 'bodies')}"
    if model.opt.density or model.opt.viscosity:
        yield "fluid forces"
    limits = int(np.count_nonzero(model.jnt_limited))
    if limits:
        yield f"limits of {counted(limits, 'joint')}, as hard contacts without friction"
    dry = int(np.count_nonzero(model.dof_frictionloss))
    if dry:
        yield f"dry friction of {counted(dry, 'joint velocity', 'joint velocities')}, exactly"
    for kind, name in EQUALITIES.items():
        number = int(np.count_nonzero(model.eq_type == kind))
        if number:
            yield f"{counted(number, name + ' constraint')}, as hard bilateral rows"
    if model.ntendon:
        yield f"{counted(model.ntendon, 'tendon')}: springs, dampers, actuation, limits and dry friction"
    geoms = colliding(model)
    if geoms.any() or model.npair:
        mu = model.geom_friction[geoms, 0]
        between = f", friction {mu.min():g} to {mu.max():g}" if mu.size else ""
        yield f"contacts of {counted(int(geoms.sum()), 'geom')}{between}"
    yield from qualities(model, geoms)
    if model.npair:
        yield f"{counted(model.npair, 'contact pair')} of their own, with friction in two directions"
    if model.nexclude:
        yield f"{counted(model.nexclude, 'excluded pair')} of bodies"
    if model.flg_adhesion or model.geom_adhesion.any() or model.pair_adhesion.any():
        yield "adhesion, between geoms that are closer than their margin"


def qualities(model: Any, geoms: np.ndarray[Any, np.dtype[np.bool_]]) -> Iterator[str]:
    """How contacts are found where MuJoCo's own do not do."""
    kinds = np.bincount(model.geom_type[geoms], minlength=8)
    if kinds[mj.mjtGeom.mjGEOM_CYLINDER]:
        many = counted(int(kinds[mj.mjtGeom.mjGEOM_CYLINDER]), "cylinder")
        yield f"contacts of {many} with planes, boxes, capsules and each other, from their geometry"
    if kinds[mj.mjtGeom.mjGEOM_MESH]:
        many = counted(int(kinds[mj.mjtGeom.mjGEOM_MESH]), "mesh", "meshes")
        yield f"contacts of {many}, held against the true distance; a face has at most four, and may rock on them"
    if kinds[mj.mjtGeom.mjGEOM_HFIELD]:
        many = counted(int(kinds[mj.mjtGeom.mjGEOM_HFIELD]), "heightfield")
        yield f"contacts of {many}, without those of inner edges; terrain of boxes or meshes is surer"


def ignores(model: Any) -> Iterator[str]:
    for name, end, what, many, why, concerned in softness(model):
        number = int((concerned & (getattr(model, name) != STANDARD[end]).any(axis=1)).sum())
        if number:
            yield f"{end} of {counted(number, what, many)}: {why}"
    if model.pair_solreffriction.any():
        yield "solreffriction of contact pairs: contact is rigid"
    if model.geom_margin.any() or model.pair_margin.any():
        yield "margin of geoms: contacts act at their true distance, and are looked for as far as the motion asks"
    if model.geom_gap.any() or model.pair_gap.any():
        yield "gap of geoms"
    if model.opt.cone != mj.mjtCone.mjCONE_ELLIPTIC:
        yield "pyramidal cone: the law of the simulation decides"
    yield from integrators(model)
    if model.opt.noslip_iterations:
        yield "noslip iterations: nothing slips that friction holds"
    if model.opt.impratio != STANDARD["impratio"]:
        yield "impratio"
    flags = mj.mjtEnableBit
    for bit, what in (
        (flags.mjENBL_OVERRIDE, "contact override (o_margin, o_friction ...)"),
        (flags.mjENBL_SLEEP, "sleeping bodies"),
        (flags.mjENBL_SPECULATIVE, "speculative contacts: margins follow the motion"),
    ):
        if model.opt.enableflags & bit:
            yield what


def softness(model: Any) -> Iterator[tuple[str, str, str, str, str, Any]]:
    """Where MuJoCo keeps solref and solimp, what of, why it has no use here, and which entries matter at all."""
    limits, dry, tendon_limits = model.jnt_limited != 0, model.dof_frictionloss > 0.0, model.tendon_limited != 0
    for end in ("solref", "solimp"):
        yield f"geom_{end}", end, "geom", "geoms", "contact is rigid", np.ones(model.ngeom, bool)
        yield f"pair_{end}", end, "contact pair", "contact pairs", "contact is rigid", np.ones(model.npair, bool)
        yield f"jnt_{end}", end, "joint limit", "joint limits", "limits are rigid", limits
        yield f"dof_{end}", end, "dry friction", "dry frictions", "friction of joints is exact", dry
        yield f"tendon_{end}_lim", end, "tendon limit", "tendon limits", "limits are rigid", tendon_limits
        which = model.tendon_frictionloss > 0.0
        yield f"tendon_{end}_fri", end, "tendon's dry friction", "tendons' dry friction", "it is exact", which


def integrators(model: Any) -> Iterator[str]:
    """An integrator of MuJoCo's that becomes another: the existing steppers are semi-implicit Euler, and events."""
    given = mj.mjtIntegrator(model.opt.integrator)
    if given == mj.mjtIntegrator.mjINT_RK4:
        yield (
            "integrator RK4 becomes semi-implicit Euler: the stepper of the simulation decides "
            "(EventDriven(method='rk4') integrates with Runge-Kutta)"
        )
    elif given != mj.mjtIntegrator.mjINT_EULER:
        name = given.name[6:].lower()
        yield (
            f"integrator {name} becomes semi-implicit Euler, with dampers and velocity gains implicit: the stepper of "
            "the simulation decides"
        )


def refusals(model: Any) -> Iterator[tuple[str, str]]:
    if model.nflex:
        flexes = [name_of(model, mj.mjtObj.mjOBJ_FLEX, f) for f in range(model.nflex)]
        many = counted(model.nflex, "flexible body", "flexible bodies")
        yield "flex", f"{many}, {first_few(flexes, NAMED)}: only rigid bodies are supported"
    other = sorted({int(kind) for kind in model.eq_type} - set(EQUALITIES))
    if other:
        names = ", ".join(mj.mjtEq(kind).name[5:].lower() for kind in other)
        yield "equality", f"equality constraints of kind {names}: only connect, weld, joint and tendon are supported"


def name_of(model: Any, kind: Any, number: int) -> str:
    """The name of a geom, pair or flex; of one without a name its number, and the body that a geom is of."""
    what = kind.name[6:].lower()
    name = mj.mj_id2name(model, kind, number)
    if name:
        return f"{what} {name!r}"
    if kind != mj.mjtObj.mjOBJ_GEOM:
        return f"{what} {number}"
    body = mj.mj_id2name(model, mj.mjtObj.mjOBJ_BODY, int(model.geom_bodyid[number]))
    return f"{what} {number}" + (f" of body {body!r}" if body else "")


def colliding(model: Any) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.asarray((model.geom_contype != 0) | (model.geom_conaffinity != 0))


EQUALITIES = {
    int(mj.mjtEq.mjEQ_CONNECT): "connect",
    int(mj.mjtEq.mjEQ_WELD): "weld",
    int(mj.mjtEq.mjEQ_JOINT): "joint",
    int(mj.mjtEq.mjEQ_TENDON): "tendon",
}
# MuJoCo's defaults.
STANDARD: dict[str, Any] = {"solref": (0.02, 1.0), "solimp": (0.9, 0.95, 0.001, 0.5, 2.0), "impratio": 1.0}
