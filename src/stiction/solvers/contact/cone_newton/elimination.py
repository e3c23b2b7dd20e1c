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

AT_ONCE = 4  # contacts of the same blocks that are added to the matrix at once


class Elements(NamedTuple):
    """Scratch of the ordering: elements, those of each block, and blocks by their degree."""

    first: Array[Ints, "n + m"]  # where the blocks of an element begin in `Blocks.members`, and end
    last: Array[Ints, "n + m"]
    weight: Array[Ints, "n + m"]  # velocities of an element; 0 if it has become part of another
    beyond: Array[Ints, "n + m"]  # those of them that are not in the newest element
    seen: Array[Ints, "n + m"]  # the last front for which that was counted
    incident: Array[Ints, "n * width"]  # elements of each block
    where: Array[Ints, "m + 1"]  # where those of a block begin
    count: Array[Ints, "m"]  # type: ignore[assignment]  # and how many there are
    degree: Array[Ints, "m"]
    least: Array[Ints, "m + 1"]  # first block of each degree, -1 if there is none
    after: Array[Ints, "m"]  # next block of the same degree, -1 after the last
    before: Array[Ints, "m"]  # the one before, -1 before the first


class Blocks(NamedTuple):
    """Blocks of velocities, fronts in the order of elimination, and the panels of the factors.

    A front's panels are the rows of its s velocities, s × w with the w - s that are left, and the columns below them,
    transposed.
    """

    block: Array[Ints, "m"]  # of each velocity, -1 if no contact touches it
    start: Array[Ints, "m"]  # first velocity of a block
    size: Array[Ints, "m"]  # how many it has
    front: Array[Ints, "m"]  # in which it is eliminated
    place: Array[Ints, "m"]  # of its first velocity among all, in the order of elimination
    members: Array[Ints, "n * width + m * (m + 1) // 2"]  # blocks of elements at first, then those of fronts
    begin: Array[Ints, "m + 1"]  # where a front's blocks begin there: those eliminated, then in order those left
    left: Array[Ints, "m"]  # where those left begin
    base: Array[Ints, "m + 1"]  # place of a front's first velocity
    width: Array[Ints, "m"]  # w of a front
    panel: Array[Ints, "m + 1"]  # where its panels begin in `values`
    values: Array[Floats, "m * m"]
    rows: Array[Floats, "few * d", "width"]  # scratch: L of some contacts, in the order of elimination
    images: Array[Floats, "few * d", "width"]  # scratch: -Gᵀ L of the same
    ordered: Array[Floats, "m"]  # scratch: a right-hand side in the order of elimination
    part: Array[Floats, "m"]  # scratch: what a front needs of it
    column: Array[Ints, "m"]  # scratch: where blocks lie in a front
    own: Array[Ints, "m"]  # scratch: blocks
    touched: Array[Ints, "m"]  # scratch: those of one contact
    shared: Array[Ints, "m"]  # scratch: those of the contacts in `rows`
    runs: Array[Ints, "m", 3]  # scratch: stretches of columns
    mark: Array[Ints, "m + 1"]  # scratch
    pivots: Array[Ints, "m"]  # row exchanges within fronts
    total: Array[Ints, 2]  # how many blocks there are, and fronts
    elements: Elements


layout(Elements, "n", "m", "width")
layout(Blocks, "n", "d", "m", "width", few=f"{AT_ONCE}")


@kernel
def order_bodies(rows, segments, blocks):
    """Find blocks, fronts and panels for these contacts."""
    find_blocks(rows, segments, blocks)
    elements = find_elements(rows, segments, blocks)
    eliminate_lone(elements, blocks)
    set_degrees(blocks)
    eliminate(elements, blocks)
    sort_fronts(blocks)


@kernel
def find_blocks(rows, segments, blocks):
    """Cut velocities into blocks wherever a contact touches one velocity, and not the next."""
    # Mark what is touched, and where to cut. Short runs count as touched throughout.
    block, cut, m = blocks.block, blocks.mark, len(blocks.block)
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
    count = 0
    for v in range(m):
        if block[v] < 0:
            continue
        if v == 0 or block[v - 1] < 0 or cut[v] != 0:
            blocks.start[count], blocks.size[count] = v, 0
            count += 1
        block[v] = count - 1
        blocks.size[count - 1] += 1
    blocks.total[0] = count


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
            j += blocks.size[block]
        at += length
    return count


