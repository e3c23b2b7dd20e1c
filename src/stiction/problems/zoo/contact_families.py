"""Contact problems of the papers and of everyday mechanics, in any size, from a seed.

Each function takes what can be chosen and a seed; the same arguments give the same problem, whose docstring says where
it comes from and what makes it hard. Every one has a solution: there is a motion that all its contacts allow.
`CONTACT_FAMILIES` lists them by name at a typical size, as functions of the seed alone.

Bodies have 1 kg and edges of 1 m unless stated otherwise; forces act for 1 s where no time is named. Each contact also
has a viscosity, a tenth of the lighter body's mass over 1 s, for `Viscous`.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from stiction.errors import InvalidProblem
from stiction.problems.contact import ContactProblem
from stiction.problems.zoo.heaps import DENSITY, GRAVITY, TIME_STEP
from stiction.problems.zoo.rigid_bodies import (
    DRAG,
    Body,
    PlaneBody,
    Touch,
    ball,
    ball_joint,
    block,
    posed,
    posed_in_plane,
    rod,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]

UP = (0.0, 0.0, 1.0)
ENDS = (-0.5, 0.5)
ORIGIN = (0.0, 0.0, 0.0)
CUBE = (1.0, 1.0, 1.0)  # m


# One body


def peg(n: int, seed: int, radius: float = 0.5, length: float = 2.0, mass: float = 1.0) -> ContactProblem:
    """A peg in a hole, n / 2 contacts around each end [Lloyd2004, fig. 4 and 5].

    Cylinder of this radius and length (m); mu in [0.2, 0.3]; a random wrench on its centre. The contacts outnumber the
    six motions, and opposite ones wedge.
    """
    if n < 2 or n % 2:
        raise InvalidProblem(f"peg: n must be even and at least 2, got {n}")
    rng = np.random.default_rng(seed)
    angles = 2.0 * np.pi * np.arange(n // 2) / (n // 2)
    touches = [
        Touch((radius * np.cos(a), radius * np.sin(a), z), (-np.cos(a), -np.sin(a), 0.0), -1, 0)
        for z in (-0.5 * length, 0.5 * length)
        for a in angles
    ]
    friction = rng.uniform(0.2, 0.3, n)
    return posed([rod(length, radius, UP, ORIGIN, mass)], touches, rng.normal(size=6), friction)


def single_body(case: str, seed: int) -> ContactProblem:
    """One of `SINGLE_BODY`: Lloyd's situations of one body with 1 to 16 contacts [Lloyd2004, fig. 7], mu in [0.2, 0.3].

    He names four of the ten (block in corner, ball in the rim of a hole, block in groove, face on surface); the others
    are those of his test file. The wrench is random and presses the body on.
    """
    if case not in SINGLE_BODY:
        raise InvalidProblem(f"single_body: there is no case {case!r}; known are {', '.join(SINGLE_BODY)}")
    rng = np.random.default_rng(seed)
    body, touches, press = SINGLE_BODY[case]()
    push = rng.normal(size=6)
    push[:3] += press if press is not None else -rng.uniform(0.0, 2.0)
    return posed([body], touches, push, rng.uniform(0.2, 0.3, len(touches)))


def standing(*points: tuple[float, float]) -> tuple[Body, list[Touch], Array]:
    """A block that stands on these points of its lower face."""
    touches = [Touch((x, y, -0.5), UP, -1, 0) for x, y in points]
    return block(CUBE, ORIGIN), touches, np.array([0.0, 0.0, -2.0])


def polygon(sides: int) -> list[tuple[float, float]]:
    """Corners of a regular polygon of radius 0.5 m."""
    angles = 2.0 * np.pi * np.arange(sides) / sides
    return [(0.5 * np.cos(a), 0.5 * np.sin(a)) for a in angles]


def in_corner() -> tuple[Body, list[Touch], None]:
    """Three faces of four contacts each, pushed into the corner."""
    touches = []
    for axis in range(3):
        for s, t in product(ENDS, ENDS):
            point = np.insert(np.array([s, t]), axis, -0.5)
            touches.append(Touch(point, np.eye(3)[axis], -1, 0))
    return block(CUBE, ORIGIN), touches, None


def in_groove() -> tuple[Body, list[Touch], Array]:
    """Two faces at 45 degrees, four contacts each."""
    touches = []
    for side in (-1.0, 1.0):
        normal = np.sqrt(0.5) * np.array([side, 0.0, 1.0])
        along = np.sqrt(0.5) * np.array([1.0, 0.0, -side])
        touches += [
            Touch(-0.5 * normal + a * along + np.array([0.0, y, 0.0]), normal, -1, 0) for a, y in product(ENDS, ENDS)
        ]
    return block(CUBE, ORIGIN), touches, np.array([0.0, 0.0, -1.0])


def in_rim(n: int = 16) -> tuple[Body, list[Touch], Array]:
    """A ball of 1 m radius in a round hole of 0.6 m."""
    touches = []
    for a in 2.0 * np.pi * np.arange(n) / n:
        point = np.array([0.6 * np.cos(a), 0.6 * np.sin(a), -0.8])
        touches.append(Touch(point, -point, -1, 0))
    return ball(1.0, ORIGIN), touches, np.array([0.0, 0.0, -2.0])


def in_channel() -> tuple[Body, list[Touch], Array]:
    """A prismatic joint of four walls along z, four contacts each: 2 x 2 x 4 m."""
    touches = []
    for (x, y), z in product(((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0)), (-2.0, 2.0)):
        touches += [Touch((x + s * y, y + s * x, z), (-x, -y, 0.0), -1, 0) for s in (-1.0, 1.0)]
    return block((2.0, 2.0, 4.0), ORIGIN), touches, np.zeros(3)


SINGLE_BODY: Mapping[str, Callable[[], tuple[Body, list[Touch], Array | None]]] = MappingProxyType(
    {
        "point": partial(standing, (0.0, 0.0)),
        "edge": partial(standing, (-0.5, 0.0), (0.5, 0.0)),
        "tripod": partial(standing, *polygon(3)),
        "table": partial(standing, *product(ENDS, ENDS)),
        "face": partial(standing, *polygon(6)),
        "octagon": partial(standing, *polygon(8)),
        "groove": in_groove,
        "corner": in_corner,
        "rim": in_rim,
        "channel": in_channel,
    }
)


def plate(n: int, seed: int, gaps: float = 0.0) -> ContactProblem:
    """A plate (1 x 1 x 0.2 m) on an n x n grid of contacts: hundreds of coplanar ones for six motions. mu = 0.3.

    gaps: if positive, the ground is uneven by about so much (m), and gravity and a push act for 0.01 s; then some
    contacts stay open, and some, overlapping at first, must open.
    """
    rng = np.random.default_rng(seed)
    touches = [Touch((x, y, -0.1), UP, -1, 0) for x, y in product(np.linspace(-0.5, 0.5, n), repeat=2)]
    push = rng.normal(size=6)
    body = block((1.0, 1.0, 0.2), ORIGIN)
    if gaps <= 0.0:
        push[2] -= 3.0
        return posed([body], touches, push, np.full(n * n, 0.3))
    push[2] -= GRAVITY
    gap = gaps * rng.uniform(-0.2, 1.0, n * n)
    return posed([body], touches, TIME_STEP * push, np.full(n * n, 0.3), gap_rate=gap / TIME_STEP)


def incline(seed: int, angle: float | None = None, friction: float | None = None) -> ContactProblem:
    """A block on an inclined plane, four contacts, gravity for 0.01 s: from rest it slides iff tan(angle) > mu.

    angle: of the plane, in radians; by default angle and mu are random, and half of the blocks already move
    """
    rng = np.random.default_rng(seed)
    slope = rng.uniform(0.0, 1.2) if angle is None else angle
    mu = rng.uniform(0.0, 1.2) if friction is None else friction
    moving = angle is None and rng.uniform() < 0.5
    velocity = np.array([*rng.normal(0.0, 0.2, 2), 0.0, 0.0, 0.0, 0.0]) if moving else np.zeros(6)
    weight = GRAVITY * TIME_STEP * np.array([np.sin(slope), 0.0, -np.cos(slope), 0.0, 0.0, 0.0])
    body = block((0.4, 0.3, 0.2), ORIGIN)
    touches = [Touch((0.4 * x, 0.3 * y, -0.1), UP, -1, 0) for x, y in product(ENDS, ENDS)]
    return posed([body], touches, weight, np.full(4, mu), velocity=velocity)


def wedged(n: int, seed: int) -> ContactProblem:
    """A ball of 1 m radius, n contacts all around with crooked normals, mu in [0.5, 1.5]: self-locking.

    Inner forces that balance each other exist in abundance: nothing bounds the solution set.
    """
    rng = np.random.default_rng(seed)
    touches = []
    for _ in range(n):
        point = rng.normal(size=3)
        point = point / np.linalg.norm(point)
        touches.append(Touch(point, -point + 0.3 * rng.normal(size=3), -1, 0))
    push = rng.normal(size=6)
    return posed([ball(1.0, ORIGIN)], touches, push, rng.uniform(0.5, 1.5, n))


def painleve_rod(seed: int) -> ContactProblem:
    """Painlevé's rod: its lower end slides over the ground, steeply inclined, mu up to 3.

    Above mu = 4/3 forces may not exist; impulses do (Stewart 2000), at two contacts close to each other here, so that
    the rod may also roll. Length 0.1 to 10 m, radius a hundredth of it.
    """
    rng = np.random.default_rng(seed)
    angle, length = rng.uniform(0.2, 1.4), 10.0 ** rng.uniform(-1.0, 1.0)
    axis = np.array([np.cos(angle), 0.0, np.sin(angle)])
    body = rod(length, 0.01 * length, axis, 0.5 * length * axis)
    spin = rng.normal() / length
    velocity = np.array([-rng.uniform(0.0, 5.0), 0.0, -rng.uniform(0.0, 2.0), 0.0, spin, 0.0])
    touches = [Touch((0.0, y * length, 0.0), UP, -1, 0) for y in (-0.005, 0.005)]
    return posed([body], touches, 0.0, np.full(2, rng.uniform(0.5, 3.0)), velocity=velocity)


def painleve_forces(angle: float, friction: float) -> ContactProblem:
    """Painlevé's rod in the plane at the level of forces: velocities stand for accelerations (m/s²).

    1 m, 1 kg, no spin; it leans to +x and its lower end slides to -x, like chalk that is pushed, so that friction is
    known to be mu p_n. What remains is A p_n = m g, A = 1 + 3 cos(angle) (cos(angle) - mu sin(angle)): where A < 0 no
    force exists. Hence not in `CONTACT_FAMILIES`.
    """
    lean = np.array([np.cos(angle), np.sin(angle)])
    body = PlaneBody(1.0, 1.0 / 12.0, 0.5 * lean)
    touch = Touch((0.0, 0.0), (0.0, 1.0), -1, 0)
    return posed_in_plane([body], [touch], [0.0, -GRAVITY, 0.0], [friction], slip=[[-1.0, 0.0]])


# Several bodies


def stack(blocks: int, seed: int, per: int = 4) -> ContactProblem:
    """Cubes on each other, gravity, a random wrench on the top one [Lloyd2004, fig. 9]; mu in [0.2, 0.3].

    per: contacts between two: 4 at the corners, or 8 if every second cube is turned by 45 degrees
    """
    rng = np.random.default_rng(seed)
    wrench = 2.0 * rng.normal(size=6)
    friction = rng.uniform(0.2, 0.3, blocks * per)
    return cubes(blocks, per, wrench, friction)


def stack_pushed(seed: int) -> ContactProblem:
    """Up to five cubes, pushed at the top along a multiple of pi/8: ties between contacts and between facets."""
    rng = np.random.default_rng(seed)
    blocks, per = int(rng.integers(1, 6)), int(rng.choice([4, 8]))
    friction = float(rng.choice([0.25, 0.5, 1.0]))
    angle, force = np.pi / 8.0 * int(rng.integers(0, 16)), float(rng.choice([0.1, 1.0, 2.4525, 5.0, 9.81, 20.0]))
    wrench = force * np.array([np.cos(angle), np.sin(angle), 0.0, 0.0, 0.0, 0.0])
    return cubes(blocks, per, wrench, np.full(blocks * per, friction))


def cubes(blocks: int, per: int, wrench: Array, friction: Array) -> ContactProblem:
    bodies, touches = pile([1.0] * blocks, face_points(per))
    return posed(bodies, touches, weights(bodies, wrench), friction)


def pile(
    masses: Sequence[float], points: Sequence[tuple[float, float]], edge: float = 1.0
) -> tuple[list[Body], list[Touch]]:
    """Cubes of one size on each other, which touch at these points of a face (in edges), and the ground likewise."""
    bodies = [block(np.full(3, edge), (0.0, 0.0, edge * (b + 0.5)), mass) for b, mass in enumerate(masses)]
    return bodies, [Touch((edge * x, edge * y, edge * b), UP, b - 1, b) for b in range(len(masses)) for x, y in points]


def face_points(per: int) -> list[tuple[float, float]]:
    """Corners of a unit square, or of its overlap with one turned by 45 degrees."""
    if per == 4:
        return list(product(ENDS, ENDS))
    if per != 8:
        raise InvalidProblem(f"stack: per must be 4 or 8, got {per}")
    c = 0.5 * np.tan(np.pi / 8.0)
    first = [(0.5 * s, t * c) for s, t in product((-1.0, 1.0), (-1.0, 1.0))]
    return first + [(y, x) for x, y in first]


def weights(bodies: list[Body], wrench: Array | float = 0.0, dt: float = 1.0) -> Array:
    """(b, 6) impulses of gravity, and a wrench (times 1 s) on the last body."""
    impulse = np.zeros((len(bodies), 6))
    impulse[:, 2] = [-GRAVITY * dt * body.mass for body in bodies]
    impulse[-1:] += wrench
    return impulse


def mass_ratio(blocks: int, seed: int, ratio: float, alternating: bool = False) -> ContactProblem:
    """A stack with one cube `ratio` times heavier on top, or every second one: the wrench scales with the top.

    Forces of the light ones drown in rounding errors of the heavy ones'.
    """
    rng = np.random.default_rng(seed)
    mass = [ratio if (b % 2 if alternating else b == blocks - 1) else 1.0 for b in range(blocks)]
    bodies, touches = pile(mass, face_points(4))
    wrench = 2.0 * mass[-1] * rng.normal(size=6)
    return posed(bodies, touches, weights(bodies, wrench), rng.uniform(0.2, 0.3, 4 * blocks))


def lengths_peg(n: int, seed: int) -> ContactProblem:
    """A peg of 1e-3 to 1e3 m and 1e-3 to 1e3 kg, slender or flat, with a wrench in proportion."""
    rng = np.random.default_rng(seed)
    length, mass = 10.0 ** rng.uniform(-3.0, 3.0), 10.0 ** rng.uniform(-3.0, 3.0)
    radius = length * 10.0 ** rng.uniform(-1.5, 0.5)
    unit = peg(n, seed, radius, length, mass)
    velocity = np.linalg.solve(masses_of(unit)[0], rng.normal(size=6) * mass * np.repeat([1.0, length], 3))
    return unit.replace(velocity=velocity)


def lengths_stack(blocks: int, seed: int) -> ContactProblem:
    """Cubes of 0.03 to 30 m on each other, mass with the third power: a pebble may carry a house, or lie on it."""
    rng = np.random.default_rng(seed)
    edge = 10.0 ** rng.uniform(-1.5, 1.5, blocks)
    bottom = np.concatenate([[0.0], np.cumsum(edge)])
    bodies = [block(np.full(3, a), (0.0, 0.0, z + 0.5 * a), a**3) for a, z in zip(edge, bottom, strict=False)]
    touches = []
    for b in range(blocks):
        overlap = edge[b] if b == 0 else min(edge[b], edge[b - 1])
        touches += [Touch((overlap * x, overlap * y, bottom[b]), UP, b - 1, b) for x, y in face_points(4)]
    wrench = 2.0 * rng.normal(size=6) * edge[-1] ** 3 * np.repeat([1.0, edge[-1]], 3)
    return posed(bodies, touches, weights(bodies, wrench), rng.uniform(0.2, 0.3, 4 * blocks))


def lengths_scaled(blocks: int, seed: int) -> ContactProblem:
    """A whole stack of one size, cubes of 1e-3 to 1e3 m at 1000 kg/m³, time steps with the root of the length."""
    rng = np.random.default_rng(seed)
    edge = 10.0 ** rng.uniform(-3.0, 3.0)
    dt, mass = TIME_STEP * np.sqrt(edge), DENSITY * edge**3
    bodies, touches = pile([mass] * blocks, face_points(4), edge)
    wrench = GRAVITY * dt * mass * rng.normal(size=6) * np.repeat([1.0, edge], 3)
    return posed(bodies, touches, weights(bodies, wrench, dt), rng.uniform(0.2, 0.8, 4 * blocks))


def duplicated(seed: int, sides: int = 8, copies: int = 3, error: float = 0.0) -> ContactProblem:
    """Two blocks on each other, each contact of an octagon given three times, mu = 0.3: exactly dependent rows.

    error: moves points and normals by about so much (m), which makes the rows nearly dependent
    """
    rng = np.random.default_rng(seed)
    wrench = 2.0 * rng.normal(size=6)
    bodies = [block(CUBE, (0.0, 0.0, b + 0.5)) for b in range(2)]
    touches = []
    for b, (x, y), _ in product(range(2), polygon(sides), range(copies)):
        shift = error * rng.normal(size=6) if error else np.zeros(6)
        touches.append(Touch(shift[:3] + np.array([x, y, b]), shift[3:] + np.array(UP), b - 1, b))
    return posed(bodies, touches, weights(bodies, wrench), np.full(len(touches), 0.3))


def nearly_duplicated(seed: int) -> ContactProblem:
    """`duplicated` with errors from 1e-12 to 1e-5: as collision detection delivers them."""
    return duplicated(seed, error=10.0 ** np.random.default_rng(seed + 5).uniform(-12.0, -5.0))


def grasp(seed: int, friction: float = 0.5, per: int = 12) -> ContactProblem:
    """Two cubes squeezed between two grippers, 36 contacts [Drumwright2013, fig. 1].

    Grippers of 5 kg push inward with 20 N, their weight carried; gravity pulls the cubes of 1 kg. Contacts lie around
    the edges of the three faces. Seed 0 is symmetric; others add small random wrenches.
    """
    bodies, impulse = gripped(seed)
    steps = np.linspace(-0.5, 0.5, per // 4 + 1)[:-1]
    ring = [*((a, -0.5) for a in steps), *((0.5, a) for a in steps)]
    ring += [(-y, -z) for y, z in ring]
    touches = [Touch((i - 1.0, y, z), (1.0, 0.0, 0.0), i, i + 1) for i in range(3) for y, z in ring]
    return posed(bodies, touches, impulse, np.full(len(touches), friction))


def grasp_tripled(seed: int, friction: float = 100.0) -> ContactProblem:
    """The same with the paper's contacts: four corners a face, each with its three possible normals; mu = 100.

    At the corners of equal boxes the normal is undefined, and the simulator of the paper's footnote 3 takes all three:
    outward ones here. Those across the squeeze lock the cubes to each other.
    """
    bodies, impulse = gripped(seed)
    touches = [
        Touch((i - 1.0, y, z), normal, i, i + 1)
        for i, y, z in product(range(3), ENDS, ENDS)
        for normal in ((1.0, 0.0, 0.0), (0.0, np.sign(y), 0.0), (0.0, 0.0, np.sign(z)))
    ]
    return posed(bodies, touches, impulse, np.full(len(touches), friction))


def gripped(seed: int) -> tuple[list[Body], Array]:
    """Gripper, cube, cube, gripper along x, and what acts on them."""
    rng = np.random.default_rng(seed)
    bodies = [block(CUBE, (x, 0.0, 0.0), mass) for x, mass in ((-1.5, 5.0), (-0.5, 1.0), (0.5, 1.0), (1.5, 5.0))]
    impulse = np.zeros((4, 6))
    impulse[0, 0], impulse[3, 0] = 20.0, -20.0
    impulse[1:3, 2] = -GRAVITY
    if seed > 0:
        impulse += 0.3 * rng.normal(size=(4, 6))
    return bodies, impulse


def wall(rows: int, columns: int, seed: int) -> ContactProblem:
    """Bricks of 2 x 1 x 1 m in running bond, four contacts an overlap, wrenches on the top row; mu in [0.2, 0.6]."""
    rng = np.random.default_rng(seed)
    courses = [[2.0 * c + r % 2 for c in range(columns - r % 2)] for r in range(rows)]
    number = np.cumsum([0, *map(len, courses)])  # of the first brick of a course
    bodies = [block((2.0, 1.0, 1.0), (x, 0.0, r + 0.5)) for r, course in enumerate(courses) for x in course]
    touches = []
    for r, course in enumerate(courses):
        for c, x in enumerate(course):
            under = [(number[r - 1] + k, below) for k, below in enumerate(courses[r - 1]) if abs(below - x) < 1.5]
            for support, below in under if r else [(-1, x)]:
                ends = (max(x, below) - 1.0, min(x, below) + 1.0)
                touches += [Touch((end, y, float(r)), UP, support, number[r] + c) for end, y in product(ends, ENDS)]
    impulse = weights(bodies)
    impulse[number[rows - 1] :] += rng.normal(size=(len(courses[-1]), 6))
    return posed(bodies, touches, impulse, rng.uniform(0.2, 0.6, len(touches)))


def heap(bodies: int, seed: int, per: int = 4) -> ContactProblem:
    """A random contact graph: each body on the one before and on another, four contacts a pair, crooked normals.

    0.3 to 3 kg, edges of 0.5 to 1.5 m, mu in [0.1, 0.8], gravity and a random wrench each. Points do not lie on
    anybody's surface: a test of algebra, not of geometry.
    """
    rng = np.random.default_rng(seed)
    made: list[Body] = []
    touches: list[Touch] = []
    for b in range(bodies):
        centre = np.array([rng.uniform(-1.0, 1.0), rng.uniform(-1.0, 1.0), 0.7 * b + 0.5])
        mass = 10.0 ** rng.uniform(-0.5, 0.5)
        made.append(block(rng.uniform(0.5, 1.5, 3), centre, mass))
        for other in [-1] if b == 0 else [b - 1, int(rng.integers(-1, b))]:
            normal = 0.3 * rng.normal(size=3) + np.array(UP)
            normal = normal / np.linalg.norm(normal)
            around = centre - 0.5 * normal
            touches += [Touch(around + 0.3 * rng.normal(size=3), normal, other, b) for _ in range(per)]
    impulse = weights(made) + rng.normal(size=(bodies, 6))
    return posed(made, touches, impulse, rng.uniform(0.1, 0.8, len(touches)))


def heap_delassus(bodies: int, seed: int) -> ContactProblem:
    """A heap of which only W and q are given: W is singular as soon as contacts outnumber motions."""
    known = heap(bodies, seed)
    rows = known.dense_rows().reshape(3 * known.n, known.m)
    mass = np.zeros((known.m, known.m))
    for b, part in enumerate(masses_of(known)):
        mass[6 * b : 6 * b + 6, 6 * b : 6 * b + 6] = part
    return ContactProblem.from_delassus(rows @ np.linalg.solve(mass, rows.T), rows @ known.velocity, known.friction)


def cannonballs(layers: int, seed: int) -> ContactProblem:
    """A tetrahedral pile of balls of 0.1 m radius, 1000 kg/m³, and random spins, gravity for 0.01 s; mu in [0, 1].

    Between balls all contacts are exact points, one a pair, and friction decides whether the pile spreads.
    """
    rng = np.random.default_rng(seed)
    radius = 0.1
    corner = (
        2.0 * radius * np.array([[1.0, 0.0, 0.0], [0.5, 0.75**0.5, 0.0], [0.5, 0.75**0.5 / 3.0, (2.0 / 3.0) ** 0.5]])
    )
    places = [
        i * corner[0] + j * corner[1] + k * corner[2]
        for i, j, k in product(range(layers), repeat=3)
        if i + j + k < layers
    ]
    mass = DENSITY * 4.0 / 3.0 * np.pi * radius**3
    bodies = [ball(radius, place + radius * np.array(UP), mass) for place in places]
    touches = [Touch((*place[:2], 0.0), UP, -1, b) for b, place in enumerate(places) if place[2] < radius]
    for a, b in product(range(len(places)), repeat=2):
        if a < b and np.linalg.norm(places[b] - places[a]) < 2.001 * radius:
            touches.append(Touch(0.5 * (bodies[a].centre + bodies[b].centre), places[b] - places[a], a, b))
    velocity = np.hstack([np.zeros((len(bodies), 3)), rng.normal(size=(len(bodies), 3))])
    impulse = weights(bodies, dt=TIME_STEP)
    return posed(bodies, touches, impulse, rng.uniform(0.0, 1.0, len(touches)), velocity=velocity)


def arch(blocks: int, seed: int) -> ContactProblem:
    """A round arch of wedge-shaped stones (radii 2 and 3 m, 1 m deep, 2000 kg/m³), gravity for 0.01 s.

    Stands by thrust alone: its joints carry many times a stone's weight. mu in [0.3, 0.8]; inertia of a box.
    """
    rng = np.random.default_rng(seed)
    width, mass = 2.5 * np.pi / blocks, 2000.0 * 2.5 * np.pi / blocks
    bodies, touches = [], []
    for b in range(blocks):
        angle = np.pi * (b + 0.5) / blocks
        radial = np.array([np.cos(angle), 0.0, np.sin(angle)])
        axes = np.column_stack([radial, [0.0, 1.0, 0.0], np.cross(radial, [0.0, 1.0, 0.0])])
        bodies.append(block((1.0, 1.0, width), 2.5 * radial, mass, axes))
    for k in range(blocks + 1):
        angle = np.pi * k / blocks
        for r, y in product((2.0, 3.0), ENDS):
            second = k if k < blocks else -1
            point = (r * np.cos(angle), y, r * np.sin(angle))
            touches.append(Touch(point, (-np.sin(angle), 0.0, np.cos(angle)), k - 1, second))
    disturbance = 0.1 * GRAVITY * TIME_STEP * mass * rng.normal(size=(blocks, 6))
    impulse = weights(bodies, dt=TIME_STEP) + disturbance
    return posed(bodies, touches, impulse, np.full(len(touches), rng.uniform(0.3, 0.8)))


def impact(blocks: int, seed: int, restitution: float | None = None) -> ContactProblem:
    """A stack at rest, whose top cube is hit and moves at several m/s, no gravity; mu in [0.1, 0.6].

    restitution: e in gap_rate = e u_n of approaching contacts; random in [0, 0.8] if not given
    """
    rng = np.random.default_rng(seed)
    e = rng.uniform(0.0, 0.8) if restitution is None else restitution
    velocity = np.zeros((blocks, 6))
    velocity[-1] = [*rng.normal(0.0, 2.0, 2), -rng.uniform(1.0, 5.0), *rng.normal(0.0, 2.0, 3)]
    bodies, touches = pile([1.0] * blocks, face_points(4))
    hit = posed(bodies, touches, 0.0, rng.uniform(0.1, 0.6, 4 * blocks), velocity=velocity)
    return hit.replace(gap_rate=e * np.minimum(hit.normal @ hit.velocity, 0.0))


# Joints


def chain(links: int, seed: int, hinged: bool = False) -> ContactProblem:
    """A chain of rods (0.5 m, 0.1 kg) hung at one end, lying over the ground, gravity for 0.01 s; mu in [0.2, 0.6].

    Ball joints join the ends. hinged: by two such joints 0.1 m apart, an axle of six rows with rank five. Two contacts
    under each link; initial velocities at random, within the joints.
    """
    rng = np.random.default_rng(seed)
    length, radius, half_axle = 0.5, 0.02, 0.05  # m
    heading = np.cumsum(rng.normal(0.0, 0.4, links)) if not hinged else np.zeros(links)
    axes = [np.array([np.cos(a), np.sin(a), 0.0]) for a in heading]
    ends = np.concatenate([np.zeros((1, 3)), np.cumsum(length * np.array(axes), axis=0)])
    bodies = [rod(length, radius, a, 0.5 * (ends[b] + ends[b + 1]), 0.1) for b, a in enumerate(axes)]
    pins = [np.array([0.0, half_axle * side, 0.0]) for side in ((-1.0, 1.0) if hinged else (0.0,))]
    joints = np.concatenate([ball_joint(bodies, ends[b] + pin, b - 1, b) for b in range(links) for pin in pins])
    touches = [
        Touch(ends[b] + s * length * a - radius * np.array(UP), UP, -1, b)
        for b, a in enumerate(axes)
        for s in (0.2, 0.8)
    ]
    velocity = rng.normal(0.0, 0.3, 6 * links)
    velocity -= np.linalg.pinv(joints) @ (joints @ velocity)
    return posed(
        bodies, touches, weights(bodies, dt=TIME_STEP), rng.uniform(0.2, 0.6, len(touches)),
        velocity=velocity.reshape(links, 6), joints=joints,
    )  # fmt: skip


def motor(seed: int) -> ContactProblem:
    """A driven wheel (radius 0.3 m, 5 kg) on a slab (2 kg) that lies on the ground, gravity for 0.01 s: joint rates.

    The wheel spins as prescribed and may only move up and down: it drags the slab along. mu in [0.2, 0.8].
    """
    rng = np.random.default_rng(seed)
    spin = rng.uniform(-10.0, 10.0)  # rad/s
    wheel = rod(0.1, 0.3, (0.0, 1.0, 0.0), (0.0, 0.0, 0.5), 5.0)
    slab = block((1.0, 0.4, 0.2), (rng.uniform(-0.2, 0.2), 0.0, 0.1), 2.0)
    joints = np.eye(12)[[0, 1, 3, 4, 5]]
    touches = [Touch((slab.centre[0] + x, 0.4 * y, 0.0), UP, -1, 1) for x, y in product(ENDS, ENDS)]
    touches.append(Touch((0.0, 0.0, 0.2), UP, 1, 0))
    return posed(
        [wheel, slab], touches, weights([wheel, slab], dt=TIME_STEP), rng.uniform(0.2, 0.8, 5),
        joints=joints, joint_rate=[0.0, 0.0, 0.0, -spin, 0.0],
    )  # fmt: skip


# In the plane


def stack_in_plane(blocks: int, seed: int) -> ContactProblem:
    """`stack` in two dimensions: squares, two contacts a face."""
    rng = np.random.default_rng(seed)
    bodies = [PlaneBody(1.0, 1.0 / 6.0, np.array([0.0, b + 0.5])) for b in range(blocks)]
    touches = [Touch((x, float(b)), (0.0, 1.0), b - 1, b) for b in range(blocks) for x in ENDS]
    impulse = np.tile([0.0, -GRAVITY, 0.0], (blocks, 1))
    impulse[-1] += 2.0 * rng.normal(size=3)
    return posed_in_plane(bodies, touches, impulse, rng.uniform(0.2, 0.6, 2 * blocks))


def ladder(seed: int) -> ContactProblem:
    """A ladder (4 m, 10 kg) against a wall, gravity for 0.01 s, mu in [0, 1] at each end: it stands or slips."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0.3, 1.4)
    half = 2.0 * np.array([-np.cos(angle), np.sin(angle)])  # from the centre to the upper end, at the wall x = 0
    centre = np.array([2.0 * np.cos(angle), 2.0 * np.sin(angle)])
    body = PlaneBody(10.0, 10.0 * 4.0**2 / 12.0, centre)
    touches = [Touch(centre - half, (0.0, 1.0), -1, 0), Touch(centre + half, (1.0, 0.0), -1, 0)]
    return posed_in_plane([body], touches, [0.0, -GRAVITY * TIME_STEP * 10.0, 0.0], rng.uniform(0.0, 1.0, 2))


