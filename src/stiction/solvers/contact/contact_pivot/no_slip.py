"""No slip: closed contacts do not slide, however large the impulse; open contacts carry no impulse.

    closed   u_n = 0, u_t = 0, p_n >= 0        open   u_n >= 0, p = 0

For a given set of bound contacts, their tangential rows are treated like joints: they are made orthonormal, the largest
remainder first, and projected out of all normals, which leaves a problem without friction [Drumwright2013, eq. 45–57].
The paper binds every contact. Here a contact that opens is released, and one that presses while it slides is bound,
until nothing changes. When an earlier set returns, contacts change one at a time, the worst first.

A consistent set need not exist. A contact that would have to pull if it were bound, and whose bodies would penetrate
each other if it carried no impulse, can only slide against a tangential impulse without a normal one: the limit of
Coulomb's law for infinite friction [LynchMason1995]. Then a contact that was released in vain is bound permanently, as
in the paper: it does not slide, though it opens. Each contact is released at most once and bound again at most once, so
this terminates.
"""

from __future__ import annotations

from typing import Annotated as Array
from typing import Any, NamedTuple

from stiction.arrays.compiled import kernel
from stiction.arrays.dense import dot, subtract_multiple
from stiction.arrays.layout import Floats, Ints, layout
from stiction.arrays.runs import add_row, row_dot
from stiction.solvers.contact.contact_pivot.pressing import press_contacts, press_sizes
from stiction.solvers.contact.contact_pivot.tolerances import HELD, RETURNS, ROUNDS, VIOLATED
from stiction.solvers.contract import MAX_ITERATIONS, SOLVED, STALLED
from stiction.solvers.tolerances import ROUNDING, SOLVE_ERROR

RELEASED, FOR_GOOD = range(1, 3)


class Binding(NamedTuple):
    """The state of the method; the normal form's units."""

    rows: Any  # (n, 3, k)
    segments: Any  # (n, 4)
    whole: Array[Ints, "n", 4]  # segments of rows over all velocities
    bias: Any  # (n, 3)
    free: Any  # (m,)
    impulse: Any  # (n, 3)
    left: Array[Floats, "n", "m"]  # normals, orthogonal to the bound rows
    offset: Array[Floats, "n"]  # constant part of the normal velocities
    size: Array[Floats, 2, "n"]  # upper bounds of the squared remainders of the tangential rows
    worst: Array[Floats, "n"]  # violation of each contact in its set
    z: Array[Floats, "n"]
    u: Array[Floats, "n", 3]
    basis: Array[Floats, "m", "m"]  # orthonormal bound rows
    triangle: Array[Floats, "m", "m"]  # bound rows = triangle @ basis
    wanted: Array[Floats, "m"]  # basis @ x, fixed by the bound rows
    share: Array[Floats, "m"]  # impulses of the bound rows
    start: Array[Floats, "m"]  # x without normal impulses
    x: Array[Floats, "m"]
    kept: Array[Ints, "m"]  # tangential row 2 i + (0 or 1) of each basis row
    bound: Array[Ints, "n"]
    fate: Array[Ints, "n"]  # 0, RELEASED once, or bound permanently (FOR_GOOD)
    seen: Array[Ints, "rounds"]  # hashes of earlier bound sets
    floats: Array[Floats, ...]  # for `pressing`
    ints: Array[Ints, ...]


own_sizes, views = layout(Binding, "n", "m", rounds=f"{ROUNDS}")


def binding_sizes(n: int, m: int) -> tuple[int, int]:
    """Floats and ints of the workspace, including that of `pressing`."""
    own, inner = own_sizes(n, m), press_sizes(n, m)
    return own[0] + inner[0], own[1] + inner[1]


@kernel
def binding_views(rows, segments, bias, free, impulse, floats, ints):
    """Views of the workspace; projected normals reach over all m velocities."""
    n, m = len(bias), len(free)
    t = views(n, m, rows, segments, bias, free, impulse, floats, ints)
    for i in range(n):
        t.whole[i, 0], t.whole[i, 1], t.whole[i, 2], t.whole[i, 3] = 0, m, 0, 0
    return t


