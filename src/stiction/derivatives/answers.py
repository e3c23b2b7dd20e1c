"""The factored system (`reduced`), solved both ways: for the change of an answer, and for gradients by the data."""

from __future__ import annotations

from stiction.arrays.compiled import kernel
from stiction.arrays.dense import dot, lu_solve, lu_solve_transposed, subtract_multiple
from stiction.arrays.runs import add_row, row_dot
from stiction.derivatives.factors import least, push
from stiction.derivatives.reduced import (
    ALIKE,
    COMPLIANT,
    INNER,
    LEFT,
    REGULAR,
    RIGHT,
    UNDETERMINED,
    has_compliance,
    room_of,
    work_of,
)


@kernel
def through(given, work, x, out):
    """out = A x."""
    for j in range(len(x)):
        out[j] = x[j]
    if work.flags[COMPLIANT] == 0:
        return
    d = work.C.shape[1]
    for i in range(len(work.C)):
        if has_compliance(work, i):
            for c in range(1, d):
                moved = row_dot(given.rows[i, c], given.runs[i], x)
                for e in range(1, d):
                    if work.C[i, e, c] != 0.0:
                        add_row(given.rows[i, e], given.runs[i], work.C[i, e, c] * moved, out)


@kernel
def across(work, lowest, x, transposed, right, out):
    """out = Z (Yᵀ A Z)⁻¹ Yᵀ x, or its transpose; right: (m,) scratch."""
    # Where x is seen, and where the answer lies.
    flags = work.flags
    may = work.zero if flags[ALIKE] != 0 else work.may
    from_side, to_side = (work.zero, may) if transposed else (may, work.zero)
    seen, given = (work.right, flags[RIGHT]) if transposed else (work.left, flags[LEFT])
    wanted, count = (work.left, flags[LEFT]) if transposed else (work.right, flags[RIGHT])
    for j in range(len(x)):
        out[j] = 0.0

    # Project onto the directions that the rows leave free.
    for a in range(given):
        j = seen[a]
        low, high = from_side.low[j], from_side.high[j]
        right[a] = dot(from_side.O[j, low:], x[low:], high - low)

    # Solve the reduced system.
    if flags[INNER] == REGULAR:
        if transposed:
            lu_solve_transposed(work.factored, work.pivots, count, right)
        else:
            lu_solve(work.factored, work.pivots, count, right)

    # Back to velocities; an undetermined motion is the smallest.
    for b in range(count):
        j, part = wanted[b], 0.0
        if flags[INNER] == UNDETERMINED:
            for a in range(given):
                part += (lowest[a, b] if transposed else lowest[b, a]) * right[a]
        else:
            part = right[b]
        low, high = to_side.low[j], to_side.high[j]
        subtract_multiple(out[low:], -part, to_side.O[j, low:], high - low)


@kernel
def answer_columns(given, loops, lowest, pushing, change, answer, memory):
    """Fill the change of the answer, column by column; return the equations' residual and the size of their terms.

    loops: N, those of B, and M, those of F; pushing: whether impulses are asked for
    change: r (columns, m) whitened momentum, overwritten, e and f (columns, n, d) velocities and impulses at contacts
    answer: y (columns, m), p and u (columns, n, d), in the same units; off (columns,) the largest velocity, in m/s,
        that should be zero and is not
    """
    (N, M), (r, e, f), (y, p, u, off) = loops, change, answer
    work, room = work_of(given, memory), room_of(given, memory)
    m, n, d = r.shape[1], e.shape[1], e.shape[2]
    groups, bases, rows, runs, C = work.groups, work.bases, given.rows, given.runs, work.C
    may = work.zero if work.flags[ALIKE] != 0 else work.may
    s, small, extra, a, here = room.a[0], room.a[1], room.a[2], room.a[3], room.a[4]
    first, second, third, fourth = room.x[0], room.x[1], room.x[2], room.x[3]
    over, size, compliant = 0.0, 0.0, work.flags[COMPLIANT] != 0
    for column in range(len(r)):
        # In the normal form: r + Lᵀ (f - C e) against Fᵀ a, and B y = -Qᵀ e.
        right, direct, given_u = r[column], p[column], u[column]
        asked = False

        # Rates and impulses that are given at contacts.
        for i in range(n):
            for c in range(d):
                given_u[i, c] = e[column, i, c] * given.scale[i]
            for c in range(d):
                part = f[column, i, c] / given.scale[i]
                if compliant:
                    for b in range(1, d):
                        part -= C[i, c, b] * given_u[i, b]
                direct[i, c] = part
                if part != 0.0:
                    add_row(rows[i, c], runs[i], part, right)

            # Rates that the rows of active contacts must have.
            for k in range(bases.count[i]):
                total = 0.0
                for c in range(d):
                    total -= bases.zero[i, c, k] * given_u[i, c]
                s[groups.row[i] + k] = total
                size = max(size, abs(total))
                asked = asked or total != 0.0

        # y₀ = B⁺ s, then what is left of the motion.
        for j in range(m):
            first[j], second[j] = 0.0, 0.0
        if asked:
            least(work.zero, groups, runs, N, s, first, small, extra)
            through(given, work, first, second)
        for j in range(m):
            size = max(size, abs(right[j]))
            second[j] = right[j] - second[j]

        # The motion that active rows leave free.
        across(work, lowest, second, False, third, fourth)
        for j in range(m):
            y[column, j] = first[j] + fourth[j]
            size = max(size, abs(y[column, j]))

        # The impulses that make it.
        if pushing:
            through(given, work, y[column], second)
            for j in range(m):
                second[j] -= right[j]
                third[j] = second[j]
            push(may, groups, runs, M, second, a, small, extra)

        # Back to contacts, in their own units; what the equations leave over.
        most, off[column] = at_contacts(given, work, s, a, y[column], third, pushing, here, direct, given_u)
        over = max(over, most)
        for j in range(m if pushing else 0):
            over = max(over, abs(third[j]))
    return over, size


