"""LU factors of A = I + sum of L_iᵀ G_i L_i by fronts (see `elimination`): assembly, factors, solution.

Front after front, in place: the rows of its velocities and, transposed, the columns below them are two panels whose
rows are long, so that all arithmetic goes along them. Pivots are sought among the velocities of a front, not across
fronts, so that the order is kept; the caller corrects the loss of digits by refinement.
"""

from __future__ import annotations

from stiction.arrays.compiled import in_callers, kernel, sums
from stiction.arrays.dense import dot
from stiction.arrays.layout import cut
from stiction.arrays.tiles import SIX, solve_six, subtract_product, tile_1x6, tile_6x6
from stiction.arrays.vectors import column, negative, put_column
from stiction.solvers.contact.cone_newton.elimination import (
    BASE,
    BEGIN,
    BLOCKS,
    FRONT,
    FRONTS,
    GATHERED,
    LEFT,
    ORDERED,
    PANEL,
    PLACE,
    SIZE,
    START,
    TOUCHED,
    WIDTH,
)
from stiction.solvers.contact.cone_newton.slope import through

THREE = 3  # velocities of a free body in the plane, for which loops are unrolled, as for SIX in space


@in_callers
@kernel
def panels(blocks, f):
    """The rows of a front, of its own velocities and of those left; and the columns below them, transposed."""
    s, w, begin = blocks.fronts[f + 1, BASE] - blocks.fronts[f, BASE], blocks.fronts[f, WIDTH], blocks.fronts[f, PANEL]
    return cut(blocks.values, begin, (s, w)), cut(blocks.values, begin + s * w, (s, w - s))


@kernel
def clear(blocks):
    """A = I."""
    for k in range(blocks.fronts[blocks.total[FRONTS], PANEL]):
        blocks.values[k] = 0.0
    for f in range(blocks.total[FRONTS]):
        U, _ = panels(blocks, f)
        for k in range(len(U)):
            U[k, k] = 1.0


@in_callers
@kernel
def find_columns(blocks, f):
    """Set `column` of each block of a front: where it begins among the columns of its rows."""
    at = 0
    for z in range(blocks.fronts[f, BEGIN], blocks.fronts[f + 1, BEGIN]):
        block = blocks.members[z]
        blocks.column[block] = at
        at += blocks.table[block, SIZE]


@in_callers
@kernel
def same_blocks(blocks, found, count):
    """Whether the blocks that were found are those of the contacts gathered before."""
    if found != count:
        return False
    for k in range(count):
        if blocks.lists[TOUCHED, k] != blocks.lists[GATHERED, k]:
            return False
    return True


@in_callers
@kernel
def begin_group(blocks, count):
    """Begin to gather contacts of the blocks that were found, which are put in the order of elimination."""
    own, table = blocks.lists[ORDERED], blocks.table
    for z in range(count):
        block, y = blocks.lists[TOUCHED, z], z
        blocks.lists[GATHERED, z] = block
        while y > 0 and table[own[y - 1], PLACE] > table[block, PLACE]:
            own[y] = own[y - 1]
            y -= 1
        own[y] = block


@in_callers
@kernel
def gather_rows(rows, segment, slope, i, row, count, zero, blocks):
    """Write L of contact i, with its blocks in this order, and -slopeᵀ L into the scratch, from this row on."""
    own, L, G, at = blocks.lists[ORDERED], blocks.rows[0, row:], blocks.rows[1, row:], 0
    for x in range(count):
        # The second run lies behind the first.
        first, size = blocks.table[own[x], START], blocks.table[own[x], SIZE]
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
    own, table, L, G = blocks.lists[ORDERED], blocks.table, blocks.rows[0], blocks.rows[1]
    # Each front that eliminates some of them takes what these have with all that come later.
    x, at = 0, 0
    while x < count:
        f = table[own[x], FRONT]
        find_columns(blocks, f)
        U, T = panels(blocks, f)
        rows, columns = find_runs(blocks, own, x, count, at, len(U))
        subtract_outer(blocks.runs, rows, columns, G, 0, L, 0, height, U, T)
        while x < count and table[own[x], FRONT] == f:
            at += blocks.table[own[x], SIZE]
            x += 1


