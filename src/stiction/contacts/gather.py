"""Everything that constrains one step, read from MuJoCo's data after the smooth forces are known.

Three kinds of unilateral constraints become contacts with rows n, t1, t2:

- a contact between geoms: gap is the true distance; those of a face lie in one plane (`level`). mu is the sliding
  coefficient, zero for condim 1. Unequal coefficients mu1, mu2 along the tangents are exact as well: with t_i scaled by
  mu_i / max(mu1, mu2) the ellipse of friction becomes a disc, and sliding still dissipates most. So are torsional and
  rolling friction (condim 4 and 6), whose rows follow as further tangents, scaled by their coefficients, in m, over mu:
  all together friction is the elliptic cone that MuJoCo means, sum (f_i / mu_i)² <= f_n².
- a limit of a joint or tendon: no tangents, mu = 0.
- dry friction of a joint or tendon, |p| <= b = dt · frictionloss: a velocity is added that nothing else is coupled to,
  with mass a and free velocity -b/a; it must not be negative, so that its impulse is always b. It is the normal
  of a contact with mu = 1 whose only tangent is the joint, so the joint's friction is bounded by b and opposes sliding.
  The mass a is the joint's own effective inertia.

Equalities become bilateral rows with their present position error e, and the velocity w⁺ at which the model's author
wants to see it go: MuJoCo's reference acceleration, from solref and solimp, as an exact condition,

    w⁺ = w - dt (b w + k e),      b dt <= 1,      k dt² <= 1

where w is their present velocity; the bounds keep a stiff reference from overshooting within a step.

Where surfaces move by themselves, as MuJoCo's `surfacevel` makes a belt or a turntable do, tangential velocities have a
constant part (`surface`): the velocity of the second geom's surface at the contact relative to the first's, and of its
spin, scaled as the rows are.

A contact keeps its two geoms (`pair`), its place in the frame of the second one (`spot`), and its tangents (`frame`).
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, NamedTuple
from typing import Annotated as Array

import numpy as np

from stiction.arrays.compiled import kernel
from stiction.arrays.layout import Floats, Ints, layout
from stiction.bodies.dynamics import Damping, block_entries, fill_blocks
from stiction.bodies.inputs import FINITE, MAXVAL, first_outside
from stiction.bodies.pointers import floats, ints
from stiction.bodies.structs import ADDRESS, DIM, DIST, FRAME, FRICTION, GEOM, POS, SIZE, SURFACES, WIDEST
from stiction.contacts.level import level, smaller_radius
from stiction.contacts.rows import (
    TOO_MANY,
    copy_row,
    largest_entry,
    segment_of,
    segments_of_row,
    trees_of_contact,
    trees_of_row,
)
from stiction.errors import InvalidScene

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.bodies.structs import Memory

CONTACT, LIMIT, DRY = 0, 1, 2  # kinds
SAME = 1e-7  # of a radius: contacts closer than this are the same
# Gap of a contact, as part of the smaller geom's radius, that counts as none: what the curvature of a motion leaves of
# a gap that was closed. Chased from step to step, such gaps move everything that they touch by as little, which makes
# contacts slide, under their full friction, that should stick. Smaller: settling heaps take twice as many Newton steps.
SLACK = 1e-6
CORNERS = 4  # a pair with more contacts is searched for ones that lie between two others
MOVES, IMMOVABLE = 1e-6, 1e-10  # entries of a normal row: above rounding; rounding, relative to its tangents
LEAST_LEVER = 1e-13  # m: a normal row with smaller entries is rounding, whatever its tangents are
MISALIGNED = 1e-4  # entries of a row of a loop, over those of its neighbours, that come from a model's decimals
# Of the radius of a mesh, whose vertices have single precision: four rounding errors. A gap of that size counts as
# closed. Smaller: a mesh at rest rocks from vertex to vertex of a flat face, as MuJoCo picks others in every step.
GRAIN = 2.0**-22
MESH = 7  # mjGEOM_MESH
MIN_MU = 1e-5  # mjMINMU: MuJoCo's value for friction 0
PYRAMIDAL = 6  # mjCNSTR_CONTACT_PYRAMIDAL

# Indices of the counts that `measure` writes.
BLOCKS, VELOCITIES, ENTRIES, CONTACTS, WIDTH, JOINTS, JOINT_WIDTH, DIRECTIONS, CARRIED, SCRATCH = range(10)
WAIT, PACE = 10, 11  # of the record of a step, which begins with these counts (`stepping.fused`)
COUNTS = 12

LATE = "came into being after this data was first stepped: begin with a new Simulation or MjData"
PROBLEMS = {
    1: "contacts must be posed with the elliptic cone: set model.opt.cone to elliptic, or use a `Shadow` of the model",
    2: f"the limit of a tendon over more than two kinematic trees {LATE}",
    3: f"dry friction of a tendon over more than one kinematic tree {LATE}",
    4: "contacts of flexible bodies are not supported",
}
# Problem numbers for computed values that are not finite; they also encode the index.
BAD = 8  # the first of them
BAD_CTRL, BAD_ACT_DOT, BAD_FREE = range(3)
NOT_FINITE = {
    BAD_CTRL: "step: data.ctrl[{}] = {} must be a number of at most 1e+10; mjcb_control has set it, or whoever "
    "called step2; nothing moved",
    BAD_ACT_DOT: "step: data.act_dot[{}] = {} must be finite: look at actuators and their controls; nothing moved",
    BAD_FREE: (
        "step: data.qacc_smooth[{}] = {} must be finite, and make a velocity of at most 1e10 in a step: look at forces,"
        " damping, armature, gains and inertia of the model and at what callbacks add; nothing moved"
    ),
}


class Constraints(NamedTuple):
    """The constraints of a step: mass blocks, m velocities, n contacts, j bilateral rows."""

    mass: Array[Floats, "entries"]  # the dense symmetric blocks of M + dt D, one after the other
    free: Array[Floats, "m"]  # velocity without contact
    rows: Array[Floats, "n", "d", "width"]  # n, t1, t2 at the velocities of `segments`
    friction: Array[Floats, "n"]  # mu
    gap: Array[Floats, "n"]  # distance, in m or rad; negative where bodies overlap
    slack: Array[Floats, "n"]  # distance that counts as none
    spot: Array[Floats, "n", 3]  # place of a contact in the frame of its second geom; the side of a limit
    joints: Array[Floats, "j", "joint_width"]  # bilateral rows at the velocities of `joint_segments`
    joint_gap: Array[Floats, "j"]  # error of position of the bilateral rows
    joint_aim: Array[Floats, "j"]  # velocity of theirs after the step that the model's solref asks for
    surface: Array[Floats, "carried", "d"]  # motion of surfaces at the n contacts, 0 along n; none if all are still
    frame: Array[Floats, "n", 2, 3]  # t1 and t2 in the world; zero of limits and dry friction
    starts: Array[Ints, "blocks + 1"]  # first velocity of each block: the trees, then one for each dry friction
    segments: Array[Ints, "n", 4]  # start and length of the two runs of velocities that a contact touches, whole blocks
    joint_segments: Array[Ints, "j", 4]  # the same of the bilateral rows
    kind: Array[Ints, "n"]  # CONTACT, LIMIT or DRY
    address: Array[Ints, "n"]  # first row of a contact among MuJoCo's constraints
    source: Array[Ints, "n"]  # index in `data.contact`; of the joint, tendon or velocity for limits and dry friction
    pair: Array[Ints, "n", 2]  # the geoms; (-1 - MuJoCo's constraint type, source) for limits and dry friction

    @property
    def n(self) -> int:
        return len(self.gap)

    def dense(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Mass (m, m), contact rows (n, d, m) and bilateral rows (j, m), for small problems."""
        m = len(self.free)
        mass, rows, joints = (
            np.zeros((m, m)),
            np.zeros((self.n, self.rows.shape[1], m)),
            np.zeros((len(self.joint_gap), m)),
        )
        place = 0
        for start, end in zip(self.starts[:-1], self.starts[1:], strict=True):
            size = end - start
            mass[start:end, start:end] = self.mass[place : place + size * size].reshape(size, size)
            place += size * size
        for cut, whole, segments in ((self.rows, rows, self.segments), (self.joints, joints, self.joint_segments)):
            for i, (start, length, other, more) in enumerate(segments):
                whole[i, ..., start : start + length] = cut[i, ..., :length]
                whole[i, ..., other : other + more] += cut[i, ..., length : length + more]
        return mass, rows, joints


