"""Which velocities of A = I + sum of L_iᵀ G_i L_i are eliminated together, in which order, and what they fill.

A block is a stretch of velocities that the same contacts touch: those of a free body (6, or 3 in the plane), or the
part of a tree between two places where contacts' paths to the root join. Velocities that no contact touches belong to
none, nor does a velocity that a contact has for itself: that of dry friction, whose normal is this velocity alone, is
known before all others (`system`). Contacts of the same blocks make one element, a set of blocks that are all coupled.
The next block to be eliminated is one of least degree: of the fewest velocities that it is coupled with. The elements
that it is in become one, without it; blocks that are in no other are eliminated with it, in one front, since that fills
nothing. Degrees are bounded as in [AmestoyDavisDuff1996]: elements beyond the new one are counted as if they did not
overlap. So the order takes time in proportion to what is filled, and no table of all pairs is needed.
"""

from __future__ import annotations

from typing import Annotated as Array
from typing import NamedTuple

from stiction.arrays.compiled import in_callers, kernel, sums
from stiction.arrays.layout import Floats, Ints, layout
from stiction.problems.normal_form import SMALL, touches
from stiction.solvers.contact.cone_newton.tolerances import AT_ONCE, TOGETHER

MOST_BLOCKS = f"m if m > {TOGETHER} else 0"  # that have to be put in order


class Elements(NamedTuple):
    """Scratch of the ordering: elements, those of each block, and blocks by their degree; none for one front."""

    sets: Array[Ints, "e", 5]  # of each element: FIRST, LAST, WEIGHT, BEYOND and SEEN
    state: Array[Ints, "b + 1", 6]  # of each block: WHERE, COUNT, DEGREE, AFTER, BEFORE and MARK
    incident: Array[Ints, "n * width if b > 0 else 0"]  # elements of each block
    least: Array[Ints, "b + 1"]  # first block of each degree, -1 if there is none
    found: Array[Ints, "m + 1"]  # scratch: blocks, or where to cut


# Columns of the table of elements: where their blocks begin in `Blocks.members`, and end; their velocities, 0 if one
# has become part of another; those that are not in the newest element, and the front for which that was counted.
FIRST, LAST, WEIGHT, BEYOND, SEEN = range(5)
# Columns of the table of blocks: where their elements begin, and how many there are; the degree; the next and the last
# block of the same degree, or -1; the last front that they were found for.
WHERE, COUNT, DEGREE, AFTER, BEFORE, MARK = range(6)


class Blocks(NamedTuple):
    """Blocks of velocities, fronts in the order of elimination, and the panels of the factors.

    A front's panels are the rows of its s velocities, s × w with the w - s that are left, and the columns below them,
    transposed. Few arrays hold all of it, since handing many on costs as much as a small solve.
    """

    block: Array[Ints, "m"]  # of each velocity, -1 if no contact touches it
    table: Array[Ints, "m", 4]  # of each block: START, SIZE, FRONT and PLACE
    fronts: Array[Ints, "b + 2", 5]  # of each front: BEGIN, LEFT, BASE, WIDTH and PANEL
    members: Array[
        Ints, "n * width + m * (m + 1) // 2 if b > 0 else m"
    ]  # blocks of elements at first, then those of fronts
    where: Array[Ints, "m"]  # place of each velocity where all are eliminated together, -1 if no contact touches it
    total: Array[Ints, 5]  # BLOCKS and FRONTS, contacts that were KNOWN when they were found, CLOSED ones, and FEW
    sole: Array[Ints, "n", 2]  # of each contact: VELOCITY that no other has, the only ROW over the others; -1: none
    covered: Array[Ints, "n"]  # whether a contact touches no more than one front and what is left of it
    pivots: Array[Ints, "m"]  # row exchanges within fronts
    values: Array[Floats, "m * m"]  # panels
    rows: Array[Floats, 2, "few * d", "wide"]  # scratch: L of some contacts, in the order of elimination, and -Gᵀ L
    parts: Array[Floats, 2, "m"]  # scratch: a right-hand side in the order of elimination, and what a front needs of it
    lists: Array[Ints, 3, "m"]  # scratch: blocks TOUCHED by a contact, by those GATHERED, the same ORDERED
    column: Array[Ints, "m"]  # scratch: where blocks lie in a front
    runs: Array[Ints, "m", 3]  # scratch: stretches of columns


