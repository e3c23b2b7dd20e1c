"""Which velocities of A = I + sum of L_iᵀ G_i L_i are eliminated together, in which order, and what they fill.

A block is a stretch of velocities that the same contacts touch: those of a free body (6, or 3 in the plane), or the
part of a tree between two places where contacts' paths to the root join. Velocities that no contact touches belong to
none. Contacts of the same blocks make one element, a set of blocks that are all coupled. The next block to be
eliminated is one of least degree: of the fewest velocities that it is coupled with. The elements that it is in become
one, without it; blocks that are in no other are eliminated with it, in one front, since that fills nothing. Degrees are
bounded as in [AmestoyDavisDuff1996]: elements beyond the new one are counted as if they did not overlap. So the order
takes time in proportion to what is filled, and no table of all pairs is needed.
"""

from __future__ import annotations

from typing import Annotated as Array
from typing import NamedTuple

from stiction.arrays.compiled import in_callers, kernel
from stiction.arrays.layout import Floats, Ints, layout
from stiction.problems.normal_form import SMALL, touches

TOGETHER = 36  # velocities that are eliminated as one front: a front takes as long as 8,000 operations of another
MOST_BLOCKS = f"m if m > {TOGETHER} else 0"  # that have to be put in order
AT_ONCE = 4  # contacts of the same blocks that are added to the matrix at once


class Elements(NamedTuple):
    """Scratch of the ordering: elements, those of each block, and blocks by their degree; none for one front."""

    first: Array[Ints, "e"]  # where the blocks of an element begin in `Blocks.members`, and end
    last: Array[Ints, "e"]
    weight: Array[Ints, "e"]  # velocities of an element; 0 if it has become part of another
    beyond: Array[Ints, "e"]  # those of them that are not in the newest element
    seen: Array[Ints, "e"]  # the last front for which that was counted
    incident: Array[Ints, "n * width if b > 0 else 0"]  # elements of each block
    where: Array[Ints, "b + 1"]  # where those of a block begin
    count: Array[Ints, "b"]  # type: ignore[assignment]  # and how many there are
    degree: Array[Ints, "b"]
    least: Array[Ints, "b + 1"]  # first block of each degree, -1 if there is none
    after: Array[Ints, "b"]  # next block of the same degree, -1 after the last
    before: Array[Ints, "b"]  # the one before, -1 before the first
    own: Array[Ints, "b"]  # scratch: blocks
    mark: Array[Ints, "m + 1"]  # scratch


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
    total: Array[Ints, 2]  # how many blocks there are, and fronts
    pivots: Array[Ints, "m"]  # row exchanges within fronts
    values: Array[Floats, "m * m"]  # panels
    rows: Array[Floats, 2, "few * d", "width"]  # scratch: L of some contacts, in the order of elimination, and -Gᵀ L
    parts: Array[Floats, 2, "m"]  # scratch: a right-hand side in the order of elimination, and what a front needs of it
    lists: Array[Ints, 3, "m"]  # scratch: blocks TOUCHED by a contact, by the LAST one, the same ORDERED
    column: Array[Ints, "m"]  # scratch: where blocks lie in a front
    runs: Array[Ints, "m", 3]  # scratch: stretches of columns


# Columns of the table of blocks: first velocity, how many there are, the front that eliminates them, and the place of
# the first among all, in the order of elimination.
START, SIZE, FRONT, PLACE = range(4)
# Columns of the table of fronts: where its blocks begin in `members`, those eliminated first; where those left begin,
# in their order; the place of its first velocity; w; where its panels begin in `values`.
BEGIN, LEFT, BASE, WIDTH, PANEL = range(5)
# Rows of `lists`.
TOUCHED, LAST, ORDERED = range(3)

layout(Elements, "n", "m", "width", b=MOST_BLOCKS, e="n + b if b > 0 else 0")
layout(Blocks, "n", "d", "m", "width", b=MOST_BLOCKS, few=f"{AT_ONCE}")


