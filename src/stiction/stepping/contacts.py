"""The contacts of a step, for people: who touches whom, where, and with what force."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stiction.bodies.state import names
from stiction.contacts.gather import CONTACT
from stiction.solutions.contact import Mode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from stiction.contacts.gather import Constraints
    from stiction.solutions.contact import ContactSolution


class Touch(NamedTuple):
    """One contact between two geoms.

    gap: distance at the beginning of the step, in m
    position: in the world, in m
    frame: (3, 3) its normal, from geom 1 to geom 2, and tangents, as rows
    force: n, t1, t2 in N, as it acts on body 2, the mean of the step
    world_force: the same in the world's axes
    torque: of torsional and rolling friction, about n, t1, t2 in N m; zero with neither
    """

    geoms: tuple[str, str]
    bodies: tuple[str, str]
    gap: float
    position: NDArray[np.float64]
    frame: NDArray[np.float64]
    force: NDArray[np.float64]
    world_force: NDArray[np.float64]
    mode: Mode
    torque: NDArray[np.float64]


class Contacts:
    """The contacts of a step as arrays, one row a contact; iterate for `Touch`es, print for a table."""

    def __init__(self, model: Any, data: Any, found: Constraints, solution: ContactSolution) -> None:
        chosen = np.flatnonzero(found.kind == CONTACT)
        source = found.source[chosen]
        contact = data.contact
        self.geoms, self.bodies = names(model)
        self.geom = np.array(contact.geom)[source].reshape(-1, 2)
        self.body = np.array(model.geom_bodyid)[self.geom]
        self.gap = found.gap[chosen]
        self.position = np.array(contact.pos)[source].reshape(-1, 3)
        self.frame = np.array(contact.frame)[source].reshape(-1, 3, 3)
        # Tangents that were scaled for unequal friction carry their scale in MuJoCo's rows: forces are read back there.
        rows = found.address[chosen][:, None] + np.arange(6)
        dims = np.array(contact.dim)[source]
        forces = np.append(np.array(data.efc_force), 0.0)
        six = np.where(np.arange(6) < dims[:, None], forces[np.minimum(rows, forces.size - 1)], 0.0)
        self.force, self.torque = six[:, :3], six[:, 3:]
        self.world_force = np.einsum("ica,ic->ia", self.frame, self.force)
        self.mode = solution.mode[chosen]

    def __len__(self) -> int:
        return len(self.gap)

    def __getitem__(self, i: int) -> Touch:
        first, second = self.geom[i]
        one, two = self.body[i]
        return Touch(
            (self.geoms[first], self.geoms[second]), (self.bodies[one], self.bodies[two]), float(self.gap[i]),
            self.position[i], self.frame[i], self.force[i], self.world_force[i], Mode(self.mode[i]),
            self.torque[i],
        )  # fmt: skip

    def __iter__(self) -> Iterator[Touch]:
        return (self[i] for i in range(len(self)))

    def net_force(self, body: str, other: str | None = None) -> NDArray[np.float64]:
        """The force in N, in the world's axes, that contacts exert on a body, or those with one other body only."""
        total = np.zeros(3)
        for touch in self:
            one, two = touch.bodies
            if two == body and other in (None, one):
                total += touch.world_force
            elif one == body and other in (None, two):
                total -= touch.world_force
        return total

    def __str__(self) -> str:
        lines = [f"{'bodies':32} {'gap [m]':>10} {'normal [N]':>12} {'friction [N]':>12}  mode"]
        for touch in self:
            friction = float(np.hypot(touch.force[1], touch.force[2]))
            pair = f"{touch.bodies[0]} – {touch.bodies[1]}"
            lines.append(
                f"{pair:32} {touch.gap:10.2e} {touch.force[0]:12.6g} {friction:12.6g}  {touch.mode.name.lower()}"
            )
        return "\n".join(lines)