# Columns of the table of blocks: first velocity, how many there are, the front that eliminates them, and the place of
# the first among all, in the order of elimination.
START, SIZE, FRONT, PLACE = range(4)
# Columns of the table of fronts: where its blocks begin in `members`, those eliminated first; where those left begin,
# in their order; the place of its first velocity; w; where its panels begin in `values`.
BEGIN, LEFT, BASE, WIDTH, PANEL = range(5)
# Rows of `lists`.
TOUCHED, GATHERED, ORDERED = range(3)
# Entries of `total`; FEW: whether all velocities are few enough to be eliminated together.
BLOCKS, FRONTS, KNOWN, CLOSED, FEW = range(5)
# Columns of `sole`.
VELOCITY, ROW = range(2)

layout(Elements, "n", "m", "width", b=MOST_BLOCKS, e="n + b if b > 0 else 0")
layout(Blocks, "n", "d", "m", "width", b=MOST_BLOCKS, few=f"{AT_ONCE}", wide=f"max(width, min(m, {TOGETHER}))")


@kernel
def forget_order(blocks):
    """There is no order yet; or contacts have changed."""
    blocks.total[KNOWN] = 0


@kernel
def order_bodies(rows, segments, blocks, elements):
    """Find blocks, fronts and panels for the contacts that are covered."""
    velocities = find_blocks(rows, segments, blocks, elements.found)
    if velocities <= TOGETHER:
        eliminate_together(blocks)
        return
    count = find_elements(rows, segments, blocks, elements)
    remaining = velocities - eliminate_lone(count, blocks, elements)
    set_degrees(remaining, blocks, elements)
    eliminate(remaining, count, blocks, elements)
    sort_fronts(blocks)


@kernel
def find_sole(rows, segments, blocks, count):
    """Fill `sole`, and FEW; count: (m + 1,) scratch."""
    # How many contacts have each velocity in their runs: changes from one to the next, then sums.
    m, own = len(blocks.block), 0
    for v in range(m + 1):
        count[v] = 0
    for i in range(len(segments)):
        for s in range(0, 4, 2):
            if segments[i, s + 1] > 0:
                count[segments[i, s]] += 1
                count[segments[i, s] + segments[i, s + 1]] -= 1
    for v in range(m):
        count[v + 1] += count[v]

    # A velocity of its own, or a normal without tangents.
    for i in range(len(segments)):
        sole, first, second = blocks.sole[i], segments[i, 1], segments[i, 3]
        sole[VELOCITY] = sole[ROW] = -1
        if first == 1 and count[segments[i, 0]] == 1 and is_dry(rows[i], 0, first + second):
            sole[VELOCITY], sole[ROW] = segments[i, 0], 1
        elif second == 1 and count[segments[i, 2]] == 1 and is_dry(rows[i], first, first + second):
            sole[VELOCITY], sole[ROW] = segments[i, 2], 1
        elif all_zero(rows[i], 1, first + second):
            sole[ROW] = 0
        own += 1 if sole[VELOCITY] >= 0 else 0
    blocks.total[FEW] = 1 if m - own <= TOGETHER else 0


@kernel
def is_dry(rows, e, width):
    """Whether a contact's normal is its e-th velocity alone, and its first tangent, the only one, does without it."""
    return rows[1, e] == 0.0 and weight(rows[0], width) == abs(rows[0, e]) and all_zero(rows, 2, width)


@kernel
def all_zero(rows, first, width):
    """Whether rows from this one on are zero."""
    for c in range(first, len(rows)):
        if weight(rows[c], width) != 0.0:
            return False
    return True


@sums
def weight(row, width):
    """Sum of absolute values."""
    total = 0.0
    for j in range(width):
        total += abs(row[j])
    return total


