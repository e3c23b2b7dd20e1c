"""LU factors of A = I + sum of L_iᵀ G_i L_i by fronts (see `elimination`): assembly, factors, solution.

Front after front, in place: the rows of its velocities and, transposed, the columns below them are two panels whose
rows are long, so that all arithmetic goes along them. Pivots are sought among the velocities of a front, not across
fronts, so that the order is kept; the caller corrects the loss of digits by refinement.
"""

from __future__ import annotations

from stiction.arrays.compiled import in_callers, kernel, sums
from stiction.arrays.dense import dot
from stiction.arrays.layout import cut
from stiction.arrays.tiles import subtract_product
from stiction.arrays.vectors import column, negative, put_column
from stiction.solvers.contact.cone_newton.slope import through

SIX, THREE = 6, 3  # velocities of a free body, in space and in the plane, for which loops are unrolled


@in_callers
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


@in_callers
@kernel
def find_columns(blocks, f):
    """Set `column` of each block of a front: where it begins among the columns of its rows."""
    at = 0
    for z in range(blocks.begin[f], blocks.begin[f + 1]):
        block = blocks.members[z]
        blocks.column[block] = at
        at += blocks.size[block]


@in_callers
@kernel
def same_blocks(blocks, found, count):
    """Whether the blocks that were found are those of the contacts gathered before."""
    if found != count:
        return False
    for k in range(count):
        if blocks.touched[k] != blocks.shared[k]:
            return False
    return True


@in_callers
@kernel
def begin_group(blocks, count):
    """Begin to gather contacts of these blocks: `own` has them in the order of elimination."""
    own, place = blocks.own, blocks.place
    for z in range(count):
        block, y = blocks.touched[z], z
        blocks.shared[z] = block
        while y > 0 and place[own[y - 1]] > place[block]:
            own[y] = own[y - 1]
            y -= 1
        own[y] = block


@in_callers
@kernel
def gather_rows(rows, segment, slope, i, row, count, zero, blocks):
    """Write L of contact i, with its blocks in this order, and -slopeᵀ L into the scratch, from this row on."""
    at = 0
    L, G = blocks.rows[row:], blocks.images[row:]
    for x in range(count):
        # The second run lies behind the first.
        first, size = blocks.start[blocks.own[x]], blocks.size[blocks.own[x]]
        within = segment[0] <= first < segment[0] + segment[1]
        source = first - segment[0] if within else first - segment[2] + segment[1]
        for k in range(size):
            v = column(rows, source + k, zero)
            put_column(L, at + k, v)
            put_column(G, at + k, negative(through(slope, i, v)))
        at += size


@in_callers
@kernel
def add_gathered(blocks, height, count):
    """A += Lᵀ slope L of the contacts gathered, which have so many rows and blocks."""
    own, front, L, G = blocks.own, blocks.front, blocks.rows, blocks.images
    # Each front that eliminates some of them: rows of these, from the first of them on; columns below, transposed.
    x, at = 0, 0
    while x < count:
        f, end, width = front[own[x]], x, 0
        find_columns(blocks, f)
        while end < count and front[own[end]] == f:
            width += blocks.size[own[end]]
            end += 1
        U, T = panels(blocks, f)
        runs = find_runs(blocks, own, x, count, at, 0)
        subtract_rows(blocks, own, x, end, f, G, at, L, 0, height, runs, U)
        runs = find_runs(blocks, own, end, count, at + width, len(U))
        subtract_rows(blocks, own, x, end, f, L, at, G, 0, height, runs, T)
        x = end
        at += width


@in_callers
@kernel
def find_runs(blocks, members, begin, end, at, less):
    """Set `runs`: stretches of these blocks, side by side from column `at` on, that are so in a front, too.

    Each as (first column, that in the front less `less`, length). Returns how many there are.
    """
    count, following, runs = 0, -1, blocks.runs
    for z in range(begin, end):
        block = members[z]
        place, size = blocks.column[block] - less, blocks.size[block]
        if place == following:
            runs[count - 1, 2] += size
        else:
            runs[count, 0], runs[count, 1], runs[count, 2] = at, place, size
            count += 1
        following = place + size
        at += size
    return count