@kernel
def find_elements(rows, segments, blocks):
    """Write the elements, and those of each block; return how many there are."""
    members, parts = blocks.members, blocks.elements
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
    blocks.begin[0] = top

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
            weight[e] += blocks.size[k]
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
def eliminate_lone(elements, blocks):
    """Fronts of blocks that are in one element only: eliminated first, they fill nothing. They leave their element.

    So dry friction, which has a velocity of its own, and the ends of limbs take no part in the ordering.
    """
    parts, members, size, count = blocks.elements, blocks.members, blocks.size, blocks.elements.count
    fronts, top, place = 0, blocks.begin[0], 0
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
        blocks.begin[fronts], blocks.base[fronts], blocks.left[fronts] = begin, before, top
        for z in range(first, last):
            if count[members[z]] > 1:
                members[top] = members[z]
                top += 1
        blocks.width[fronts] = weight
        parts.first[e], parts.last[e], parts.weight[e] = blocks.left[fronts], top, weight - (place - before)
        fronts += 1
    blocks.begin[fronts], blocks.base[fronts], blocks.total[1] = top, place, fronts


@kernel
def set_degrees(blocks):
    """Bound how many velocities each block is coupled with; blocks are put into lists of the same degree."""
    parts, m, all_velocities = blocks.elements, len(blocks.block), 0
    for k in range(m + 1):
        parts.least[k], blocks.mark[k] = -1, -1
    for block in range(blocks.total[0]):
        all_velocities += blocks.size[block]
    remaining = all_velocities - blocks.base[blocks.total[1]]
    for block in range(blocks.total[0] - 1, -1, -1):
        # Those in one element are eliminated already.
        degree = 0
        for k in range(parts.where[block], parts.where[block + 1]):
            degree += parts.weight[parts.incident[k]] - blocks.size[block]
        if parts.count[block] != 1:
            put_in(block, min(degree, remaining - blocks.size[block]), parts)


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
def eliminate(elements, blocks):
    """Fronts, in the order of least degree."""
    parts, members, size, own, mark = blocks.elements, blocks.members, blocks.size, blocks.own, blocks.mark
    weight, beyond, incident, where, count = parts.weight, parts.beyond, parts.incident, parts.where, parts.count
    fronts, least, remaining = blocks.total[1], 0, 0
    top = blocks.begin[fronts]
    for k in range(blocks.total[0]):
        remaining += size[k]
    remaining -= blocks.base[fronts]
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
                    coupled += size[other]

        # What the elements of these have beyond the new one.
        for x in range(found):
            for k in range(where[own[x]], where[own[x]] + count[own[x]]):
                e = incident[k]
                if weight[e] > 0:
                    if parts.seen[e] != fronts:
                        parts.seen[e], beyond[e] = fronts, weight[e]
                    beyond[e] -= size[own[x]]

        # Forget elements that lie within the new one. What is in no other is eliminated in the same front.
        blocks.begin[fronts], place = top, blocks.base[fronts]
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
                coupled -= size[other]
                own[x] = -1
            else:
                incident[where[other] + kept] = new
                count[other] = kept + 1
                parts.after[other] = far

        # The others are left, in the new element; bounds of their degrees.
        remaining -= place - blocks.base[fronts]
        blocks.left[fronts] = top
        for x in range(found):
            other = own[x]
            if other >= 0:
                members[top] = other
                top += 1
                rest = coupled - size[other]
                degree = min(parts.degree[other] + rest, rest + parts.after[other], remaining - size[other])
                put_in(other, degree, parts)
                least = min(least, degree)
        parts.first[new], parts.last[new] = blocks.left[fronts], top
        weight[new], parts.seen[new] = coupled, -1
        blocks.width[fronts] = place - blocks.base[fronts] + coupled
        fronts += 1
        blocks.base[fronts] = place
    blocks.begin[fronts] = top
    blocks.total[1] = fronts


@in_callers
@kernel
def join(block, front, place, top, blocks):
    """Let a block be eliminated in this front; return the place after it."""
    blocks.front[block], blocks.place[block], blocks.members[top] = front, place, block
    return place + blocks.size[block]


@kernel
def sort_fronts(blocks):
    """Sort what is left after each front by the order of elimination, and lay out the panels."""
    members, place = blocks.members, blocks.place
    blocks.panel[0] = 0
    for f in range(blocks.total[1]):
        # By insertion: the lists are short.
        begin = blocks.left[f]
        for z in range(begin + 1, blocks.begin[f + 1]):
            block, y = members[z], z
            while y > begin and place[members[y - 1]] > place[block]:
                members[y] = members[y - 1]
                y -= 1
            members[y] = block

        # Rows of the front, then the columns below, transposed.
        s, w = blocks.base[f + 1] - blocks.base[f], blocks.width[f]
        blocks.panel[f + 1] = blocks.panel[f] + s * (2 * w - s)