@kernel
def at_contacts(given, work, s, a, y, left, pushing, here, p, u):
    """Impulses p and velocities u at contacts, of rows' a and the motion y, from the normal form to their own units.

    left: (m,) momentum that impulses have to make, less what they do here; here: scratch; returns the largest error of
    rows that should have the rates s, in the normal form and in m/s
    """
    bases, groups, rows, runs, C = work.bases, work.groups, given.rows, given.runs, work.C
    d, compliant, over, off = p.shape[1], work.flags[COMPLIANT] != 0, 0.0, 0.0
    for i in range(len(p)):
        # The velocity that the motion makes here, and how far it is from the rates that were asked for.
        for c in range(d):
            here[c] = row_dot(rows[i, c], runs[i], y)
        for k in range(bases.count[i]):
            total = -s[groups.row[i] + k]
            for c in range(d):
                total += bases.zero[i, c, k] * here[c]
            over, off = max(over, abs(total)), max(off, abs(total) / given.scale[i])

        # Impulses of the rows, what was given, and what turning friction adds.
        for c in range(d if pushing else 0):
            part = 0.0
            for k in range(bases.count[i]):
                part += bases.may[i, c, k] * a[groups.row[i] + k]
            if part != 0.0:
                add_row(rows[i, c], runs[i], -part, left)
            part += p[i, c]
            if compliant:
                for b in range(1, d):
                    part -= C[i, c, b] * here[b]
            p[i, c] = part * given.scale[i]

        # Velocities in units of the contact.
        for c in range(d):
            u[i, c] = (here[c] + u[i, c]) / given.scale[i]
    return over, off


@kernel
def solve_transposed(given, loops, lowest, x, p, u, r, e, f, memory):
    """Gradients of a function of the answer by momentum r, contact velocities e and contact impulses f.

    x: (m,) gradient by whitened velocities; p, u: (n, d) by impulses and velocities of contacts, in the normal form
    """
    N, M = loops
    work, room = work_of(given, memory), room_of(given, memory)
    m, n, d = len(x), p.shape[0], p.shape[1]
    groups, bases, rows, runs, C = work.groups, work.bases, given.rows, given.runs, work.C
    may = work.zero if work.flags[ALIKE] != 0 else work.may
    s, small, extra = room.a[0], room.a[1], room.a[2]
    y, pushed, image, right = room.x[0], room.x[1], room.x[2], room.x[3]

    # Velocities at contacts follow from motions, and impulses from both.
    for j in range(m):
        y[j] = x[j]
    some = False
    for i in range(n):
        for k in range(bases.count[i]):
            total = 0.0
            for c in range(d):
                total += bases.may[i, c, k] * p[i, c]
            s[groups.row[i] + k] = total
            some = some or total != 0.0

        # Through friction that turns, gradients by impulses add to those by velocities.
        for c in range(d):
            part = u[i, c]
            if work.flags[COMPLIANT] != 0:
                for b in range(1, d):
                    part -= C[i, b, c] * p[i, b]
            if part != 0.0:
                add_row(rows[i, c], runs[i], part, y)

    # Through the transposed system.
    for j in range(m):
        pushed[j] = 0.0
    if some:
        least(may, groups, runs, M, s, pushed, small, extra)
        through(given, work, pushed, image)
        for j in range(m):
            y[j] += image[j]

    # Motions that active rows leave free, then gradients that act through the rates of these rows alone.
    across(work, lowest, y, True, right, r)
    through(given, work, r, image)
    for j in range(m):
        y[j] -= image[j]
        r[j] -= pushed[j]
    push(work.zero, groups, runs, N, y, s, small, extra)

    # Impulses and velocities at contacts.
    for i in range(n):
        for c in range(d):
            f[i, c] = p[i, c] + row_dot(rows[i, c], runs[i], r)
        for c in range(d):
            total = u[i, c]
            for k in range(bases.count[i]):
                total -= bases.zero[i, c, k] * s[groups.row[i] + k]
            if work.flags[COMPLIANT] != 0:
                for b in range(1, d):
                    total -= C[i, b, c] * f[i, b]
            e[i, c] = total
