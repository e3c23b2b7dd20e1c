"""LU factors of A = I + sum of L_iᵀ G_i L_i by fronts (see `elimination`): assembly, factors, solution.

Front after front, in place: the rows of its velocities and, transposed, the columns below them are two panels whose
rows are long, so that all arithmetic goes along them. Pivots are sought among the velocities of a front, not across
fronts, so that the order is kept; the caller corrects the loss of digits by refinement.
"""

from __future__ import annotations

from stiction.arrays.compiled import kernel, sums
from stiction.arrays.dense import dot, subtract_multiple
from stiction.arrays.layout import cut
from stiction.arrays.vectors import column, inner, put_column
from stiction.solvers.contact.cone_newton.elimination import blocks_of
from stiction.solvers.contact.cone_newton.slope import through


@kernel
def panels(blocks, f):
    """The rows of a front, of its own velocities and of those left; and the columns below them, transposed."""
    s, w, begin = blocks.base[f + 1] - blocks.base[f], blocks.width[f], blocks.panel[f]
    return cut(blocks.values, begin, (s, w)), cut(blocks.values, begin + s * w, (s, w - s))


@kernel
def clear(blocks):
    """A = I."""
    for k in range(blocks.panel[blocks.total[1]]):
        blocks.values[k] = 0.0
    for f in range(blocks.total[1]):
        U, _ = panels(blocks, f)
        for k in range(len(U)):
            U[k, k] = 1.0


@kernel
def find_columns(blocks, f):
    """Set `column` of each block of a front: where it begins among the columns of its rows."""
    at = 0
    for z in range(blocks.begin[f], blocks.begin[f + 1]):
        block = blocks.members[z]
        blocks.column[block] = at
        at += blocks.size[block]


@kernel
def add_law(rows, segment, slope, i, zero, blocks):
    """A += Lᵀ slope L of contact i."""
    own, front, size = blocks.own, blocks.front, blocks.size
    count = blocks_of(rows, segment, blocks, own)
    sort(own, count, blocks.place)
    L, G = gather_rows(rows, segment, slope, i, count, zero, blocks)

    # Each block's rows, with all blocks of the contact that its front has; columns below the front, transposed.
    group, f, at = 0, -1, 0
    for x in range(count):
        if front[own[x]] != f:
            group, f, first = x, front[own[x]], at
            find_columns(blocks, f)
        (U, T), row = panels(blocks, f), blocks.place[own[x]] - blocks.base[f]
        other = first
        for y in range(group, count):
            add_product(G, at, size[own[x]], L, other, size[own[y]], zero, U, row, blocks.column[own[y]])
            if front[own[y]] != f:
                place = blocks.column[own[y]] - len(U)
                add_product(L, at, size[own[x]], G, other, size[own[y]], zero, T, row, place)
            other += size[own[y]]
        at += size[own[x]]


@kernel
def sort(own, count, place):
    """Sort blocks by the order of elimination."""
    for z in range(1, count):
        block, y = own[z], z
        while y > 0 and place[own[y - 1]] > place[block]:
            own[y] = own[y - 1]
            y -= 1
        own[y] = block


@kernel
def gather_rows(rows, segment, slope, i, count, zero, blocks):
    """L of a contact with its blocks in this order, and slopeᵀ L; views of the scratch."""
    d, at = len(rows), 0
    L, G = blocks.rows[:d], blocks.rows[d:]
    for x in range(count):
        # The second run lies behind the first.
        first, size = blocks.start[blocks.own[x]], blocks.size[blocks.own[x]]
        within = segment[0] <= first < segment[0] + segment[1]
        source = first - segment[0] if within else first - segment[2] + segment[1]
        for k in range(size):
            v = column(rows, source + k, zero)
            put_column(L, at + k, v)
            put_column(G, at + k, through(slope, i, v))
        at += size
    return L, G


