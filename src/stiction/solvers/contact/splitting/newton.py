"""Newton's method for box friction, in velocity space: that of the cone (`cone_newton.step`) with the map of the box.

[AlartCurnier1991]; nonmonotone search [GrippoLamparielloLucidi1986].
"""

from __future__ import annotations

from typing import NamedTuple

from stiction.arrays.compiled import kernel, shared
from stiction.arrays.layout import layout
from stiction.arrays.vectors import THREE
from stiction.solvers.contact.cone_newton.elimination import forget_order
from stiction.solvers.contact.cone_newton.lifting import NEVER
from stiction.solvers.contact.cone_newton.one_contact import Contacts
from stiction.solvers.contact.cone_newton.step import Search, newton
from stiction.solvers.contact.cone_newton.system import System
from stiction.solvers.contact.cone_newton.tolerances import DIVERGED


class Work(NamedTuple):
    """The workspace, for n contacts and m velocities."""

    contacts: Contacts
    search: Search
    system: System


work_sizes, views = layout(Work, "n", "d", "m", "width")


@shared
def sizes(n: int, m: int, width: int) -> tuple[int, int]:
    """Floats and ints of the workspace."""
    floats, ints = work_sizes(n, 3, m, width)
    return floats, ints


@kernel
def box_newton(rows, segments, m, offset, bound, stretch, softness, enough, max_steps, floats, ints, p):
    """Newton's method from p; the best impulses are left in p. Returns the number of steps.

    bound: (n,) largest tangential impulse over the normal one
    stretch: (n,) factor of rows and velocities; impulses are divided by it
    softness: ε over the residual
    """
    n, width = len(p), rows.shape[2]
    contacts, search, system = views(n, 3, m, width, THREE, False, floats, ints)
    forget_order(system.blocks)

    # All contacts in stretched units; mode -1, so that each counts as changed in the first linearisation.
    for i in range(n):
        contacts.friction[i], contacts.stretch[i], system.mode[i] = bound[i], stretch[i], -1
        contacts.lifts[i] = NEVER
        for a in range(4):
            contacts.segments[i, a] = segments[i, a]
        for c in range(3):
            contacts.offset[i, c] = stretch[i] * offset[i, c]
            search.now.p[i, c] = search.best[i, c] = p[i, c] / stretch[i]
            for k in range(width):
                contacts.rows[i, c, k] = stretch[i] * rows[i, c, k]

    # Newton's method, then impulses without stretch.
    _, steps = newton(contacts, search, system, DIVERGED, enough, enough, softness, max_steps, True)
    for i in range(n):
        for c in range(3):
            p[i, c] = stretch[i] * search.best[i, c]
    return steps
