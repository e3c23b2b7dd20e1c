"""The map of box friction, and its slope, for Newton's method in velocity space (`step`).

    p_n = max(0, p_n - u_n),      p_t = mid(-side, side, p_t - u_t),      side = mu max(0, p_n - u_n)

With u = L x + offset the map is piecewise linear. Linearised at the present point, the law of a contact is
dp = constant - slope du: an open contact loses its impulse; a closed one stops its normal velocity and a sticking
tangent its own, both softened by ε; a sliding tangent follows the normal impulse. Once each contact is on the right
piece of the map, a step without ε is exact.
"""

from __future__ import annotations

from stiction.arrays.compiled import kernel
from stiction.arrays.runs import rows_dot
from stiction.arrays.vectors import at, plus, put
from stiction.solvers.contact.cone_newton.one_contact import set_velocity
from stiction.solvers.contact.cone_newton.system import OPEN

STICKS, UPPER, LOWER = 0, 1, 2  # pieces of a tangent; of a contact: 1 + 3 first + second, or OPEN


@kernel
def evaluate_box(contacts, point):
    """Set x and u from p; returns the largest entry of the map's residual and its squared norm. NaN is passed on."""
    # Velocities.
    set_velocity(contacts, point)
    p, u, zero = point.p, point.u, contacts.zero
    largest, square = 0.0, 0.0
    for i in range(len(p)):
        moved = rows_dot(contacts.rows[i], contacts.segments[i], point.x, zero)
        put(u, i, plus(moved, at(contacts.offset, i, zero)))

        # Distance of the impulse from its image under the map.
        normal = max(p[i, 0] - u[i, 0], 0.0)
        side = contacts.friction[i] * normal
        f0 = abs(p[i, 0] - normal)
        f1 = abs(p[i, 1] - min(max(p[i, 1] - u[i, 1], -side), side))
        f2 = abs(p[i, 2] - min(max(p[i, 2] - u[i, 2], -side), side))

        # Written such that NaN becomes the largest entry.
        worst = max(f0, f1, f2)
        square += f0 * f0 + f1 * f1 + f2 * f2
        if not worst <= largest:
            largest = worst
    return largest, square


@kernel
def linearise_box(contacts, point, epsilon, system):
    """Set dp = constant - slope du of each contact, with two tangents; returns how many changed their piece."""
    p, u, constant, slope = point.p, point.u, system.constant, system.slope
    stiffness, changed = 1.0 / epsilon, 0
    for i in range(len(p)):
        normal, piece = p[i, 0] - u[i, 0], OPEN

        # Open: the impulse vanishes. Closed: u_n + du_n + ε dp_n = 0.
        if normal <= 0.0:
            constant[i, 0], constant[i, 1], constant[i, 2] = -p[i, 0], -p[i, 1], -p[i, 2]
        else:
            constant[i, 0], slope[i, 0] = -stiffness * u[i, 0], stiffness
            slope[i, 4] = slope[i, 6] = slope[i, 7] = 0.0
            piece = 1
            for t in range(1, 3):
                # Entries 11 and 22 of the slope stand at 3 and 5.
                y, side, own = p[i, t] - u[i, t], contacts.friction[i] * normal, 2 * t + 1
                tangent = UPPER if y > side else LOWER if y < -side else STICKS
                piece += tangent * (3 if t == 1 else 1)
                # Sticking: u_t + du_t + ε dp_t = 0.
                if tangent == STICKS:
                    constant[i, t], slope[i, t], slope[i, own] = -stiffness * u[i, t], 0.0, stiffness
                else:
                    # Sliding: p_t + dp_t = ± mu (p_n + dp_n).
                    rate = contacts.friction[i] if tangent == UPPER else -contacts.friction[i]
                    constant[i, t] = rate * (p[i, 0] + constant[i, 0]) - p[i, t]
                    slope[i, t], slope[i, own] = rate * stiffness, 0.0

        # Count changes of the active set.
        if piece != system.mode[i]:
            system.mode[i] = piece
            changed += 1
    return changed
