"""Contact forces as arrows, friction cones and a table: numbers only, for whoever draws them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stiction.contacts.gather import CONTACT
from stiction.problems.laws import Frictionless
from stiction.solutions.contact import Mode
from stiction.viewer import palette

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.stepping.contacts import Contacts
    from stiction.stepping.simulation import Simulation

LENGTH = 0.25  # of the longest arrow, over the extent of the scene
LONGEST = 2.0  # times that: an impact may stick out, but not fill the picture
SHORTEST = 0.04
SETTLE = 0.5  # s, in which the scale follows the forces
CONE = 0.12  # height of a friction cone, over the extent of the scene
ROUNDING = 1e-12  # of the strongest force: less is shown as none


class Look(NamedTuple):
    """How the arrows of a mode look: distinguished by colour (0 to 255), and by shape where there is none.

    shaft, head: radii, over the length of the longest arrow
    point: length of the head, over the same
    """

    colour: tuple[int, int, int]
    shaft: float
    head: float
    point: float
    symbol: str
    words: str


LOOKS = {
    Mode.STICK: Look(palette.STICK, 0.035, 0.065, 0.14, "●", "blue, thick"),
    Mode.SLIDE: Look(palette.SLIDE, 0.018, 0.075, 0.10, "→", "orange, thin with a broad head"),
}
PULL = Look(palette.PULL, 0.02, 0.05, 0.1, "", "green")
TORQUE = Look(palette.PURPLE, 0.025, 0.06, 0.2, "", "purple, with a long head, along the axis")


class Scale:
    """How long a force is drawn: the strongest of a moment as long as the scene likes, others in proportion.

    It follows the forces over half a second of simulated time, so that arrows can be compared from one picture to the
    next and an impact does not make all others vanish.
    """

    def __init__(self, extent: float) -> None:
        self.size = LENGTH * extent
        self.factor = 1.0
        self.reference = 0.0
        self._time = -math.inf

    def follow(self, strongest: float, time: float) -> None:
        if not strongest > 0.0:
            return
        passed = time - self._time
        if self.reference <= 0.0 or not 0.0 <= passed < math.inf:
            self.reference = strongest
        else:
            self.reference *= (strongest / self.reference) ** (1.0 - math.exp(-passed / SETTLE))
        self._time = time

    def drawn(self, forces: NDArray[np.float64]) -> NDArray[np.float64]:
        """(n, 3) forces in N to arrows in m."""
        if self.reference <= 0.0 or not len(forces):
            return np.zeros((len(forces), 3))
        sizes = np.linalg.norm(forces, axis=1)
        lengths = np.minimum(self.factor * sizes / self.reference, LONGEST) * self.size
        return np.asarray(forces * (lengths / np.maximum(sizes, np.finfo(float).tiny))[:, None])


def strongest(contacts: Contacts) -> float:
    return float(np.linalg.norm(contacts.world_force, axis=1).max(initial=0.0))


def arrows(simulation: Simulation, contacts: Contacts, scale: Scale) -> dict[Mode, NDArray[np.float64]]:
    """(k, 2, 3) from and to, of each mode: forces as they act on the body that moves, of two on the second."""
    scale.follow(strongest(contacts), simulation.time)
    drawn = scale.drawn(contacts.world_force) * acting(simulation.model, contacts)[:, None]
    seen = np.linalg.norm(drawn, axis=1) >= SHORTEST * scale.size
    ends = np.stack([contacts.position, contacts.position + drawn], axis=1)
    return {mode: ends[seen & (shown(contacts.mode) == mode)] for mode in LOOKS}


def torques(simulation: Simulation, contacts: Contacts, scale: Scale) -> NDArray[np.float64]:
    """(k, 2, 3) from and to: torques of torsional and rolling friction along their axes, as `arrows` takes forces.

    scale: of torques, in N m
    """
    turning = np.einsum("ica,ic->ia", contacts.frame, contacts.torque)
    scale.follow(float(np.linalg.norm(turning, axis=1).max(initial=0.0)), simulation.time)
    drawn = scale.drawn(turning) * acting(simulation.model, contacts)[:, None]
    seen = np.linalg.norm(drawn, axis=1) >= SHORTEST * scale.size
    return np.asarray(np.stack([contacts.position, contacts.position + drawn], axis=1)[seen])


def shown(mode: Any) -> Any:
    """The mode whose look a contact has: one that spins or rolls against friction looks like one that slides."""
    return np.minimum(mode, Mode.SLIDE)


def acting(model: Any, contacts: Contacts) -> NDArray[np.float64]:
    """-1 where the second body is fixed: the force on the first is of interest there."""
    fixed = np.asarray(model.body_weldid)[contacts.body] == 0
    return np.where(fixed[:, 1] & ~fixed[:, 0], -1.0, 1.0)


class Cones(NamedTuple):
    """Friction cones, a row each: apex, quaternion that turns z to the normal, size along t1, t2, normal; and mode."""

    apex: NDArray[np.float64]
    quaternion: NDArray[np.float64]
    size: NDArray[np.float64]
    mode: NDArray[np.int64]


def friction_of(simulation: Simulation) -> NDArray[np.float64]:
    """(n, 2) coefficients along both tangents, of the contacts of the last step."""
    gathered = simulation.engine.gathered
    assert gathered is not None
    source = gathered.source[gathered.kind == CONTACT]
    return np.array(simulation.data.contact.friction)[source, :2]


def cones(
    simulation: Any,
    contacts: Contacts,
    friction: NDArray[np.float64] | None = None,
    only: int | None = None,
    height: float | None = None,
) -> Cones:
    """Cones of the contacts that carry force, opening to where the force on the moving body may point.

    friction: (n, 2) coefficients; those of the simulation's last step if None
    only: this contact alone, whether it carries force or not
    height: in m; a part of the scene's extent if None
    """
    if isinstance(simulation.law, Frictionless) or not len(contacts):
        return Cones(np.zeros((0, 3)), np.zeros((0, 4)), np.zeros((0, 3)), np.zeros(0, np.int64))
    if friction is None:
        friction = friction_of(simulation)
    carries = contacts.force[:, 0] > 0.0 if only is None else np.arange(len(contacts)) == only
    pressed = np.flatnonzero(carries & np.all(friction > 0.0, axis=1))
    height = CONE * float(simulation.model.stat.extent) if height is None else height
    size = height * np.column_stack([friction, np.ones(len(friction))])[pressed]
    # A cone as wide as the scene shows nothing: with friction over one, the height shrinks instead.
    size /= np.maximum(size[:, :2].max(axis=1, initial=0.0) / height, 1.0)[:, None]
    sign = acting(simulation.model, contacts)[pressed]
    frame = contacts.frame[pressed]
    turns = np.stack([frame[:, 1], sign[:, None] * frame[:, 2], sign[:, None] * frame[:, 0]], axis=2)
    return Cones(contacts.position[pressed], quaternions(turns), size, np.asarray(contacts.mode)[pressed])


def outline(law: Any) -> tuple[int, float, float]:
    """Corners of a friction cone of size one: how many, the angle of the first from t1, and how far out they are."""
    corners = law.corners()
    if corners is None:
        return 32, 0.0, 1.0
    x, y = corners[0]
    return len(corners), math.atan2(y, x), math.hypot(x, y)


def quaternions(turns: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 3, 3) rotations to (n, 4) w, x, y, z."""
    from scipy.spatial.transform import Rotation

    if not len(turns):
        return np.zeros((0, 4))
    return np.asarray(Rotation.from_matrix(turns).as_quat(scalar_first=True))


def strongest_first(contacts: Contacts, most: int) -> NDArray[np.int64]:
    return np.asarray(np.argsort(-contacts.force[:, 0], kind="stable")[:most])


def rows(contacts: Contacts, most: int = 40) -> list[tuple[str, str, float, float, float]]:
    """Who touches whom, mode, normal force and friction in N, gap in m; the strongest first."""
    table = []
    floor = ROUNDING * strongest(contacts)
    for i in strongest_first(contacts, most):
        touch = contacts[int(i)]
        word = touch.mode.name.lower()
        symbol = LOOKS[Mode(shown(touch.mode))].symbol if touch.mode != Mode.OPEN else "○"
        friction = float(np.hypot(touch.force[1], touch.force[2]))
        friction = friction if friction > floor else 0.0
        pair = f"{touch.bodies[0]} – {touch.bodies[1]}"
        table.append((pair, f"{symbol} {word}", float(touch.force[0]), friction, touch.gap))
    return table