@kernel
def order_bodies(rows, segments, blocks, elements):
    """Find blocks, fronts and panels for these contacts."""
    velocities = find_blocks(rows, segments, blocks, elements.mark)
    if velocities <= TOGETHER:
        eliminate_together(blocks)
        return
    count = find_elements(rows, segments, blocks, elements)
    remaining = velocities - eliminate_lone(count, blocks, elements)
    set_degrees(remaining, blocks, elements)
    eliminate(remaining, count, blocks, elements)
    sort_fronts(blocks)


@kernel
def find_blocks(rows, segments, blocks, cut):
    """Cut velocities into blocks where a contact touches one and not the next; return how many are touched at all."""
    # Mark what is touched, and where to cut. Short runs count as touched throughout.
    block, m = blocks.block, len(blocks.block)
    for v in range(m):
        block[v], cut[v] = -1, 0
    for i in range(len(segments)):
        at = 0
        for s in range(0, 4, 2):
            first, length = segments[i, s], segments[i, s + 1]
            if length == 0:
                continue
            cut[first] = cut[first + length] = 1
            before = length <= SMALL or touches(rows[i], at)
            for j in range(length):
                touched = length <= SMALL or touches(rows[i], at + j)
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
    blocks.total[0] = count
    return velocities


@kernel
def eliminate_together(blocks):
    """One front of all blocks."""
    place = 0
    for block in range(blocks.total[0]):
        place = join(block, 0, place, block, blocks)
    fronts = 1 if place > 0 else 0
    blocks.fronts[0, BEGIN], blocks.fronts[0, BASE], blocks.fronts[0, PANEL], blocks.total[1] = 0, 0, 0, fronts
    blocks.fronts[fronts, BEGIN] = blocks.fronts[0, LEFT] = blocks.total[0]
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
def find_elements(rows, segments, blocks, parts):
    """Write the elements, and those of each block; return how many there are."""
    members = blocks.members
    first, last, weight, where, count = parts.first, parts.last, parts.weight, parts.where, parts.count

    # One element for contacts in a row that touch the same blocks, if there are several.
    elements, top = 0, 0
    for i in range(len(segments)):
        found = blocks_of(rows[i], segments[i], blocks, members[top:])
        if found < 2 or (elements > 0 and repeats(members, first[elements - 1], top, found)):
            continue
        first[elements], last[elements] = top, top + found
        top += found
        elements += 1
    blocks.fronts[0, BEGIN] = top

    # Turn the lists round: elements of each block.
    b = blocks.total[0]
    for k in range(b + 1):
        where[k] = 0
    for z in range(top):
        where[members[z] + 1] += 1
    for k in range(b):
        where[k + 1] += where[k]
        count[k] = 0
    for e in range(elements):
        weight[e], parts.seen[e] = 0, -1
        for z in range(first[e], last[e]):
            k = members[z]
            weight[e] += blocks.table[k, SIZE]
            parts.incident[where[k] + count[k]] = e
            count[k] += 1
    return elements


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
def eliminate_lone(elements, blocks, parts):
    """Fronts of blocks that are in one element only: eliminated first, they fill nothing. Returns how many velocities.

    They leave their element. So dry friction, which has a velocity of its own, and the ends of limbs take no part in
    the ordering.
    """
    members, count = blocks.members, parts.count
    fronts, top, place = 0, blocks.fronts[0, BEGIN], 0
    for e in range(elements):
        # Its lone blocks, then the others.
        first, last, weight = parts.first[e], parts.last[e], parts.weight[e]
        before, begin = place, top
        for z in range(first, last):
            if count[members[z]] == 1:
                place = join(members[z], fronts, place, top, blocks)
                top += 1
        if top == begin:
            continue
        blocks.fronts[fronts, BEGIN], blocks.fronts[fronts, BASE], blocks.fronts[fronts, LEFT] = begin, before, top
        for z in range(first, last):
            if count[members[z]] > 1:
                members[top] = members[z]
                top += 1
        blocks.fronts[fronts, WIDTH] = weight
        parts.first[e], parts.last[e], parts.weight[e] = blocks.fronts[fronts, LEFT], top, weight - (place - before)
        fronts += 1
    blocks.fronts[fronts, BEGIN], blocks.fronts[fronts, BASE], blocks.total[1] = top, place, fronts
    return place


