"""One contact chosen for a closer look, and found again from moment to moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.solutions.contact import Mode
from stiction.viewer.forces import ROUNDING, strongest

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.stepping.contacts import Contacts
    from stiction.viewer.history import Moment

MOST = 100  # contacts in a list


class Pick:
    """A contact is the same as before if the same geoms touch, and it is the nearest of theirs.

    Its number in MuJoCo's list may change in every step.
    """

    def __init__(self, contacts: Contacts, number: int) -> None:
        self.geoms = tuple(int(each) for each in contacts.geom[number])
        self.position: NDArray[np.float64] = np.array(contacts.position[number])
        self.words = label(contacts, number).split(": ", 1)[1]

    def find(self, contacts: Contacts | None) -> int | None:
        """Its number now; None while its geoms do not touch."""
        if contacts is None:
            return None
        same = np.flatnonzero((contacts.geom == np.array(self.geoms)).all(axis=1))
        if not len(same):
            return None
        nearest = same[np.argmin(np.linalg.norm(contacts.position[same] - self.position, axis=1))]
        self.position = np.array(contacts.position[nearest])
        return int(nearest)


def label(contacts: Contacts, number: int) -> str:
    """As lists name it: its number from 1, and who touches."""
    one, two = contacts.body[number]
    return f"{number + 1}: {contacts.bodies[one]} – {contacts.bodies[two]}"


def labels(contacts: Contacts | None) -> tuple[str, ...]:
    return () if contacts is None else tuple(label(contacts, i) for i in range(min(len(contacts), MOST)))


def facts(moment: Moment, number: int) -> list[tuple[str, str]]:
    """A description of a contact, in words and SI units."""
    contacts, friction, slip = moment.contacts, moment.friction, moment.slip
    assert contacts is not None
    assert friction is not None
    assert slip is not None
    touch = contacts[number]
    normal, along = float(touch.force[0]), np.asarray(touch.force[1:], float)
    along = np.where(np.abs(along) > ROUNDING * strongest(contacts), along, 0.0)
    lines: list[tuple[str, Any]] = [
        ("contact", f"{number + 1} of {len(contacts)}"),
        ("bodies", f"{touch.bodies[0]} – {touch.bodies[1]}"),
        ("geoms", f"{touch.geoms[0]} – {touch.geoms[1]}"),
        ("mode", touch.mode.name.lower()),
        ("normal force", f"{normal:.5g} N"),
        ("friction", f"{float(np.hypot(*along)):.5g} N ({along[0]:.4g}, {along[1]:.4g})"),
        ("friction coefficient", coefficient(friction[number])),
    ]
    if normal > 0.0 and (friction[number] > 0.0).all():
        share = float(np.hypot(*(along / (friction[number] * normal))))
        lines.append(("of the cone", f"{100.0 * share:.1f} %"))
    lines.append(("gap", f"{touch.gap:.3e} m"))
    if touch.mode == Mode.SLIDE:
        lines.append(("slip", f"{float(np.hypot(*slip[number])):.4g} m/s"))
    x, y, z = touch.position
    lines.append(("position", f"{x:.4f}, {y:.4f}, {z:.4f} m"))
    return lines


def coefficient(both: NDArray[np.float64]) -> str:
    one, two = both
    return f"{one:.4g}" if one == two else f"{one:.4g}, {two:.4g}"