@kernel
def without_slip(rows, segments, bias, free, warm, limit, floats, ints, impulse):
    """Solve the problem; returns (status, pivots, rounds, contacts that open but do not slide).

    warm: whether `impulse` holds a start
    """
    n = len(bias)
    t = binding_views(rows, segments, bias, free, impulse, floats, ints)

    # Nothing to do if all contacts separate by themselves.
    if lifts_off(t):
        return SOLVED, 0, 0, 0

    # Begin with the contacts that carry an impulse in the start, or with all of them.
    for i in range(n):
        t.bound[i] = 1
        if warm:
            t.bound[i] = 1 if impulse[i, 0] > 0.0 or impulse[i, 1] != 0.0 or impulse[i, 2] != 0.0 else 0
            t.z[i] = impulse[i, 0]
    status, pivots, rounds = search(t, warm, limit)
    if status == SOLVED:
        return status, pivots, rounds, 0

    # No consistent set was found: bind contacts permanently, and count those that open nevertheless.
    status, more, last = bind_for_good(t, limit)
    held, (allowed, _) = 0, judge(t)
    for i in range(n):
        if t.bound[i] and t.worst[i] > allowed:
            held += 1
    return status, pivots + more, rounds + last, held


@kernel
def lifts_off(t):
    """Whether all contacts open without impulses; sets them to zero then, though other solutions may exist."""
    for i in range(len(t.z)):
        if not row_dot(t.rows[i, 0], t.segments[i], t.free) + t.bias[i, 0] > VIOLATED:
            return False
    for i in range(len(t.z)):
        t.impulse[i, 0], t.impulse[i, 1], t.impulse[i, 2] = 0.0, 0.0, 0.0
    return True


@kernel
def search(t, warm, limit):
    """Change the bound set until every contact is consistent. Returns (status, pivots, rounds)."""
    pivots, returns = 0, 0
    for r in range(ROUNDS):
        # Impulses for the present set; done if no contact violates its conditions.
        status, count = solve_bound(t, warm and r == 0, limit)
        pivots += count
        if status != SOLVED:
            return status, pivots, r
        allowed, which = judge(t)
        if t.worst[which] <= allowed:
            return SOLVED, pivots, r

        # Has this set occurred before? After too many returns the search is cycling.
        code, alone = set_hash(t), False
        for q in range(r):
            alone = alone or t.seen[q] == code
        t.seen[r] = code
        returns += alone
        if returns > RETURNS:
            return STALLED, pivots, r

        # Change all contacts that are wrong, and release those that open; if the set has returned, only the worst.
        for i in range(len(t.z)):
            if i == which or (not alone and (t.worst[i] > allowed or (t.bound[i] and t.u[i, 0] > allowed))):
                t.bound[i] = 1 - t.bound[i]
    return MAX_ITERATIONS, pivots, ROUNDS


@kernel
def bind_for_good(t, limit):
    """From all bound: release contacts that open; one that then presses while it slides is bound permanently.

    Returns (status, pivots, rounds).
    """
    # As in the paper, all contacts are bound at first.
    n, pivots = len(t.z), 0
    for i in range(n):
        t.bound[i], t.fate[i] = 1, 0
    for r in range(2 * n + 1):
        status, count = solve_bound(t, False, limit)
        pivots += count
        if status != SOLVED:
            return status, pivots, r

        # Released contacts that press and slide are bound permanently; of the bound ones find the worst.
        allowed, _ = judge(t)
        pressing, which = False, -1
        for i in range(n):
            if not t.bound[i] and t.worst[i] > allowed:
                t.bound[i], t.fate[i], pressing = 1, FOR_GOOD, True
            elif t.bound[i] and t.fate[i] == 0 and t.worst[i] > allowed and (which < 0 or t.worst[i] > t.worst[which]):
                which = i

        # Bind before anything else is released; done if nothing changes.
        if pressing:
            continue
        if which < 0:
            return SOLVED, pivots, r

        # Release the worst contact, and all that open without carrying an impulse.
        for i in range(n):
            if i == which or (t.bound[i] and t.fate[i] == 0 and t.worst[i] <= allowed and t.u[i, 0] > allowed):
                t.bound[i], t.fate[i] = 0, RELEASED
    return MAX_ITERATIONS, pivots, 2 * n + 1


