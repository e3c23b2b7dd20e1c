"""Everyday scenes that go wrong where contact is soft: what is held slips, what rests creeps, what slides lifts."""

from __future__ import annotations

from stiction.scenes.parts import (
    BLUE,
    BOX,
    CAPSULE,
    RED,
    SLIDE,
    SPHERE,
    NamedScene,
    check_count,
    check_friction,
    check_number,
    constant,
    empty,
    free_box,
    free_geom,
    ground,
    mj,
    start_moving,
)

# One body on a plane


def box_on_plane(edge: float = 0.2, mass: float = 1.0, height: float = 0.0, mu: float = 0.5) -> NamedScene:
    """A cube at rest on a plane, or dropped from `height` (m) above it."""
    check_number("edge", edge, 1e-4, 1e4, "m")
    check_number("mass", mass, 1e-6, 1e9, "kg")
    check_number("height", height, 0.0, 1e4, "m")
    spec = empty("box-on-plane", check_friction(mu), size=5.0 * edge)
    ground(spec)
    free_box(spec, "box", [edge] * 3, (0.0, 0.0, height + 0.5 * edge), mass)
    return NamedScene(spec, None, "A box on a plane.")


def sliding_cube(speed: float = 2.0, mu: float = 0.3, edge: float = 0.1, mass: float = 1.0) -> NamedScene:
    """A cube that slides along x over a plane: it stops after v² / (2 mu g) and must not lift on the way.

    It stays flat while mu < 1; else it tips over its leading edge.
    """
    check_number("speed", speed, 0.0, 1e3, "m/s")
    check_number("edge", edge, 1e-4, 1e4, "m")
    check_number("mass", mass, 1e-6, 1e9, "kg")
    spec = empty("sliding-cube", check_friction(mu), size=10.0 * edge)
    ground(spec)
    centre = (0.0, 0.0, 0.5 * edge)
    free_box(spec, "cube", [edge] * 3, centre, mass)
    start_moving(spec, [*centre, 1.0, 0.0, 0.0, 0.0], [speed, 0.0, 0.0, 0.0, 0.0, 0.0])
    return NamedScene(spec, None, f"A cube that slides at {speed:g} m/s.")


def sliding_ball(speed: float = 2.0, mu: float = 0.3, radius: float = 0.1, mass: float = 1.0) -> NamedScene:
    """A solid ball that slides along x without spin: friction makes it roll at 5/7 of its speed."""
    check_number("speed", speed, 0.0, 1e3, "m/s")
    check_number("radius", radius, 1e-4, 1e4, "m")
    check_number("mass", mass, 1e-6, 1e9, "kg")
    spec = empty("sliding-ball", check_friction(mu), size=10.0 * radius)
    ground(spec)
    free_geom(spec, "ball", (0.0, 0.0, radius), type=SPHERE, size=[radius, 0.0, 0.0], mass=mass, rgba=BLUE)
    start_moving(spec, [0.0, 0.0, radius, 1.0, 0.0, 0.0, 0.0], [speed, 0.0, 0.0, 0.0, 0.0, 0.0])
    return NamedScene(spec, None, f"A ball that slides at {speed:g} m/s.")


# Held and loaded


def pinched_capsule(force: float = 10.0, mu: float = 0.7, mass: float = 0.045) -> NamedScene:
    """A slim upright capsule (45 g, radius 4 mm, 60 mm long) between two pads that push inward.

    Of mujoco issue 3328. Friction carries it from m g / (2 mu) = 0.32 N a pad on; with 20 to 95 times as much, soft
    contact lets it sink at 50 to 155 µm/s. Each pad touches along a line, at two points.
    """
    check_number("force", force, 0.0, 1e6, "N")
    check_number("mass", mass, 1e-9, 1e6, "kg")
    spec = empty("pinched-capsule", check_friction(mu), timestep=0.002, size=0.15)
    radius, half, thickness, tall = 0.004, 0.026, 0.01, 0.08  # pads are longer than the capsule is straight
    for name, side in (("left-pad", -1.0), ("right-pad", 1.0)):
        pad = spec.worldbody.add_body(name=name, pos=[side * (radius + 0.5 * thickness), 0.0, 0.0])
        pad.add_geom(name=name, type=BOX, size=[0.5 * thickness, 0.01, 0.5 * tall], mass=0.1, rgba=RED)
        pad.add_joint(name=name, type=SLIDE, axis=[-side, 0.0, 0.0])
        spec.add_actuator(name=name, target=name, trntype=mj.mjtTrn.mjTRN_JOINT)
    free_geom(spec, "capsule", (0.0, 0.0, 0.0), type=CAPSULE, size=[radius, half, 0.0], mass=mass, rgba=BLUE)
    return NamedScene(spec, constant(force, force), f"A capsule pinched with {force:g} N a pad.")


def mass_ratio(ratio: float = 1000.0, blocks: int = 2, edge: float = 0.2, mu: float = 0.5) -> NamedScene:
    """A stack of cubes whose top one weighs `ratio` kg, the others 1 kg."""
    check_number("ratio", ratio, 1e-6, 1e9)
    check_count("blocks", blocks, 2, 100)
    check_number("edge", edge, 1e-3, 1e3, "m")
    spec = empty("mass-ratio", check_friction(mu), size=2.0 * edge * blocks)
    ground(spec)
    for b in range(blocks):
        heavy = b == blocks - 1
        centre = (0.0, 0.0, edge * (b + 0.5))
        free_box(spec, f"block{b}", [edge] * 3, centre, ratio if heavy else 1.0, rgba=RED if heavy else BLUE)
    return NamedScene(spec, None, f"A cube of {ratio:g} kg on {blocks - 1} of 1 kg.")