@sums
def add_product(A, a, rows, B, b, columns, zero, out, row, at):
    """out += Aᵀ B of these columns of A and B, at this row and column of `out`."""
    # The same for free bodies, whose loops are unrolled.
    if rows == 6 and columns == 6:
        for j in range(6):
            v, target = column(A, a + j, zero), out[row + j]
            for k in range(6):
                target[at + k] += inner(v, column(B, b + k, zero))
        return
    for j in range(rows):
        v, target = column(A, a + j, zero), out[row + j]
        for k in range(columns):
            target[at + k] += inner(v, column(B, b + k, zero))


@kernel
def factor_blocks(blocks):
    """A = L U in place; False if the pivots of a front vanish."""
    for f in range(blocks.total[1]):
        U, T = panels(blocks, f)
        if not factor_front(U, T, blocks.pivots[blocks.base[f] :]):
            return False
        if len(U) > 1 or any_entry(U[0], 1):
            update(blocks, f, U, T)
    return True


@kernel
def any_entry(row, first):
    """Whether a row has nonzero entries from here on: that of dry friction has none."""
    for k in range(first, len(row)):
        if row[k] != 0.0:
            return True
    return False


@kernel
def factor_front(U, T, pivots):
    """P D = L R for the square D of the rows U, with the diagonal of R inverted; U = L⁻¹ P U, T = R⁻ᵀ T."""
    s, w = U.shape
    for k in range(s):
        # Partial pivoting: exchange rows so that the largest entry is the pivot.
        best = k
        for i in range(k + 1, s):
            if abs(U[i, k]) > abs(U[best, k]):
                best = i
        pivots[k] = best
        if not abs(U[best, k]) > 0.0:
            return False
        if best != k:
            for j in range(w):
                U[k, j], U[best, j] = U[best, j], U[k, j]

        # Eliminate below the pivot, and in the transposed columns.
        inverse = 1.0 / U[k, k]
        U[k, k] = inverse
        scale(T[k], inverse)
        for i in range(k + 1, s):
            factor = U[i, k] * inverse
            U[i, k] = factor
            subtract_multiple(U[i, k + 1 :], factor, U[k, k + 1 :], w - k - 1)
            subtract_multiple(T[i], U[k, i], T[k], w - s)
    return True


@kernel
def scale(row, factor):
    """row *= factor."""
    for j in range(len(row)):
        row[j] *= factor


@kernel
def update(blocks, f, U, T):
    """Subtract what the elimination of a front changes in later ones."""
    members, front, size, runs = blocks.members, blocks.front, blocks.size, blocks.own
    s, z, end = len(U), blocks.left[f], blocks.begin[f + 1]
    at = 0
    while z < end:
        # The blocks that the next of these fronts eliminates.
        g, group, width = front[members[z]], z, 0
        find_columns(blocks, g)
        while group < end and front[members[group]] == g:
            width += size[members[group]]
            group += 1
        V, W = panels(blocks, g)

        # Rows of these, from the first of them on; columns below the front, transposed.
        count = find_runs(blocks, z, end, at, 0, runs)
        subtract_rows(blocks, z, group, g, T, at, U, s, count, runs, V)
        count = find_runs(blocks, group, end, at + width, len(V), runs)
        subtract_rows(blocks, z, group, g, U, s + at, T, 0, count, runs, W)
        z = group
        at += width


@kernel
def find_runs(blocks, begin, end, at, less, runs):
    """Stretches of these blocks of a front that are together in another, too.

    Each as (column from `at` on, column in the other front less `less`, length). Returns how many there are.
    """
    count, next_at = 0, -1
    for z in range(begin, end):
        block = blocks.members[z]
        place, size = blocks.column[block] - less, blocks.size[block]
        if place == next_at:
            runs[3 * count - 1] += size
        else:
            runs[3 * count], runs[3 * count + 1], runs[3 * count + 2] = at, place, size
            count += 1
        next_at = place + size
        at += size
    return count