@in_callers
@kernel
def lay_single(blocks, row, segment, slope, held):
    """Write a contact's only row over the places of one front, and -slope times it, as the next of those `held`.

    Returns how many are held then. Those before are added first if this row does not go on where the last one ended:
    along a limb each joint moves all that those before it move.
    """
    L, G, w, last, at = blocks.rows[0], blocks.rows[1], blocks.fronts[0, WIDTH], -1, 0
    if held == min(len(L), len(blocks.column)):
        add_singles(blocks, held)
        held = 0

    # The row, at its places.
    line = L[held]
    for k in range(w):
        line[k] = 0.0
    for s in range(0, 4, 2):
        for j in range(segment[s + 1]):
            place = blocks.where[segment[s] + j]
            if place >= 0 and row[at + j] != 0.0:
                line[place] = row[at + j]
                last = max(last, place)
        at += segment[s + 1]

    # Another limb begins.
    if held > 0 and line[blocks.column[held - 1]] == 0.0:
        add_singles(blocks, held)
        held = 0
        for k in range(w):
            L[0, k] = line[k]
    for k in range(w):
        G[held, k] = -slope * L[held, k]
    blocks.column[held] = max(last, 0)
    return held + 1


@in_callers
@kernel
def add_singles(blocks, held):
    """A += slope rowᵀ row of the rows laid down, for all velocities in one front."""
    (U, T), L, runs, moved, count = panels(blocks, 0), blocks.rows[0], blocks.runs, blocks.parts[0], 0
    if held == 0:
        return
    # Stretches that any of them moves.
    for place in range(len(U)):
        moved[place] = abs(L[0, place])
    for k in range(1, held):
        for place in range(len(U)):
            moved[place] += abs(L[k, place])
    for place in range(len(U)):
        if moved[place] == 0.0:
            continue
        if place == 0 or moved[place - 1] == 0.0:
            runs[count, 0] = runs[count, 1] = place
            runs[count, 2] = 0
            count += 1
        runs[count - 1, 2] += 1
    subtract_outer(runs, count, count, blocks.rows[1], 0, L, 0, held, U, T)


@in_callers
@kernel
def find_runs(blocks, members, begin, end, at, s):
    """Set `runs`: stretches of these blocks, side by side from column `at` on, that are so in a front, too.

    Each as (first column, that in the front, length). Returns how many there are among the s velocities that the front
    eliminates, and how many in all.
    """
    rows, count, following, runs = 0, 0, -1, blocks.runs
    for z in range(begin, end):
        block = members[z]
        place, size = blocks.column[block], blocks.table[block, SIZE]
        if place == following and place != s:
            runs[count - 1, 2] += size
        else:
            runs[count, 0], runs[count, 1], runs[count, 2] = at, place, size
            count += 1
            rows = count if place < s else rows
        following = place + size
        at += size
    return rows, count


@kernel
def subtract_outer(runs, rows, count, A, a, B, b, height, U, T):
    """Subtract Aᵀ B at these runs from the rows U of a front, and Bᵀ A from the columns T below, transposed.

    Runs are columns of A from a on, and of B from b on, of so many rows.
    """
    s = len(U)
    for r in range(rows):
        own, row, size = runs[r, 0], runs[r, 1], runs[r, 2]
        for k in range(count):
            subtract_block(A, a + own, size, B, b + runs[k, 0], runs[k, 2], height, U, row, runs[k, 1])
        for k in range(rows, count):
            subtract_block(B, b + own, size, A, a + runs[k, 0], runs[k, 2], height, T, row, runs[k, 1] - s)


@in_callers
@kernel
def subtract_block(A, a, rows, B, b, columns, s, out, row, at):
    """As `subtract_product`; two free bodies, by far the most common case, take no call."""
    if rows == SIX and columns == SIX and s > 0:
        tile_6x6(A, a, B, b, s, out, row, at)
    else:
        subtract_product(A, a, rows, B, b, columns, s, out, row, at)