# Of arrays, and the first of the counts.
LENGTHS = ("blocks", "m", "entries", "n", "width", "j", "joint_width", "d", "carried")
sizes, views = layout(Constraints, *LENGTHS)


def gather(memory: Memory, flat: bool = False) -> Constraints:
    """Read the constraints of this step; `bodies.stages.smooth` must have run. flat: faces are levelled (`level`)."""
    counts, kept = np.empty(COUNTS, np.int64), np.empty(int(memory.data["ncon"][0]), np.int64)
    problem = measure(memory.model, memory.data, memory.where, counts, kept, flat)
    if problem:
        raise InvalidScene(problem_text(memory, int(problem)))
    lengths = counts[: len(LENGTHS)].tolist()
    floats, ints = sizes(*lengths)
    found: Constraints = views(*lengths, np.empty(floats), np.empty(ints, np.int64))
    scratch = Damping(np.empty(counts[SCRATCH]), np.empty(counts[ENTRIES]))
    fill(memory.model, memory.data, memory.where, kept, found, scratch)
    return found


def problem_text(memory: Memory, problem: int) -> str:
    """The message for a problem number returned by `measure`."""
    if problem < BAD:
        return PROBLEMS[problem]
    index, which = divmod(problem - BAD, len(NOT_FINITE))
    address = int(memory.data[("ctrl", "act_dot", "qacc_smooth")[which]][0])
    return NOT_FINITE[which].format(index, ctypes.c_double.from_address(address + 8 * index).value)