@kernel
def judge(t):
    """Set `worst`, the violation of each contact. Returns (violation allowed for rounding, worst contact)."""
    largest, which = 0.0, 0
    for i in range(len(t.z)):
        t.worst[i] = violation_of(t, i)
        largest = max(largest, t.z[i], abs(t.impulse[i, 1]), abs(t.impulse[i, 2]))
        if t.worst[i] > t.worst[which]:
            which = i
    return VIOLATED + SOLVE_ERROR * largest, which


@kernel
def violation_of(t, i):
    """Violation of a contact in its set.

    A bound contact must not open under a tangential impulse, nor slide; a free one must not press while it slides.
    """
    slide = max(abs(t.u[i, 1]), abs(t.u[i, 2]))
    if t.bound[i]:
        pull = max(abs(t.impulse[i, 1]), abs(t.impulse[i, 2]))
        return max(min(t.u[i, 0], pull), min(slide, max(pull, t.z[i])))
    return min(t.z[i], slide)


@kernel
def set_hash(t):
    """Hash of the bound set, by which its return is recognised."""
    code = 1
    for i in range(len(t.z)):
        code = (code * 1099511628211 + t.bound[i] + 2) & 0x7FFFFFFFFFFFFFF
    return code


@kernel
def solve_bound(t, warm, limit):
    """No slip at the bound contacts, no friction at the others: impulses and velocities. Returns (status, pivots)."""
    # Project out the bound tangents [Drumwright2013, eq. 56–57].
    rank = project(t)

    # `press_contacts` overwrites z, so a warm start is copied to `worst`.
    begin = t.z if warm else t.z[:0]
    for i in range(len(begin)):
        t.worst[i] = begin[i]
    status, pivots = press_contacts(
        t.left, t.whole, t.offset, t.start, t.worst[: len(begin)], limit, t.floats, t.ints, t.z, t.x
    )
    distribute(t, rank)
    return status, pivots


@kernel
def project(t):
    """Orthonormal basis of the bound tangential rows, projected out of x_free and of the normals. Returns its rank.

    It selects independent rows, as FIND-INDICES does [Drumwright2013, Algorithm 2]: a row is taken if its remainder is
    above a level that follows the largest remainder down. Remainders only shrink, so that old ones are upper bounds,
    and few are computed again.
    """
    # Free contacts do not take part: their remainders are zero.
    n, m = len(t.z), len(t.free)
    for i in range(n):
        for c in range(2):
            row = t.rows[i, 1 + c]
            t.size[c, i] = dot(row, row, len(row)) if t.bound[i] else 0.0
    for j in range(m):
        t.start[j] = t.free[j]

    # Take rows with remainders above the level, then lower it; rows that the basis nearly spans are left out.
    rank, level, most = 0, 0.5, 1.0
    while most > HELD * HELD and rank < m:
        most = 0.0
        for i in range(n):
            for c in range(2):
                if t.size[c, i] > level * level:
                    t.size[c, i] = remainder(t.rows[i, 1 + c], t.segments[i], t.basis, rank)
                    if t.size[c, i] > level * level and rank < m:
                        bind(t, rank, i, 1 + c)
                        t.size[c, i] = 0.0
                        rank += 1
                most = max(most, t.size[c, i])
        level = max(min(0.25 * level, 0.5 * most**0.5), HELD)

    # What is left of the normals, and the part of their velocities that the basis fixes.
    for i in range(n):
        t.offset[i] = t.bias[i, 0] + take_out(t.rows[i, 0], t.segments[i], t.basis, t.wanted, rank, t.left[i])
    return rank


@kernel
def remainder(row, segment, basis, rank):
    """The squared length of a row minus its projection onto the basis."""
    left = dot(row, row, len(row))
    for l in range(rank):
        along = row_dot(row, segment, basis[l])
        left -= along * along
    return left


