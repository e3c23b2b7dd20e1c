"""The impulses at the end of a path, and how well they obey the law."""

from __future__ import annotations

from stiction.arrays.compiled import kernel, sums
from stiction.solvers.contact.cell_lemke.cells import (
    CORNER,
    EDGE,
    FIRST,
    FREE,
    INACTIVE,
    LINE,
    NORMAL,
    SECOND,
    SIZE,
    neighbour,
)
from stiction.solvers.contact.cell_lemke.precision import polish
from stiction.solvers.contact.cell_lemke.runs import velocity_add, velocity_dot
from stiction.solvers.contact.cell_lemke.tolerances import REFINE


@kernel
def read_answer(contacts, cells, basis, watch, impulse):
    """The impulses of the final basis, polished if that helps; returns their natural map."""
    impulses(contacts, cells, basis.y, impulse)
    found = natural_map(contacts, basis, watch, impulse)
    if found > REFINE and basis.now[SIZE] > 0:
        polish(contacts, basis, watch)
        impulses(contacts, cells, basis.y, impulse)
        found = natural_map(contacts, basis, watch, impulse)
    return found


@kernel
def impulses(contacts, cells, y, out):
    """(n, 3) impulses of the closed contacts, kept inside the pyramid."""
    d = contacts.directions
    for i in range(len(out)):
        state, column = cells.state[i], cells.column[i]
        # Along the normal
        out[i, 0] = out[i, 1] = out[i, 2] = 0.0
        if column[NORMAL] == INACTIVE:
            continue
        theta = max(y[column[NORMAL]], 0.0)
        out[i, 0] = theta
        if state <= FREE:
            continue
        # Along one or two directions of the pyramid; a sliding contact is at its friction bound.
        b, bound = cells.direction[i], contacts.friction[i] * theta
        p_b, p_o = bound, 0.0
        if state == LINE:
            p_b = min(max(y[column[FIRST]], 0.0), bound)
        elif state == EDGE:
            p_o = min(max(y[column[FIRST]], 0.0), bound)
            p_b = bound - p_o
        elif state == CORNER:
            p_b, p_o = max(y[column[FIRST]], 0.0), max(y[column[SECOND]], 0.0)
        o = neighbour(b, cells.side[i], len(d)) if state in (EDGE, CORNER) else b
        out[i, 1] = p_b * d[b, 0] + p_o * d[o, 0]
        out[i, 2] = p_b * d[b, 1] + p_o * d[o, 1]


@sums
def natural_map(contacts, basis, watch, impulse):
    """The judge's residual, from the impulses alone: largest violation of the normal and the friction law.

    In units of the largest free contact velocity, both in m/s; never smaller than in the normal form.
    """
    x, segments, d = basis.x, contacts.segments, contacts.directions
    # The velocities that the impulses make.
    for l in range(len(x)):
        x[l] = contacts.free[l]
    for i in range(len(impulse)):
        for c in range(3):
            if impulse[i, c] != 0.0:
                velocity_add(x, impulse[i, c], contacts.rows[i, c], segments[i])
    # Contact by contact, the normal law and the friction law.
    worst = 0.0
    for i in range(len(impulse)):
        nu = velocity_dot(contacts.rows[i, 0], segments[i], x) + contacts.bias[i, 0]
        here = abs(min(nu, impulse[i, 0]))
        if contacts.friction[i] > 0.0:
            u1 = velocity_dot(contacts.rows[i, 1], segments[i], x) + contacts.bias[i, 1]
            u2 = velocity_dot(contacts.rows[i, 2], segments[i], x) + contacts.bias[i, 2]
            bound = contacts.friction[i] * impulse[i, 0]
            here = max(here, friction_map(d, bound, impulse[i, 1], impulse[i, 2], u1, u2))
        worst = max(worst, here * watch.weight[i])
    return worst


@sums
def friction_map(d, bound, p1, p2, u1, u2):
    """Largest of |min(bound − Σ p, λ)| and |min(p_j, σ_j)|, λ the sliding speed along the pyramid's directions."""
    lam, count = 0.0, len(d)
    for j in range(count):
        lam = max(lam, -(d[j, 0] * u1 + d[j, 1] * u2))
    # Only the two directions around the impulse have a part of it.
    b, o, p_b, p_o = sector(d, p1, p2)
    worst = abs(min(bound - p_b - p_o, lam))
    for j in range(count):
        p = p_b if j == b else p_o if j == o else 0.0
        worst = max(worst, abs(min(d[j, 0] * u1 + d[j, 1] * u2 + lam, p)))
    return worst


@sums
def sector(d, p1, p2):
    """Neighbouring directions b and o of the pyramid between which a tangential impulse lies, and its parts."""
    count = len(d)
    if count == 2:  # one tangent
        b, o = (0, 1) if p1 >= 0.0 else (1, 0)
        return b, o, p1 / d[b, 0], 0.0
    # The sector whose middle is nearest to the impulse.
    b, furthest = 0, -1.0
    for j in range(count):
        k = neighbour(j, 1, count)
        along = (d[j, 0] + d[k, 0]) * p1 + (d[j, 1] + d[k, 1]) * p2
        if j == 0 or along > furthest:
            b, furthest = j, along
    # Its two parts by Cramer's rule.
    o = neighbour(b, 1, count)
    area = d[b, 0] * d[o, 1] - d[b, 1] * d[o, 0]
    return b, o, (p1 * d[o, 1] - p2 * d[o, 0]) / area, (p2 * d[b, 0] - p1 * d[b, 1]) / area