@kernel
def measure(model, data, where, counts, kept, flat):
    """Count the constraints of this step; return the number of a problem that prevents it, 0 if there is none.

    kept: (ncon,) indices of the contacts that are not left out
    flat: whether contacts of a face are brought into one plane
    """
    m, d = model[0], data[0]

    # Bad controls, activations or accelerations would make every velocity bad.
    i = first_outside(floats(d.ctrl), m.nu, -MAXVAL, MAXVAL)
    if i >= 0:
        return BAD + 3 * i + BAD_CTRL
    i = first_outside(floats(d.act_dot), m.na, -FINITE, FINITE)
    if i >= 0:
        return BAD + 3 * i + BAD_ACT_DOT
    most = MAXVAL / m.timestep  # the velocity must stay below MAXVAL
    i = first_outside(floats(d.qacc_smooth), m.nv, -most, most)
    if i >= 0:
        return BAD + 3 * i + BAD_FREE

    # MuJoCo lists the contacts of a pair one after the other: the trees are the same for all of them.
    dry, touching, width, directions, moving = d.nf, 0, 0, 3, False
    kinds = ints(d.efc_type)
    first = 0
    while first < d.ncon:
        end = first + 1
        while end < d.ncon and same_pair(data, where, first, end):
            end += 1
        # How many velocities its trees have; contacts of a face in one plane.
        contact = d.contact + first * where[SIZE]
        geoms = ints(contact + where[GEOM])
        flexible = geoms[0] < 0 or geoms[1] < 0
        length = 0
        if not flexible:
            one, two = trees_of_contact(model, where, geoms[0], geoms[1])
            length = segment_of(model, where, one)[1] + segment_of(model, where, two)[1]
            if flat and end > first + 1:
                level(model, data, where, first, end)

        # Keep the contacts that are neither duplicates nor on bodies that joints hold fixed along the normal.
        for i in range(first, end):
            address = ints(d.contact + i * where[SIZE] + where[ADDRESS])[0]
            if address < 0:
                continue
            if flexible:
                return 4
            if kinds[address] == PYRAMIDAL:
                return 1
            # Torsion and rolling need six rows; a surface that moves, its velocity.
            if not (superfluous(model, data, where, i, first, end) or immovable(model, data, address)):
                if min(ints(d.contact + i * where[SIZE] + where[DIM])[0], where[WIDEST]) > 3:
                    directions = 6
                if m.flg_surfacevel != 0 and where[SURFACES] > 0:
                    moving = moving or surface_moves(model, geoms[0]) or surface_moves(model, geoms[1])
                kept[touching] = i
                width = max(width, length)
                touching += 1
        first = end

    # Rows that are not of contacts.
    problem, of_rows, joint_width = row_widths(model, data, where)
    if problem != 0:
        return problem

    # Lengths of the arrays of `Constraints`, and of the scratch.
    entries = block_entries(model, where)
    counts[BLOCKS] = m.ntree + dry
    counts[VELOCITIES] = m.nv + dry
    counts[ENTRIES] = entries + dry
    counts[CONTACTS] = touching + d.nl + dry
    counts[WIDTH] = max(width, of_rows)
    counts[JOINTS] = d.ne
    counts[JOINT_WIDTH] = joint_width
    counts[DIRECTIONS] = directions
    counts[CARRIED] = counts[CONTACTS] if moving else 0
    counts[SCRATCH] = m.nv
    return 0