@kernel
def has(rows, j, row):
    """Whether a contact, of which only this row counts (-1: all do), touches its j-th velocity."""
    return touches(rows, j) if row < 0 else rows[row, j] != 0.0


@kernel
def find_blocks(rows, segments, blocks, cut):
    """Cut velocities into blocks where a contact touches one and not the next; return how many are touched at all."""
    # Mark what is touched, and where to cut. Short runs count as touched throughout.
    block, m = blocks.block, len(blocks.block)
    for v in range(m):
        block[v], cut[v] = -1, 0
    for i in range(len(segments)):
        if blocks.covered[i] == 0:
            continue
        at, row = 0, blocks.sole[i, ROW]
        for s in range(0, 4, 2):
            first, length = segments[i, s], segments[i, s + 1]
            if length == 0:
                continue
            if first == blocks.sole[i, VELOCITY]:
                at += 1
                continue

            # A run begins and ends a block, and so does a change of what its rows touch.
            cut[first] = cut[first + length] = 1
            before = length <= SMALL or has(rows[i], at, row)
            for j in range(length):
                touched = length <= SMALL or has(rows[i], at + j, row)
                if touched:
                    block[first + j] = 0
                if touched != before:
                    cut[first + j] = 1
                before = touched
            at += length

    # Number the blocks.
    count, velocities = 0, 0
    for v in range(m):
        if block[v] < 0:
            continue
        if v == 0 or block[v - 1] < 0 or cut[v] != 0:
            blocks.table[count, START], blocks.table[count, SIZE] = v, 0
            count += 1
        block[v] = count - 1
        blocks.table[count - 1, SIZE] += 1
        velocities += 1
    blocks.total[BLOCKS] = count
    return velocities


@kernel
def eliminate_together(blocks):
    """One front of all blocks."""
    place = 0
    for block in range(blocks.total[BLOCKS]):
        place = join(block, 0, place, block, blocks)
    place = 0
    for v in range(len(blocks.where)):
        blocks.where[v] = place if blocks.block[v] >= 0 else -1
        place += 1 if blocks.block[v] >= 0 else 0
    fronts = 1 if place > 0 else 0
    blocks.fronts[0, BEGIN], blocks.fronts[0, BASE], blocks.fronts[0, PANEL], blocks.total[FRONTS] = 0, 0, 0, fronts
    blocks.fronts[fronts, BEGIN] = blocks.fronts[0, LEFT] = blocks.total[BLOCKS]
    blocks.fronts[fronts, BASE] = blocks.fronts[0, WIDTH] = place
    blocks.fronts[fronts, PANEL] = place * place


@in_callers
@kernel
def blocks_of(rows, segment, blocks, found):
    """Write the blocks that a contact touches; return how many there are."""
    count, at = 0, 0
    for s in range(0, 4, 2):
        first, length, j = segment[s], segment[s + 1], 0
        while j < length:
            block = blocks.block[first + j]
            if block < 0:
                j += 1
                continue
            if length <= SMALL or touches(rows, at + j):
                found[count] = block
                count += 1
            j += blocks.table[block, SIZE]
        at += length
    return count


@kernel
def find_elements(rows, segments, blocks, elements):
    """Write the elements, and those of each block; return how many there are."""
    members, sets, state = blocks.members, elements.sets, elements.state

    # One element for contacts in a row that touch the same blocks, if there are several.
    count, top = 0, 0
    for i in range(len(segments)):
        if blocks.covered[i] == 0:
            continue
        found = blocks_of(rows[i], segments[i], blocks, members[top:])
        if found < 2 or (count > 0 and repeats(members, sets[count - 1, FIRST], top, found)):
            continue
        sets[count, FIRST], sets[count, LAST] = top, top + found
        top += found
        count += 1
    blocks.fronts[0, BEGIN] = top

    # Turn the lists round: elements of each block.
    b = blocks.total[BLOCKS]
    for k in range(b + 1):
        state[k, WHERE] = state[k, COUNT] = 0
    for z in range(top):
        state[members[z] + 1, WHERE] += 1
    for k in range(b):
        state[k + 1, WHERE] += state[k, WHERE]
    for e in range(count):
        sets[e, WEIGHT], sets[e, SEEN] = 0, -1
        for z in range(sets[e, FIRST], sets[e, LAST]):
            k = members[z]
            sets[e, WEIGHT] += blocks.table[k, SIZE]
            elements.incident[state[k, WHERE] + state[k, COUNT]] = e
            state[k, COUNT] += 1
    return count