@kernel
def bind(t, rank, i, c):
    """Add a tangential row to the basis; `wanted` is the value of axis · x at which the contact does not slide."""
    # The row over all velocities.
    m = len(t.free)
    axis, along = t.basis[rank], t.triangle[rank]
    for j in range(m):
        axis[j] = 0.0
    add_row(t.rows[i, c], t.segments[i], 1.0, axis)

    # Orthogonalise twice (Gram–Schmidt), for the sake of nearly dependent rows; the components go to the triangle.
    for l in range(rank):
        along[l] = 0.0
    for _ in range(2):
        for l in range(rank):
            part = dot(axis, t.basis[l], m)
            if part != 0.0:
                along[l] += part
                subtract_multiple(axis, part, t.basis[l], m)

    # Normalise what is left.
    length = dot(axis, axis, m) ** 0.5
    along[rank] = length
    for j in range(m):
        axis[j] /= length

    # Row · x + bias = 0 gives axis · x; x_free is moved along the axis to that value.
    t.wanted[rank] = -(t.bias[i, c] + dot(along, t.wanted, rank)) / length
    subtract_multiple(t.start, dot(axis, t.start, m) - t.wanted[rank], axis, m)
    t.kept[rank] = 2 * i + c - 1


@kernel
def take_out(row, segment, basis, wanted, rank, rest):
    """rest = row minus its projection onto the basis; returns the velocity of that projection, which is fixed."""
    # The row over all velocities.
    m = len(rest)
    for j in range(m):
        rest[j] = 0.0
    add_row(row, segment, 1.0, rest)

    # Subtract its projection; along the basis x has the values `wanted`.
    known = 0.0
    for l in range(rank):
        part = row_dot(row, segment, basis[l])
        if part != 0.0:
            subtract_multiple(rest, part, basis[l], m)
            known += part * wanted[l]
    if dot(rest, rest, m) <= HELD * HELD:
        for j in range(m):
            rest[j] = 0.0  # the bound rows hold it already
    return known


@kernel
def distribute(t, rank):
    """Impulses of the bound rows, refined at most twice; then all contact velocities."""
    # Velocities under the normal impulses alone.
    n, m = len(t.z), len(t.free)
    for j in range(m):
        t.start[j] = t.free[j]
    for i in range(n):
        t.impulse[i, 0], t.impulse[i, 1], t.impulse[i, 2] = t.z[i], 0.0, 0.0
        if t.z[i] != 0.0:
            add_row(t.rows[i, 0], t.segments[i], t.z[i], t.start)
    for j in range(m):
        t.x[j] = t.start[j]
    for _ in range(3):
        # Sliding that is left at the bound rows, R = triangle · basis: forward substitution in R Rᵀ share = -sliding.
        fastest = 0.0
        for k in range(rank):
            i, c = t.kept[k] // 2, 1 + t.kept[k] % 2
            slide = row_dot(t.rows[i, c], t.segments[i], t.x) + t.bias[i, c]
            fastest = max(fastest, abs(slide))
            t.share[k] = -(slide + dot(t.triangle[k], t.share, k)) / t.triangle[k, k]
        if fastest <= ROUNDING:
            break

        # Back substitution: impulses that stop this sliding.
        for k in range(rank - 1, -1, -1):
            t.share[k] /= t.triangle[k, k]
            subtract_multiple(t.share, t.share[k], t.triangle[k], k)
            i, c = t.kept[k] // 2, 1 + t.kept[k] % 2
            t.impulse[i, c] += t.share[k]

        # Velocities under all impulses.
        for j in range(m):
            t.x[j] = t.start[j]
        for k in range(rank):
            i, c = t.kept[k] // 2, 1 + t.kept[k] % 2
            add_row(t.rows[i, c], t.segments[i], t.impulse[i, c], t.x)

    # Contact velocities, by which the set is judged.
    for i in range(n):
        for c in range(3):
            t.u[i, c] = row_dot(t.rows[i, c], t.segments[i], t.x) + t.bias[i, c]