@kernel
def row_widths(model, data, where):
    """The number of a problem, or 0; how many velocities the rows of dry friction and limits touch; and equalities."""
    m, d, width, joint_width = model[0], data[0], 0, 0
    for row in range(d.ne + d.nf + d.nl):  # in MuJoCo's order
        first, second = trees_of_row(model, data, where, row)
        if first == TOO_MANY and row < d.ne:
            joint_width = m.nv
            continue
        if first == TOO_MANY:
            return 2, 0, 0
        length = segment_of(model, where, first)[1] + segment_of(model, where, second)[1]
        if row < d.ne:
            joint_width = max(joint_width, length)
        elif row < d.ne + d.nf:
            if second >= 0:
                return 3, 0, 0
            width = max(width, length + 1)  # dry friction adds a velocity of its own
        else:
            width = max(width, length)
    return 0, width, joint_width


@kernel
def fill(model, data, where, kept, to, scratch):
    """Write everything that `measure` counted; scratch: `Damping`."""
    m, d = model[0], data[0]
    rows, segments, friction, gap, slack, spot = to.rows, to.segments, to.friction, to.gap, to.slack, to.spot
    kind, address, source, pair, n = to.kind, to.address, to.source, to.pair, len(to.gap)

    # Mass and free velocity of the trees; those of dry friction follow below.
    entry = fill_blocks(model, data, where, to.starts, to.mass, to.free, scratch)
    position = floats(d.efc_pos)

    # Contacts between geoms: rows n, t1, t2, tangents scaled so that the friction ellipse becomes a disc.
    touching = n - d.nl - d.nf
    for i in range(touching):
        c = kept[i]
        contact = d.contact + c * where[SIZE]
        row = ints(contact + where[ADDRESS])[0]
        geoms = ints(contact + where[GEOM])
        first, second = trees_of_contact(model, where, geoms[0], geoms[1])
        set_segments(model, where, first, second, segments[i])
        # Where it comes from, and its gap; what the single precision of a mesh leaves of one is none.
        kind[i], address[i], source[i] = CONTACT, row, c
        pair[i, 0], pair[i, 1] = geoms[0], geoms[1]
        gap[i], slack[i] = floats(contact + where[DIST])[0], SLACK * smaller_radius(model, geoms)
        if abs(gap[i]) <= vertex_error(model, geoms[0]) + vertex_error(model, geoms[1]):
            gap[i] = 0.0
        set_place(data, where, contact, geoms[1], spot[i], to.frame[i])
        # Its rows; directions without friction have none.
        mu = friction[i] = coefficient(contact, where)
        copy_row(model, data, row, 1.0, segments[i], rows[i, 0])
        dim = ints(contact + where[DIM])[0]
        for c in range(1, rows.shape[1]):
            if c < dim:
                copy_row(model, data, row + c, part_of(contact, where, c, mu), segments[i], rows[i, c])
            else:
                clear(rows[i, c])
        if len(to.surface) > 0:
            set_surface(model, data, where, contact, mu, to.surface[i])

    # Limits of joints and tendons: a normal row without friction.
    for i in range(touching, n):
        leave_out_tangents(to, i)
    i = touching
    for row in range(d.ne + d.nf, d.ne + d.nf + d.nl):
        first, second = trees_of_row(model, data, where, row)
        set_segments(model, where, first, second, segments[i])
        set_identity(data, row, LIMIT, i, kind, address, source, pair)
        gap[i], slack[i], friction[i] = position[row], 0.0, 0.0
        copy_row(model, data, row, 1.0, segments[i], rows[i, 0])
        for c in range(1, rows.shape[1]):
            clear(rows[i, c])
        spot[i, 0], spot[i, 1], spot[i, 2] = side(rows[i, 0]), 0.0, 0.0
        i += 1

    # Dry friction: the added velocity is the normal and presses with b = dt · frictionloss; the joint is the tangent.
    loss, compliance = floats(d.efc_frictionloss), floats(d.efc_diagA)
    for row in range(d.ne, d.ne + d.nf):
        extra = row - d.ne
        start = m.nv + extra
        first, _ = trees_of_row(model, data, where, row)
        segments[i, 0], segments[i, 1] = start, 1
        segments[i, 2], segments[i, 3] = segment_of(model, where, first)
        set_identity(data, row, DRY, i, kind, address, source, pair)
        gap[i], slack[i], friction[i] = 0.0, 0.0, 1.0
        # The added velocity has the inertia of the joint, and just the speed that makes it press so.
        inertia = 1.0 / compliance[row]
        to.starts[m.ntree + extra + 1] = start + 1
        to.mass[entry + extra], scratch.factor[entry + extra] = inertia, 0.0
        to.free[start] = -m.timestep * loss[row] / inertia
        clear(rows[i, 0])
        rows[i, 0, 0] = 1.0
        copy_row(model, data, row, 1.0, segments[i], rows[i, 1])
        for c in range(2, rows.shape[1]):
            clear(rows[i, c])
        clear(spot[i])
        i += 1

    fill_joints(model, data, where, to)


