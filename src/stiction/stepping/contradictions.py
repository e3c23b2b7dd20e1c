"""Overlaps and errors of joints that cannot all be taken back in one step: a slider that is in walls on both sides.

No velocity takes them back then, and a step that asked for it would fail. Instead

- velocities obey the laws while nothing is taken back: gap rates that are not negative, and joints that hold;
- positions are moved apart from that, by dt w, where w takes back as much as agrees: least squares over all that is
  asked, in which what is in order is kept far more firmly than what is not is put right.

Velocities know nothing of w, so that no kinetic energy comes from it. With the normal rows N and the bilateral rows J,
each divided by its own effect, w = M⁻¹ [N; J]ᵀ z and

    0 <= z_n  ⊥  N w + ε_n z_n - r_n >= 0,      J w + ε_j z_j = r_j

a complementarity problem whose matrix is positive definite whatever contradicts what. Divided by its own effect, a row
that hardly moves anything would count for far more, by the metre, than others: along an arm that is stretched, nothing
can be put right, but across it all. So the three rows of a connect, or of a weld, share the largest effect of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stiction.arrays.compiled import kernel, workspace
from stiction.arrays.dense import dot, subtract_multiple
from stiction.contacts.gather import CONTACT, DRY, LIMIT, clear
from stiction.optional import mujoco
from stiction.problems.lcp import BoxLCP
from stiction.problems.mass_factor import factor_blocks, unwhiten_velocity, whiten_dense
from stiction.solutions.natural_map import natural_map
from stiction.solvers.lcp.block_pivot import block_pivot, sizes
from stiction.solvers.lcp.tableau import EMPTY
from stiction.solvers.solve import solve

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.contacts.gather import Constraints
    from stiction.problems.contact import ContactProblem

    Array = NDArray[np.float64]

FIRM, SOFT = 1e-7, 1e-2  # ε of what is in order, and of what is to be taken back
NEGLIGIBLE = 1e-3  # part of the largest error that is in order
LEAST_WEIGHT = 1e-7  # ε with which it is tried whether all rows can be satisfied; solvers fail with smaller ones
MISSED = 1e-4  # part of what is asked for that may be missing then
NOT_TAKEN_BACK = 0.1  # part of what is asked for that is missing where rows contradict others
FACTORIZATIONS = 100  # tried by one method, which takes a handful, before all others are asked
TOLERANCE = 1e-8  # largest residual of the certificate that counts as solved
FAR = 10.0  # times the speed of recovery: contacts that open by more are left out
AMPLIFIED = 100.0  # motion, over the sum of what each row asks for by itself, that is as good as a contradiction


class Rows(NamedTuple):
    """All normal and bilateral rows of a problem, and what they do; M = G Gᵀ."""

    white: Array  # (k, m) G⁻¹ of each row, over its size
    coupling: Array  # (k, k) of unit diagonal; zero where a row moves nothing
    size: Array  # (k,) (row · M⁻¹ row)^½; 1 where that is zero
    normals: int  # how many come first
    factor: Array  # of the mass
    trees: NDArray[np.int64]


def coupled(mass: Array, trees: NDArray[np.int64], rows: Array, normals: int) -> Rows:
    """What these rows do, (k, m), the first of which are normals; they are overwritten."""
    k = len(rows)
    made = Rows(rows, np.empty((k, k)), np.empty(k), normals, np.empty(len(mass)), trees)
    couple(mass, trees, rows, made.factor, np.empty(rows.shape[1], np.int64), made.size, made.coupling)
    return made


@kernel
def couple(mass, trees, rows, factor, place, size, coupling):
    """Fill `Rows`; place: scratch, of velocities. The mass is positive: it is that of a step."""
    # Rows in whitened space, of length one.
    factor_blocks(mass, trees, factor, place)
    for i in range(len(rows)):
        row = rows[i]
        whiten_dense(factor, trees, row)
        length = dot(row, row, len(row)) ** 0.5
        size[i] = length if length > 0.0 else 1.0
        for c in range(len(row)):
            row[c] /= size[i]

    # How they move each other.
    for i in range(len(rows)):
        for l in range(i + 1):
            coupling[i, l] = dot(rows[i], rows[l], rows.shape[1])
            coupling[l, i] = coupling[i, l]


def least_squares(rows: Rows, asked: Array, softness: Array) -> tuple[Array, float, Array, Array]:
    """w and (w · M w)^½, the part of what is asked for that each row misses, and z; asked: in m/s.

    All but what is missing is zero if it is not solved.
    """
    k, matrix = len(asked), rows.coupling.copy()
    matrix.flat[:: k + 1] += softness
    vectors, z, w, missing = np.empty((3, k)), np.empty(k), np.empty(len(rows.white[0])), np.empty(k)
    vectors[0], vectors[1], vectors[2] = -asked / rows.size, -np.inf, np.inf
    vectors[1, : rows.normals] = 0.0
    matrix.flags.writeable = vectors.flags.writeable = False  # as those of a BoxLCP: one compiled form serves both
    block_pivot(matrix, vectors, True, EMPTY, FACTORIZATIONS, *workspace(*sizes(k)), z)
    if not natural_map(matrix, vectors, z, np.empty(k))[0] <= TOLERANCE:
        found = solve(BoxLCP(matrix, *vectors), tolerance=TOLERANCE, throw=False)
        z = found.z if found.ok else np.zeros(k)
    length = follow(rows, asked, z, np.empty(len(w)), w, missing)
    return w, length, missing, z


@kernel
def follow(rows, asked, z, x, w, missing):
    """Write w = G⁻ᵀ whiteᵀ z, and the part of what is asked for that each row misses; returns (w · M w)^½.

    x: (m,) scratch
    """
    clear(x)
    for i in range(len(z)):
        subtract_multiple(x, -z[i], rows.white[i], len(x))
    unwhiten_velocity(rows.factor, rows.trees, x, w)
    for i in range(len(z)):
        missing[i] = asked[i] - rows.size[i] * dot(rows.white[i], x, len(x))
        if i < rows.normals:
            missing[i] = max(missing[i], 0.0)
    return dot(x, x, len(x)) ** 0.5


def demands(problem: ContactProblem) -> Array:
    """The speeds that normal and bilateral rows ask for, in m/s: to separate at least, or to move, at this speed."""
    return -np.concatenate([problem.gap_rate, problem.joint_rate])


def asks(problem: ContactProblem) -> bool:
    """Whether anything is to be taken back, or moved, at all."""
    return bool((problem.gap_rate < 0.0).any() or problem.joint_rate.any())


def contradict(problem: ContactProblem) -> bool:
    """Whether no velocity, or only an absurd one, does what is asked; friction, which never hinders it, is left out."""
    if problem.mass is None or not asks(problem):
        return False
    every = np.concatenate([problem.normal, problem.joints])
    rows, asked = coupled(np.array(problem.mass).ravel(), np.array(problem.trees), every, problem.n), demands(problem)
    most = float(np.abs(np.append(asked[problem.n :], np.maximum(asked[: problem.n], 0.0))).max(initial=0.0))
    if problem.contradicting_joints.size:
        return True
    _, length, missing, _ = least_squares(rows, asked, np.full(len(asked), LEAST_WEIGHT))
    if np.abs(missing).max(initial=0.0) > MISSED * most:
        return True
    # Motions, (w · M w)^½, of all together and of each row alone.
    alone = np.where(np.arange(len(asked)) < rows.normals, np.maximum(asked, 0.0), np.abs(asked)) / rows.size
    return bool(length > AMPLIFIED * alone.sum())


def still(problem: ContactProblem) -> ContactProblem:
    """The problem with nothing taken back."""
    rate = np.maximum(problem.gap_rate, 0.0)
    return problem.replace(gap_rate=rate, joint_rate=np.zeros(len(problem.joint_rate)))


class TakenBack(NamedTuple):
    """How positions are moved apart from velocities, and what is not taken back for it."""

    velocity: Array  # (m,) w
    contacts: NDArray[np.int64]
    joints: NDArray[np.int64]


def take_back(
    found: Constraints, joints: Array, equality: NDArray[np.int32], velocity: Array, dt: float, recovery: float,
    most: float,
) -> TakenBack:  # fmt: skip
    """Take overlaps and joint errors back as far as possible beside these velocities, the largest at `recovery`.

    joints: the bilateral rows over all velocities
    equality: of each of them
    most: of (w · M w)^½, so that what is all but out of reach throws nothing
    """
    n, (j, m) = found.n, joints.shape
    every, moving, near = np.empty((n + j, m)), np.empty(n), np.empty(n, np.int64)
    count = near_rows(found, np.array(joints), np.array(velocity), dt, FAR * recovery, near, moving, every)
    near, asked, softness = near[:count], np.empty(count + j), np.empty(count + j)
    rows = coupled(found.mass, found.starts, every[: count + j], count)
    set_goal(found, equality.astype(np.int64), near, moving, rows, dt, recovery, asked, softness)
    w, length, missing, z = least_squares(rows, asked, softness)
    if length > most:
        w *= most / length

    # What is not taken back, and what presses against it.
    left = np.abs(missing) > NOT_TAKEN_BACK * np.abs(asked).max(initial=0.0)
    if left.any():
        left |= np.abs(z) > NOT_TAKEN_BACK * np.abs(z).max()
    return TakenBack(w, near[left[:count]], np.flatnonzero(left[count:]))


@kernel
def near_rows(found, joints, velocity, dt, far, near, moving, every):
    """Write the normals of contacts that are near to closing, then the bilateral rows, over all velocities.

    Returns how many contacts there are; near: which; moving: the rates of their gaps. Contacts that are far from
    closing have no part in it, nor does dry friction.
    """
    count = 0
    for i in range(len(found.gap)):
        if found.kind[i] == DRY:
            continue
        # The row at the velocities of its two segments.
        row, cut, taken = every[count], found.rows[i, 0], 0
        clear(row)
        for side in range(2):
            start, length = found.segments[i, 2 * side], found.segments[i, 2 * side + 1]
            for e in range(length):
                row[start + e] = cut[taken + e]
            taken += length
        rate = dot(row, velocity, len(velocity))
        if found.gap[i] / dt + rate <= far:
            near[count], moving[count] = i, rate
            count += 1

    # Bilateral rows follow.
    for i in range(len(joints)):
        for c in range(joints.shape[1]):
            every[count + i, c] = joints[i, c]
    return count


@kernel
def set_goal(found, equality, near, moving, rows, dt, recovery, asked, softness):
    """What rows are asked for: errors at one share of their size, and that nothing that is in order is undone.

    asked: in m/s; softness: how firmly. The rows of one equality, three by three, are places, then turns.
    """
    count, j, worst = len(near), len(found.joint_gap), 0.0
    for c in range(count):
        worst = max(worst, -found.gap[near[c]] / dt)
    for i in range(j):
        worst = max(worst, abs(found.joint_gap[i]) / dt)
    share = min(1.0, recovery / worst) if worst > 0.0 else 1.0

    # Contacts, each by itself.
    for c in range(count):
        speed = found.gap[near[c]] / dt
        asked[c] = -((share * speed if speed < 0.0 else speed) + moving[c])
        softness[c] = SOFT if -speed > NEGLIGIBLE * worst else FIRM

    # Three rows of an equality share the largest effect, and whether they are in order.
    first = 0
    while first < j:
        end, error, effect = first, 0.0, 0.0
        while end < min(first + 3, j) and equality[end] == equality[first]:
            error = max(error, abs(found.joint_gap[end]) / dt)
            if rows.coupling[count + end, count + end] > 0.0:
                effect = max(effect, rows.size[count + end])
            end += 1
        for i in range(first, end):
            asked[count + i] = -share * found.joint_gap[i] / dt
            softness[count + i] = SOFT if error > NEGLIGIBLE * worst else FIRM
            softness[count + i] *= max(effect / rows.size[count + i], 1.0) ** 2
        first = end


def names_of(model: Any, data: Any, found: Constraints, taken: TakenBack) -> tuple[str, ...]:
    """Names of the contacts and joints that contradict each other, each once."""
    mj = mujoco()

    def name(kind: Any, number: int) -> str:
        return mj.mj_id2name(model, kind, number) or str(number)

    names = []
    for i in taken.contacts:
        if found.kind[i] == CONTACT:
            one, two = (name(mj.mjtObj.mjOBJ_GEOM, int(geom)) for geom in found.pair[i])
            names.append(f"contact of geoms {one} and {two}")
        elif found.kind[i] == LIMIT:
            of_joint = -1 - found.pair[i, 0] == mj.mjtConstraint.mjCNSTR_LIMIT_JOINT
            kind = mj.mjtObj.mjOBJ_JOINT if of_joint else mj.mjtObj.mjOBJ_TENDON
            names.append(f"limit of {'joint' if of_joint else 'tendon'} {name(kind, int(found.source[i]))}")
    names += [f"equality {name(mj.mjtObj.mjOBJ_EQUALITY, int(data.efc_id[row]))}" for row in taken.joints]
    return tuple(dict.fromkeys(names))