@kernel
def set_degrees(remaining, blocks, parts):
    """Bound how many velocities each block is coupled with; blocks are put into lists of the same degree."""
    for k in range(len(parts.least)):
        parts.least[k], parts.mark[k] = -1, -1
    for block in range(blocks.total[0] - 1, -1, -1):
        # Those in one element are eliminated already.
        degree = 0
        for k in range(parts.where[block], parts.where[block + 1]):
            degree += parts.weight[parts.incident[k]] - blocks.table[block, SIZE]
        if parts.count[block] != 1:
            put_in(block, min(degree, remaining - blocks.table[block, SIZE]), parts)


@in_callers
@kernel
def put_in(block, degree, parts):
    """Into the list of this degree, as its first."""
    following = parts.least[degree]
    parts.degree[block], parts.after[block], parts.before[block] = degree, following, -1
    if following >= 0:
        parts.before[following] = block
    parts.least[degree] = block


@in_callers
@kernel
def take_out(block, parts):
    """Out of the list of its degree."""
    following, previous = parts.after[block], parts.before[block]
    if following >= 0:
        parts.before[following] = previous
    if previous >= 0:
        parts.after[previous] = following
    else:
        parts.least[parts.degree[block]] = following


@kernel
def eliminate(remaining, elements, blocks, parts):
    """Fronts, in the order of least degree."""
    members, table, own, mark = blocks.members, blocks.table, parts.own, parts.mark
    weight, beyond, incident, where, count = parts.weight, parts.beyond, parts.incident, parts.where, parts.count
    fronts, least = blocks.total[1], 0
    top = blocks.fronts[fronts, BEGIN]
    while remaining > 0:
        # The next block, and all that it is coupled with; its elements become one.
        while parts.least[least] < 0:
            least += 1
        block, new = parts.least[least], elements + fronts
        take_out(block, parts)
        mark[block], coupled, found = fronts, 0, 0
        for k in range(where[block], where[block] + count[block]):
            e = incident[k]
            weight[e] = 0
            for z in range(parts.first[e], parts.last[e]):
                other = members[z]
                if mark[other] != fronts:
                    mark[other] = fronts
                    own[found] = other
                    found += 1
                    coupled += table[other, SIZE]

        # What the elements of these have beyond the new one.
        for x in range(found):
            for k in range(where[own[x]], where[own[x]] + count[own[x]]):
                e = incident[k]
                if weight[e] > 0:
                    if parts.seen[e] != fronts:
                        parts.seen[e], beyond[e] = fronts, weight[e]
                    beyond[e] -= table[own[x], SIZE]

        # Forget elements that lie within the new one. What is in no other is eliminated in the same front.
        blocks.fronts[fronts, BEGIN], place = top, blocks.fronts[fronts, BASE]
        place = join(block, fronts, place, top, blocks)
        top += 1
        for x in range(found):
            other, kept, far = own[x], 0, 0
            for k in range(where[other], where[other] + count[other]):
                e = incident[k]
                if weight[e] > 0 and beyond[e] > 0:
                    incident[where[other] + kept] = e
                    kept += 1
                    far += beyond[e]
            take_out(other, parts)
            if kept == 0:
                place = join(other, fronts, place, top, blocks)
                top += 1
                coupled -= table[other, SIZE]
                own[x] = -1
            else:
                incident[where[other] + kept] = new
                count[other] = kept + 1
                parts.after[other] = far

        # The others are left, in the new element; bounds of their degrees.
        remaining -= place - blocks.fronts[fronts, BASE]
        blocks.fronts[fronts, LEFT] = top
        for x in range(found):
            other = own[x]
            if other >= 0:
                members[top] = other
                top += 1
                rest = coupled - table[other, SIZE]
                degree = min(parts.degree[other] + rest, rest + parts.after[other], remaining - table[other, SIZE])
                put_in(other, degree, parts)
                least = min(least, degree)
        parts.first[new], parts.last[new] = blocks.fronts[fronts, LEFT], top
        weight[new], parts.seen[new] = coupled, -1
        blocks.fronts[fronts, WIDTH] = place - blocks.fronts[fronts, BASE] + coupled
        fronts += 1
        blocks.fronts[fronts, BASE] = place
    blocks.fronts[fronts, BEGIN] = top
    blocks.total[1] = fronts


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
    for f in range(blocks.total[1]):
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