@kernel
def repeats(members, first, top, count):
    """Whether the list that was just written is the one that begins at `first` and ends where it begins."""
    if top - first != count:
        return False
    for k in range(count):
        if members[first + k] != members[top + k]:
            return False
    return True


@kernel
def eliminate_lone(count, blocks, elements):
    """Fronts of blocks that are in one element only: eliminated first, they fill nothing. Returns how many velocities.

    They leave their element. So the ends of limbs take no part in the ordering.
    """
    members, sets, state = blocks.members, elements.sets, elements.state
    fronts, top, place = 0, blocks.fronts[0, BEGIN], 0
    for e in range(count):
        # Its lone blocks, then the others.
        first, last, weight = sets[e, FIRST], sets[e, LAST], sets[e, WEIGHT]
        before, begin = place, top
        for z in range(first, last):
            if state[members[z], COUNT] == 1:
                place = join(members[z], fronts, place, top, blocks)
                top += 1
        if top == begin:
            continue

        # A front of both; the element keeps the others.
        blocks.fronts[fronts, BEGIN], blocks.fronts[fronts, BASE], blocks.fronts[fronts, LEFT] = begin, before, top
        for z in range(first, last):
            if state[members[z], COUNT] > 1:
                members[top] = members[z]
                top += 1
        blocks.fronts[fronts, WIDTH] = weight
        sets[e, FIRST], sets[e, LAST], sets[e, WEIGHT] = blocks.fronts[fronts, LEFT], top, weight - (place - before)
        fronts += 1
    blocks.fronts[fronts, BEGIN], blocks.fronts[fronts, BASE], blocks.total[FRONTS] = top, place, fronts
    return place


@kernel
def set_degrees(remaining, blocks, elements):
    """Bound how many velocities each block is coupled with; blocks are put into lists of the same degree."""
    state = elements.state
    for k in range(len(state)):
        elements.least[k] = state[k, MARK] = -1
    for block in range(blocks.total[BLOCKS] - 1, -1, -1):
        # Those in one element are eliminated already.
        degree = 0
        for k in range(state[block, WHERE], state[block + 1, WHERE]):
            degree += elements.sets[elements.incident[k], WEIGHT] - blocks.table[block, SIZE]
        if state[block, COUNT] != 1:
            put_in(block, min(degree, remaining - blocks.table[block, SIZE]), state, elements.least)


@in_callers
@kernel
def put_in(block, degree, state, least):
    """Into the list of this degree, as its first."""
    following = least[degree]
    state[block, DEGREE], state[block, AFTER], state[block, BEFORE] = degree, following, -1
    if following >= 0:
        state[following, BEFORE] = block
    least[degree] = block


@in_callers
@kernel
def take_out(block, state, least):
    """Out of the list of its degree."""
    following, previous = state[block, AFTER], state[block, BEFORE]
    if following >= 0:
        state[following, BEFORE] = previous
    if previous >= 0:
        state[previous, AFTER] = following
    else:
        least[state[block, DEGREE]] = following