@kernel
def fill_joints(model, data, where, to):
    """Equalities become bilateral rows with their present position error, and the velocity that the model asks for."""
    d, dt = data[0], model[0].timestep
    reference, speed, position = floats(d.efc_KBIP), floats(d.efc_vel), floats(d.efc_pos)
    for row in range(d.ne):
        segments_of_row(model, data, where, row, to.joint_segments[row])
        copy_row(model, data, row, 1.0, to.joint_segments[row], to.joints[row])
        to.joint_gap[row] = position[row]
        stiffness, damping = reference[4 * row] * reference[4 * row + 2], reference[4 * row + 1]
        to.joint_aim[row] = (1.0 - min(dt * damping, 1.0)) * speed[row] - min(dt * stiffness, 1.0 / dt) * position[row]
    leave_out_digits(data, to)


@kernel
def leave_out_digits(data, to):
    """Leave out rows of a connect or weld that move next to nothing, beside the others of the same three.

    Loops in a plane have one across it, whose entries are what the decimals of a model leave: held hard, it would take
    enormous forces, and contradict the others.
    """
    d = data[0]
    equality, rows = ints(d.efc_id), to.joints
    first = 0
    while first < d.ne:
        # The rows of one equality, three by three: places, then turns.
        end, largest = first + 1, greatest(rows[first])
        while end < d.ne and end < first + 3 and equality[end] == equality[first]:
            largest = max(largest, greatest(rows[end]))
            end += 1
        for row in range(first, end):
            if greatest(rows[row]) <= MISALIGNED * largest:
                clear(rows[row])
                to.joint_gap[row] = to.joint_aim[row] = 0.0
        first = end


@kernel
def greatest(row):
    """The largest entry in absolute value."""
    most = 0.0
    for e in range(len(row)):
        most = max(most, abs(row[e]))
    return most