def arm(links: int, seed: int) -> ContactProblem:
    """A planar arm in its joint angles, a dense mass matrix: every elbow and the tip strike the ground; mu in [0.2, 1].

    Links of 0.5 m and 1 kg; velocities are those of the links' angles, at random, after gravity for 0.01 s.
    """
    rng = np.random.default_rng(seed)
    length, mass = 0.5, 1.0
    angle = rng.uniform(-1.2, 0.2, links)
    turn = length * np.stack([-np.sin(angle), np.cos(angle)])  # (2, links) velocity of a link's end by its own angle
    ends = np.stack([turn * (np.arange(links) <= k) for k in range(links)])  # (links, 2, links)
    middles = ends - 0.5 * np.stack([turn * (np.arange(links) == k) for k in range(links)])
    M = mass * np.einsum("kci,kcj->ij", middles, middles) + mass * length**2 / 12.0 * np.eye(links)
    push = -mass * GRAVITY * TIME_STEP * middles[:, 1].sum(axis=0)
    velocity = rng.normal(0.0, 1.0, links) + np.linalg.solve(M, push)
    friction = rng.uniform(0.2, 1.0, links)
    return ContactProblem(M, velocity, ends[:, 1], ends[:, :1], friction, viscosity=np.full(links, DRAG * mass))