@kernel
def subtract_rows(blocks, z, end, g, A, a, B, b, count, runs, out):
    """out -= Aᵀ B: for rows of these blocks in front g, columns of A from a on, and runs of columns of B from b on."""
    for y in range(z, end):
        block = blocks.members[y]
        row, size = blocks.place[block] - blocks.base[g], blocks.size[block]
        for k in range(count):
            source, target, length = b + runs[3 * k], runs[3 * k + 1], runs[3 * k + 2]
            j = 0
            while j + 2 <= size:
                subtract_two(A, a + j, B, source, length, out[row + j], out[row + j + 1], target)
                j += 2
            if j < size:
                subtract_one(A, a + j, B, source, length, out[row + j], target)
        a += size


@sums
def subtract_two(A, a, B, b, length, y, z, at):
    """Of two rows of the same: y -= A_aᵀ B, z -= A_(a+1)ᵀ B."""
    p, s = 0, len(A)
    while p + 6 <= s:
        f0, f1, f2, f3, f4, f5 = A[p, a], A[p + 1, a], A[p + 2, a], A[p + 3, a], A[p + 4, a], A[p + 5, a]
        g0, g1, g2 = A[p, a + 1], A[p + 1, a + 1], A[p + 2, a + 1]
        g3, g4, g5 = A[p + 3, a + 1], A[p + 4, a + 1], A[p + 5, a + 1]
        b0, b1, b2, b3, b4, b5 = B[p], B[p + 1], B[p + 2], B[p + 3], B[p + 4], B[p + 5]
        for j in range(length):
            x0, x1, x2, x3, x4, x5 = b0[b + j], b1[b + j], b2[b + j], b3[b + j], b4[b + j], b5[b + j]
            y[at + j] -= f0 * x0 + f1 * x1 + f2 * x2 + f3 * x3 + f4 * x4 + f5 * x5
            z[at + j] -= g0 * x0 + g1 * x1 + g2 * x2 + g3 * x3 + g4 * x4 + g5 * x5
        p += 6
    while p < s:
        f0, g0, b0 = A[p, a], A[p, a + 1], B[p]
        for j in range(length):
            y[at + j] -= f0 * b0[b + j]
            z[at + j] -= g0 * b0[b + j]
        p += 1


@sums
def subtract_one(A, a, B, b, length, y, at):
    """Of one row of the same."""
    for p in range(len(A)):
        f, row = A[p, a], B[p]
        for j in range(length):
            y[at + j] -= f * row[b + j]


@kernel
def solve_blocks(blocks, x):
    """x = A⁻¹ x from its factors."""
    members, part = blocks.members, blocks.part

    # Forward: within the front, with its row exchanges, then subtracted from what is left.
    for f in range(blocks.total[1]):
        (U, T), pivots = panels(blocks, f), blocks.pivots[blocks.base[f] :]
        s, w = U.shape
        gather(blocks, blocks.begin[f], blocks.begin[f + 1], x)
        for k in range(s):
            best = pivots[k]
            part[k], part[best] = part[best], part[k]
            part[k] -= dot(U[k], part, k)
        for k in range(s):
            subtract_multiple(part[s:], part[k], T[k], w - s)
        spread(blocks, blocks.begin[f], blocks.begin[f + 1], x)

    # Backward: subtract what is left, then solve within the front.
    for f in range(blocks.total[1] - 1, -1, -1):
        U, _ = panels(blocks, f)
        s, w = U.shape
        gather(blocks, blocks.begin[f], blocks.begin[f + 1], x)
        for k in range(s - 1, -1, -1):
            part[k] = (part[k] - dot(U[k, k + 1 :], part[k + 1 :], w - k - 1)) * U[k, k]
        spread(blocks, blocks.begin[f], blocks.left[f], x)


@kernel
def gather(blocks, begin, end, x):
    """Copy the velocities of these blocks into `part`."""
    at = 0
    for z in range(begin, end):
        block = blocks.members[z]
        first = blocks.start[block]
        for k in range(blocks.size[block]):
            blocks.part[at + k] = x[first + k]
        at += blocks.size[block]


@kernel
def spread(blocks, begin, end, x):
    """Copy them back."""
    at = 0
    for z in range(begin, end):
        block = blocks.members[z]
        first = blocks.start[block]
        for k in range(blocks.size[block]):
            x[first + k] = blocks.part[at + k]
        at += blocks.size[block]