@kernel
def immovable(model, data, address):
    """Whether joints prevent all motion along the normal: such a contact cannot press and could never open.

    An example is a block on slides along a table. Its normal row is rounding compared with its tangents. At the centre
    of a ball joint these are rounding too.
    """
    normal = largest_entry(model, data, address, MOVES)
    if normal >= MOVES:
        return False
    if normal <= LEAST_LEVER:
        return True

    # Whether a small normal row is rounding is decided relative to the tangents.
    across = 0.0
    if address + 2 < data[0].nefc:
        across = max(largest_entry(model, data, address + 1, 1.0), largest_entry(model, data, address + 2, 1.0))
    return normal <= IMMOVABLE * across


@kernel
def superfluous(model, data, where, i, first, end):
    """Whether the pair's other contacts make this one redundant: an earlier one at this spot, or two around it.

    MuJoCo finds a corner of two aligned boxes more than once, and where their edges cross by a rounding error.
    first, end: the contacts of the pair
    """
    m, d = model[0], data[0]
    if end - first == 1:
        return False

    # Contacts closer than this, relative to the larger geom, coincide.
    geoms = ints(d.contact + i * where[SIZE] + where[GEOM])
    radius = floats(m.geom_rbound)
    near = SAME * max(radius[geoms[0]], radius[geoms[1]])

    # A duplicate of an earlier contact, then a point on the segment between two others.
    for k in range(first, i):
        if between(data, where, i, k, k, near):
            return True
    if end - first > CORNERS:
        for k in range(first, end):
            for l in range(first, k):
                if k != i and l != i and between(data, where, i, k, l, near):
                    return True
    return False


@kernel
def same_pair(data, where, i, k):
    """Whether two contacts are between the same geoms."""
    d = data[0]
    one, two = ints(d.contact + i * where[SIZE] + where[GEOM]), ints(d.contact + k * where[SIZE] + where[GEOM])
    return one[0] == two[0] and one[1] == two[1]


@kernel
def between(data, where, i, k, l, near):
    """Whether contact i lies at k = l, or strictly between k and l, no deeper than they imply, with the same normal."""
    d = data[0]
    here, one, two = d.contact + i * where[SIZE], d.contact + k * where[SIZE], d.contact + l * where[SIZE]
    p, a, b = floats(here + where[POS]), floats(one + where[POS]), floats(two + where[POS])

    # Where the projection of i falls on the segment from k to l; near an end does not count as between.
    share = 0.0
    if k != l:
        square, along = 0.0, 0.0
        for c in range(3):
            square += (b[c] - a[c]) ** 2
            along += (b[c] - a[c]) * (p[c] - a[c])
        if along <= 0.0 or along >= square:
            return False
        ends = near * square**0.5
        if along <= ends or along >= square - ends:
            return False
        share = along / square

    # It must lie on the segment, and both others must be active.
    for c in range(3):
        if abs(a[c] + share * (b[c] - a[c]) - p[c]) > near:
            return False
    if ints(one + where[ADDRESS])[0] < 0 or ints(two + where[ADDRESS])[0] < 0:
        return False  # an excluded contact replaces no other

    # Equal normals, and a distance no smaller than the interpolated one.
    n, na, nb = floats(here + where[FRAME]), floats(one + where[FRAME]), floats(two + where[FRAME])
    for c in range(3):
        if abs(n[c] - na[c]) > SAME or abs(n[c] - nb[c]) > SAME:
            return False
    implied = (1.0 - share) * floats(one + where[DIST])[0] + share * floats(two + where[DIST])[0]
    return floats(here + where[DIST])[0] >= implied - SAME * near


@kernel
def set_segments(model, where, first, second, segment):
    """Write the velocity ranges of two trees."""
    segment[0], segment[1] = segment_of(model, where, first)
    segment[2], segment[3] = segment_of(model, where, second)


@kernel
def set_identity(data, row, what, i, kind, address, source, pair):
    """Record the identity of a limit or dry friction: its kind, MuJoCo's row and the joint, tendon or velocity."""
    d = data[0]
    kind[i], address[i], source[i] = what, row, ints(d.efc_id)[row]
    pair[i, 0], pair[i, 1] = -1 - ints(d.efc_type)[row], source[i]


@kernel
def vertex_error(model, geom):
    """How far, in m, the vertices of a mesh may be from where they are meant: those of a flat face from its plane."""
    m = model[0]
    return GRAIN * floats(m.geom_rbound)[geom] if ints(m.geom_type)[geom] == MESH else 0.0