# The same under another friction


def with_friction(problem: ContactProblem, friction: ArrayLike) -> ContactProblem:
    """The same problem with other coefficients: a number, or one a contact."""
    return problem.replace(friction=friction)


def mixed_friction(problem: ContactProblem, seed: int) -> ContactProblem:
    """Each coefficient one of 0, 0.1, 0.5, 1, 10 and 100."""
    return with_friction(problem, np.random.default_rng(seed).choice([0.0, 0.1, 0.5, 1.0, 10.0, 100.0], problem.n))


def masses_of(problem: ContactProblem) -> Array:
    assert problem.mass is not None
    return problem.mass


CONTACT_FAMILIES: Mapping[str, Callable[[int], ContactProblem]] = MappingProxyType(
    {
        "peg-8": partial(peg, 8),
        "peg-16": partial(peg, 16),
        "peg-32": partial(peg, 32),
        "peg-64": partial(peg, 64),
        **{f"single-{case}": partial(single_body, case) for case in SINGLE_BODY},
        "stack-1": partial(stack, 1),
        "stack-3": partial(stack, 3),
        "stack-5": partial(stack, 5),
        "stack-10": partial(stack, 10),
        "stack-20": partial(stack, 20),
        "stack-5x8": partial(stack, 5, per=8),
        "stack-pushed": stack_pushed,
        "stack-mass-1e3": partial(mass_ratio, 5, ratio=1e3, alternating=True),
        "stack-mass-1e6": partial(mass_ratio, 3, ratio=1e6),
        "stack-lengths": partial(lengths_stack, 4),
        "stack-scaled": partial(lengths_scaled, 5),
        "stack-impact": partial(impact, 3),
        "stack-frictionless": lambda seed: with_friction(stack(3, seed), 0.0),
        "stack-mixed": lambda seed: mixed_friction(stack(3, seed), seed),
        "stack-sticky": lambda seed: with_friction(stack(3, seed), 1e3),
        "peg-lengths": partial(lengths_peg, 16),
        "peg-frictionless": lambda seed: with_friction(peg(16, seed), 0.0),
        "peg-mixed": lambda seed: mixed_friction(peg(16, seed), seed),
        "peg-sticky": lambda seed: with_friction(peg(16, seed), 1e3),
        "duplicated": duplicated,
        "nearly-duplicated": nearly_duplicated,
        "grasp": grasp,
        "grasp-100": partial(grasp, friction=100.0),
        "grasp-tripled": grasp_tripled,
        "plate-144": partial(plate, 12),
        "plate-gaps": partial(plate, 5, gaps=1e-3),
        "incline": incline,
        "painleve-rod": painleve_rod,
        "wedged-16": partial(wedged, 16),
        "wedged-40": partial(wedged, 40),
        "wall": partial(wall, 4, 3),
        "heap-3": partial(heap, 3),
        "heap-6": partial(heap, 6),
        "heap-12": partial(heap, 12),
        "heap-mixed": lambda seed: mixed_friction(heap(6, seed), seed),
        "heap-delassus": partial(heap_delassus, 4),
        "cannonballs": partial(cannonballs, 3),
        "arch": partial(arch, 9),
        "chain": partial(chain, 5),
        "chain-hinged": partial(chain, 4, hinged=True),
        "motor": motor,
        "plane-stack": partial(stack_in_plane, 4),
        "plane-ladder": ladder,
        "plane-arm": partial(arm, 4),
    }
)