@kernel
def eliminate(remaining, count, blocks, elements):
    """Fronts, in the order of least degree."""
    members, table, fronts, found = blocks.members, blocks.table, blocks.fronts, elements.found
    sets, state, incident, least = elements.sets, elements.state, elements.incident, elements.least
    f, lowest = blocks.total[FRONTS], 0
    top = fronts[f, BEGIN]
    while remaining > 0:
        # The next block, and all that it is coupled with; its elements become one.
        while least[lowest] < 0:
            lowest += 1
        block, new = least[lowest], count + f
        take_out(block, state, least)
        state[block, MARK], coupled, others = f, 0, 0
        for k in range(state[block, WHERE], state[block, WHERE] + state[block, COUNT]):
            e = incident[k]
            sets[e, WEIGHT] = 0
            for z in range(sets[e, FIRST], sets[e, LAST]):
                other = members[z]
                if state[other, MARK] != f:
                    state[other, MARK] = f
                    found[others] = other
                    others += 1
                    coupled += table[other, SIZE]

        # What the elements of these have beyond the new one.
        for x in range(others):
            other = found[x]
            for k in range(state[other, WHERE], state[other, WHERE] + state[other, COUNT]):
                e = incident[k]
                if sets[e, WEIGHT] > 0:
                    if sets[e, SEEN] != f:
                        sets[e, SEEN], sets[e, BEYOND] = f, sets[e, WEIGHT]
                    sets[e, BEYOND] -= table[other, SIZE]

        # Forget elements that lie within the new one. What is in no other is eliminated in the same front.
        fronts[f, BEGIN] = top
        place = join(block, f, fronts[f, BASE], top, blocks)
        top += 1
        for x in range(others):
            other, kept, far = found[x], 0, 0
            begin = state[other, WHERE]
            for k in range(begin, begin + state[other, COUNT]):
                e = incident[k]
                if sets[e, WEIGHT] > 0 and sets[e, BEYOND] > 0:
                    incident[begin + kept] = e
                    kept += 1
                    far += sets[e, BEYOND]

            # Nothing else holds it: it belongs to this front.
            take_out(other, state, least)
            if kept == 0:
                place = join(other, f, place, top, blocks)
                top += 1
                coupled -= table[other, SIZE]
                found[x] = -1
            else:
                incident[begin + kept] = new
                state[other, COUNT], state[other, AFTER] = kept + 1, far

        # The others are left, in the new element; bounds of their degrees.
        remaining -= place - fronts[f, BASE]
        fronts[f, LEFT] = top
        for x in range(others):
            other = found[x]
            if other >= 0:
                members[top] = other
                top += 1
                rest = coupled - table[other, SIZE]
                degree = min(state[other, DEGREE], state[other, AFTER]) + rest
                degree = min(degree, remaining - table[other, SIZE])
                put_in(other, degree, state, least)
                lowest = min(lowest, degree)

        # The front is whole.
        sets[new, FIRST], sets[new, LAST], sets[new, WEIGHT], sets[new, SEEN] = fronts[f, LEFT], top, coupled, -1
        fronts[f, WIDTH] = place - fronts[f, BASE] + coupled
        f += 1
        fronts[f, BASE] = place
    fronts[f, BEGIN] = top
    blocks.total[FRONTS] = f


@in_callers
@kernel
def join(block, front, place, top, blocks):
    """Let a block be eliminated in this front; return the place after it."""
    blocks.table[block, FRONT], blocks.table[block, PLACE], blocks.members[top] = front, place, block
    return place + blocks.table[block, SIZE]


@kernel
def sort_fronts(blocks):
    """Sort what is left after each front by the order of elimination, and lay out the panels."""
    members, table = blocks.members, blocks.table
    blocks.fronts[0, PANEL] = 0
    for f in range(blocks.total[FRONTS]):
        # By insertion: the lists are short.
        begin = blocks.fronts[f, LEFT]
        for z in range(begin + 1, blocks.fronts[f + 1, BEGIN]):
            block, y = members[z], z
            while y > begin and table[members[y - 1], PLACE] > table[block, PLACE]:
                members[y] = members[y - 1]
                y -= 1
            members[y] = block

        # Rows of the front, then the columns below, transposed.
        s, w = blocks.fronts[f + 1, BASE] - blocks.fronts[f, BASE], blocks.fronts[f, WIDTH]
        blocks.fronts[f + 1, PANEL] = blocks.fronts[f, PANEL] + s * (2 * w - s)