@in_callers
@kernel
def subtract_rows(blocks, members, begin, end, f, A, a, B, b, s, count, out):
    """out -= Aᵀ B, of s rows: for rows of these blocks in front f, columns of A from a on, `runs` of B from b on."""
    runs = blocks.runs
    for x in range(begin, end):
        block = members[x]
        row, size = blocks.place[block] - blocks.base[f], blocks.size[block]
        for k in range(count):
            subtract_product(A, a, size, B, b + runs[k, 0], runs[k, 2], s, out, row, runs[k, 1])
        a += size


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
    k = 0
    while k < s:
        # Six columns at a time; what they change to the right.
        end = min(k + SIX, s)
        if end == k + SIX:
            regular = factor_columns(U, k, k + SIX, pivots)
        elif end == k + THREE:
            regular = factor_columns(U, k, k + THREE, pivots)
        else:
            regular = factor_columns(U, k, end, pivots)
        if not regular:
            return False
        forward(U[k:end, k:], U[k:end], end, w - end, False)
        subtract_product(U.T[k:], end, s - end, U[k:], end, w - end, end - k, U, end, end)
        k = end
    forward(U.T, T, 0, w - s, True)
    return True


@in_callers
@kernel
def factor_columns(U, begin, end, pivots):
    """Eliminate these columns below the diagonal; rows are exchanged throughout."""
    s, w = U.shape
    for k in range(begin, end):
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

        # Eliminate below the pivot.
        inverse = 1.0 / U[k, k]
        U[k, k] = inverse
        for i in range(k + 1, s):
            factor = U[i, k] * inverse
            U[i, k] = factor
            for j in range(k + 1, end):
                U[i, j] -= factor * U[k, j]
    return True


@kernel
def forward(M, X, at, length, divided):
    """X = M⁻¹ X for columns of X from `at` on and the lower triangle M, of unit diagonal or, `divided`, an inverted one."""
    i, s = 0, len(X)
    while i + SIX <= s:
        # Six rows: without those before them, then among themselves.
        subtract_product(M.T, i, SIX, X, at, length, i, X, i, at)
        forward_six(M[i:, i:], X[i:], at, length, divided)
        i += SIX
    while i < s:
        # The rows left over, one by one.
        subtract_product(M.T, i, 1, X, at, length, i, X, i, at)
        if divided:
            scale(X[i], at, length, M[i, i])
        i += 1


@sums
def forward_six(M, X, at, length, divided):
    """The same for six rows, in one pass."""
    a0, b0, b1, c0, c1, c2 = M[1, 0], M[2, 0], M[2, 1], M[3, 0], M[3, 1], M[3, 2]
    d0, d1, d2, d3, e0, e1, e2, e3, e4 = (
        M[4, 0], M[4, 1], M[4, 2], M[4, 3], M[5, 0], M[5, 1], M[5, 2], M[5, 3], M[5, 4]
    )  # fmt: skip
    r0, r1, r2, r3, r4, r5 = X[0], X[1], X[2], X[3], X[4], X[5]
    i0, i1, i2, i3, i4, i5 = 1.0, 1.0, 1.0, 1.0, 1.0, 1.0
    if divided:
        i0, i1, i2, i3, i4, i5 = M[0, 0], M[1, 1], M[2, 2], M[3, 3], M[4, 4], M[5, 5]
    for j in range(at, at + length):
        x0 = r0[j] * i0
        x1 = (r1[j] - a0 * x0) * i1
        x2 = (r2[j] - b0 * x0 - b1 * x1) * i2
        x3 = (r3[j] - c0 * x0 - c1 * x1 - c2 * x2) * i3
        x4 = (r4[j] - d0 * x0 - d1 * x1 - d2 * x2 - d3 * x3) * i4
        x5 = (r5[j] - e0 * x0 - e1 * x1 - e2 * x2 - e3 * x3 - e4 * x4) * i5
        r0[j], r1[j], r2[j], r3[j], r4[j], r5[j] = x0, x1, x2, x3, x4, x5