@kernel
def factor_blocks(blocks):
    """A = L U in place; False if the pivots of a front vanish."""
    for f in range(blocks.total[FRONTS]):
        U, T = panels(blocks, f)
        if not factor_front(U, T, blocks.pivots[blocks.fronts[f, BASE] :]):
            return False
        update(blocks, f, U, T)
    return True


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
    """X = M⁻¹ X for columns of X from `at` on; M: lower triangle with ones on its diagonal, or inverses (`divided`)."""
    i, s = 0, len(X)
    while i + SIX <= s:
        # Six rows: without those before them, then among themselves.
        subtract_product(M.T, i, SIX, X, at, length, i, X, i, at)
        solve_six(M, i, X, i, at, length, divided)
        i += SIX
    while i < s:
        # The rows left over, one by one.
        subtract_product(M.T, i, 1, X, at, length, i, X, i, at)
        if divided:
            scale(X[i], at, length, M[i, i])
        i += 1


@kernel
def scale(row, at, length, factor):
    """row *= factor."""
    for j in range(at, at + length):
        row[j] *= factor


@in_callers
@kernel
def update(blocks, f, U, T):
    """Subtract what the elimination of a front changes in later ones."""
    members, z, end, at = blocks.members, blocks.fronts[f, LEFT], blocks.fronts[f + 1, BEGIN], 0
    while z < end:
        # The next front that eliminates some of what is left takes what these have with all that come later.
        g = blocks.table[members[z], FRONT]
        find_columns(blocks, g)
        V, W = panels(blocks, g)
        rows, columns = find_runs(blocks, members, z, end, at, len(V))
        subtract_outer(blocks.runs, rows, columns, T, 0, U, len(U), len(U), V, W)
        while z < end and blocks.table[members[z], FRONT] == g:
            at += blocks.table[members[z], SIZE]
            z += 1


@kernel
def solve_blocks(blocks, x):
    """x = A⁻¹ x from its factors."""
    # In the order of elimination, a front's own velocities lie side by side.
    y, part = blocks.parts[0], blocks.parts[1]
    for block in range(blocks.total[BLOCKS]):
        for k in range(blocks.table[block, SIZE]):
            y[blocks.table[block, PLACE] + k] = x[blocks.table[block, START] + k]

    # Forward: within the front, with its row exchanges, then subtracted from what is left.
    for f in range(blocks.total[FRONTS]):
        (U, T), base, z, at = panels(blocks, f), blocks.fronts[f, BASE], blocks.fronts[f, LEFT], 0
        s, own, pivots = len(U), y[base:], blocks.pivots[base:]
        column, whole = cut(own, 0, (s, 1)), cut(y, 0, (1, len(y)))
        for k in range(s):
            best = pivots[k]
            own[k], own[best] = own[best], own[k]
            for i in range(k):
                own[k] -= U[k, i] * own[i]
        while z < blocks.fronts[f + 1, BEGIN]:
            first, length, z = next_stretch(blocks, z, blocks.fronts[f + 1, BEGIN])
            # Six of them at a time, then the rest.
            far = 0
            while far + SIX <= length:
                tile_1x6(column, 0, T, at + far, s, whole, 0, first + far)
                far += SIX
            subtract_product(column, 0, 1, T, at + far, length - far, s, whole, 0, first + far)
            at += length

    # Backward: subtract what is left, then solve within the front.
    for f in range(blocks.total[FRONTS] - 1, -1, -1):
        (U, _), own, z, at = panels(blocks, f), y[blocks.fronts[f, BASE] :], blocks.fronts[f, LEFT], 0
        s = len(U)
        while z < blocks.fronts[f + 1, BEGIN]:
            first, length, z = next_stretch(blocks, z, blocks.fronts[f + 1, BEGIN])
            for k in range(length):
                part[at + k] = y[first + k]
            at += length
        subtract_images(U, s, part, at, own)
        for k in range(s - 1, -1, -1):
            for i in range(k + 1, s):
                own[k] -= U[k, i] * own[i]
            own[k] *= U[k, k]

    # Back to the order of velocities.
    for block in range(blocks.total[BLOCKS]):
        for k in range(blocks.table[block, SIZE]):
            x[blocks.table[block, START] + k] = y[blocks.table[block, PLACE] + k]


@in_callers
@kernel
def next_stretch(blocks, z, end):
    """Of a front's blocks from z on, those that are eliminated one after the other.

    Returns (the place of their first velocity, how many there are, where the next block is).
    """
    first = blocks.table[blocks.members[z], PLACE]
    following = first
    while z < end and blocks.table[blocks.members[z], PLACE] == following:
        following += blocks.table[blocks.members[z], SIZE]
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

        # All six at once, so that each entry of x is loaded once.
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