@kernel
def coefficient(contact, where):
    """The coefficient of friction: that of sliding, the larger of two; 1, in 1/m, where only turning is resisted."""
    coefficients, dim = floats(contact + where[FRICTION]), min(ints(contact + where[DIM])[0], where[WIDEST])
    if dim == 1:
        return 0.0
    mu = max(coefficients[0], coefficients[1])
    if mu > MIN_MU:
        return mu
    for c in range(3, dim):
        if coefficients[c - 1] > MIN_MU:
            return 1.0
    return 0.0


@kernel
def part_of(contact, where, c, mu):
    """The factor of tangent c, from 1 on, that turns the ellipse of friction into a disc."""
    own = floats(contact + where[FRICTION])[c - 1]
    if mu == 0.0:
        return 1.0 if c < 3 else 0.0  # without friction, rates of turning must set no scale of velocities
    return own / mu if own > MIN_MU else 0.0


@kernel
def surface_moves(model, geom):
    """Whether a geom's surface moves by itself."""
    own = floats(model[0].geom_surfacevel)
    for c in range(6 * geom, 6 * geom + 6):
        if own[c] != 0.0:
            return True
    return False


@kernel
def set_surface(model, data, where, contact, mu, out):
    """Write the motion of the second geom's surface relative to the first's, along t1, t2 and about the normal."""
    own, origin, turn = floats(model[0].geom_surfacevel), floats(data[0].geom_xpos), floats(data[0].geom_xmat)
    geoms, position, frame = ints(contact + where[GEOM]), floats(contact + where[POS]), floats(contact + where[FRAME])
    dim = ints(contact + where[DIM])[0]
    clear(out)
    for side in range(2):
        g, sign = geoms[side], 2.0 * side - 1.0
        if not surface_moves(model, g):
            continue
        # Velocity and spin in the world: v = R (linear + angular x Rᵀ (position - origin)).
        for a in range(3):
            b, c = (a + 1) % 3, (a + 2) % 3
            velocity, spin = 0.0, 0.0
            for k in range(3):
                velocity += turn[9 * g + 3 * a + k] * own[6 * g + k]
                spin += turn[9 * g + 3 * a + k] * own[6 * g + 3 + k]
                # The turn's component along b, c crossed with the arm.
                velocity += turn[9 * g + 3 * b + k] * own[6 * g + 3 + k] * (position[c] - origin[3 * g + c])
                velocity -= turn[9 * g + 3 * c + k] * own[6 * g + 3 + k] * (position[b] - origin[3 * g + b])
            for t in range(1, min(dim, 3)):
                out[t] += sign * frame[3 * t + a] * velocity
            if min(dim, len(out)) > 3:
                out[3] += sign * frame[a] * spin

    # In units of the rows; without friction a surface carries nothing.
    for t in range(1, len(out)):
        out[t] *= part_of(contact, where, t, mu) if mu > 0.0 and t < dim else 0.0


@kernel
def set_place(data, where, contact, geom, spot, frame):
    """Write where a contact is in a geom's frame, Rᵀ (position - origin), and its tangents in the world."""
    d = data[0]
    origin, R = floats(d.geom_xpos), floats(d.geom_xmat)
    position, axes = floats(contact + where[POS]), floats(contact + where[FRAME])
    for a in range(3):
        spot[a] = 0.0
        for b in range(3):
            spot[a] += R[9 * geom + 3 * b + a] * (position[b] - origin[3 * geom + b])
        frame[0, a], frame[1, a] = axes[3 + a], axes[6 + a]


@kernel
def leave_out_tangents(to, i):
    """A limit or dry friction has no tangents, and no surface that could move."""
    if len(to.surface) > 0:
        clear(to.surface[i])
    clear(to.frame[i, 0])
    clear(to.frame[i, 1])


@kernel
def clear(row):
    for e in range(len(row)):
        row[e] = 0.0


@kernel
def side(row):
    """1 for a lower limit, -1 for an upper one."""
    for e in range(len(row)):
        if row[e] != 0.0:
            return 1.0 if row[e] > 0.0 else -1.0
    return 0.0