@kernel
def scale(row, at, length, factor):
    """row *= factor."""
    for j in range(at, at + length):
        row[j] *= factor


@in_callers
@kernel
def update(blocks, f, U, T):
    """Subtract what the elimination of a front changes in later ones."""
    members, front, size = blocks.members, blocks.front, blocks.size
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
        runs = find_runs(blocks, members, z, end, at, 0)
        subtract_rows(blocks, members, z, group, g, T, at, U, s, s, runs, V)
        runs = find_runs(blocks, members, group, end, at + width, len(V))
        subtract_rows(blocks, members, z, group, g, U, s + at, T, 0, s, runs, W)
        z = group
        at += width


@kernel
def solve_blocks(blocks, x):
    """x = A⁻¹ x from its factors."""
    # In the order of elimination, a front's own velocities lie side by side.
    y, part = blocks.ordered, blocks.part
    for block in range(blocks.total[0]):
        for k in range(blocks.size[block]):
            y[blocks.place[block] + k] = x[blocks.start[block] + k]

    # Forward: within the front, with its row exchanges, then subtracted from what is left.
    for f in range(blocks.total[1]):
        (U, T), base, z, at = panels(blocks, f), blocks.base[f], blocks.left[f], 0
        s, own, pivots = len(U), y[base:], blocks.pivots[base:]
        for k in range(s):
            best = pivots[k]
            own[k], own[best] = own[best], own[k]
            for i in range(k):
                own[k] -= U[k, i] * own[i]
        while z < blocks.begin[f + 1]:
            first, length, z = next_stretch(blocks, z, blocks.begin[f + 1])
            subtract_product(cut(own, 0, (s, 1)), 0, 1, T, at, length, s, cut(y, 0, (1, len(y))), 0, first)
            at += length

    # Backward: subtract what is left, then solve within the front.
    for f in range(blocks.total[1] - 1, -1, -1):
        (U, _), own, z, at = panels(blocks, f), y[blocks.base[f] :], blocks.left[f], 0
        s = len(U)
        while z < blocks.begin[f + 1]:
            first, length, z = next_stretch(blocks, z, blocks.begin[f + 1])
            for k in range(length):
                part[at + k] = y[first + k]
            at += length
        subtract_images(U, s, part, at, own)
        for k in range(s - 1, -1, -1):
            for i in range(k + 1, s):
                own[k] -= U[k, i] * own[i]
            own[k] *= U[k, k]

    # Back to the order of velocities.
    for block in range(blocks.total[0]):
        for k in range(blocks.size[block]):
            x[blocks.start[block] + k] = y[blocks.place[block] + k]


@in_callers
@kernel
def next_stretch(blocks, z, end):
    """Of a front's blocks from z on, those that are eliminated one after the other.

    Returns (the place of their first velocity, how many there are, where the next block is).
    """
    first = blocks.place[blocks.members[z]]
    following = first
    while z < end and blocks.place[blocks.members[z]] == following:
        following += blocks.size[blocks.members[z]]
        z += 1
    return first, following - first, z


@sums
def subtract_images(U, s, x, length, y):
    """y -= U x, for so many columns of U from s on."""
    # Six rows at a time, then one by one.
    k = 0
    while k + SIX <= s:
        r0, r1, r2, r3, r4, r5 = U[k], U[k + 1], U[k + 2], U[k + 3], U[k + 4], U[k + 5]
        s0, s1, s2, s3, s4, s5 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
        for j in range(length):
            s0 += r0[s + j] * x[j]
            s1 += r1[s + j] * x[j]
            s2 += r2[s + j] * x[j]
            s3 += r3[s + j] * x[j]
            s4 += r4[s + j] * x[j]
            s5 += r5[s + j] * x[j]
        y[k] -= s0
        y[k + 1] -= s1
        y[k + 2] -= s2
        y[k + 3] -= s3
        y[k + 4] -= s4
        y[k + 5] -= s5
        k += SIX
    while k < s:
        y[k] -= dot(U[k, s:], x, length)
        k += 1
