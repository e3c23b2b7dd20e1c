"""Two boxes held by two grippers [Drumwright2013, fig. 1]; the walking robot of fig. 2 is in `walker`."""

from __future__ import annotations

from stiction.scenes.parts import (
    BLUE,
    BOX,
    RED,
    SLIDE,
    NamedScene,
    check_choice,
    check_friction,
    check_number,
    constant,
    empty,
    mj,
)

EDGE = 0.1  # m
CHAMFER = 0.0005  # m


def force_closure_grasp(force: float = 100.0, mu: float = 0.5, contacts: int = 36, mass: float = 1.0) -> NamedScene:
    """Two boxes (0.1 m, 1 kg) between two gripper boxes that push inward: friction alone carries them.

    The paper's simulator finds 12 contacts a face (its footnote 3). Here every second box is made of three slabs, which
    touch the plain one beside them at 3 x 4 points. Slabs are chamfered by 0.5 mm: where edges coincide, rounding
    decides which contacts are found. Grippers slide along x only.

    contacts: 36, or 12 with one slab (4 a face)
    """
    check_number("force", force, 0.0, 1e9, "N")
    check_number("mass", mass, 1e-6, 1e9, "kg")
    check_choice("contacts", contacts, (36, 12))
    spec = empty("force-closure-grasp", check_friction(mu), size=0.5)
    for number, name in enumerate(("left-gripper", "left-box", "right-box", "right-gripper")):
        body = spec.worldbody.add_body(name=name, pos=[(number - 1.5) * EDGE, 0.0, 0.0])
        slabs, chamfer = (contacts // 12, CHAMFER) if number % 2 else (1, 0.0)
        for k in range(slabs):
            height = EDGE / slabs
            body.add_geom(
                name=name if slabs == 1 else f"{name}-{k}", type=BOX, mass=mass / slabs,
                size=[0.5 * EDGE, 0.5 * EDGE - chamfer, 0.5 * height - chamfer],
                pos=[0.0, 0.0, (k - 0.5 * (slabs - 1)) * height], rgba=RED if "gripper" in name else BLUE,
            )  # fmt: skip
        if "gripper" in name:
            body.add_joint(name=name, type=SLIDE, axis=[1.0 if number == 0 else -1.0, 0.0, 0.0])
            spec.add_actuator(name=name, target=name, trntype=mj.mjtTrn.mjTRN_JOINT)
        else:
            body.add_freejoint(name=name)
    return NamedScene(
        spec,
        constant(force, force),
        f"Two boxes between grippers of {force:g} N, {contacts} contacts [Drumwright2013, fig. 1].",
    )
