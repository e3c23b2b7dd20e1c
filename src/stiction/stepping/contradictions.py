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

from stiction.contacts.gather import CONTACT, DRY, LIMIT
from stiction.optional import mujoco
from stiction.problems.contact import densified
from stiction.problems.lcp import BoxLCP
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
FAR = 10.0  # times the speed of recovery: contacts that open by more are left out
AMPLIFIED = 100.0  # motion, over the sum of what each row asks for by itself, that is as good as a contradiction


class Rows(NamedTuple):
    """All normal and bilateral rows of a problem, and what they do."""

    moved: Array  # (k, m) M⁻¹ of each row, over its size
    coupling: Array  # (k, k) of unit diagonal
    size: Array  # (k,) (row · M⁻¹ row)^½; 1 where that is zero
    normals: int  # how many come first


def rows_of(problem: ContactProblem, normal: Array) -> Rows:
    """Of these normal rows and all bilateral ones; normal: (k, m)."""
    assert problem.mass is not None
    rows = np.concatenate([normal, problem.joints])
    moved, trees, mass = np.zeros_like(rows), problem.trees, problem.mass.ravel()
    place = np.append(0, np.cumsum(np.diff(trees) ** 2))
    for b in np.unique(np.searchsorted(trees, np.flatnonzero(rows.any(axis=0)), side="right") - 1):
        start, end = trees[b], trees[b + 1]
        block = mass[place[b] : place[b + 1]].reshape(end - start, end - start)
        moved[:, start:end] = np.linalg.solve(block, rows[:, start:end].T).T
    size = np.sqrt(np.einsum("im,im->i", rows, moved))
    size = np.where(size > 0.0, size, 1.0)
    return Rows(moved / size[:, None], (rows @ moved.T) / np.outer(size, size), size, len(normal))


def least_squares(rows: Rows, asked: Array, softness: Array) -> tuple[Array, Array, Array]:
    """w, the part of what is asked for that each row misses, and z; asked: in m/s. All zero if it is not solved."""
    wanted = asked / rows.size
    low = np.where(np.arange(len(wanted)) < rows.normals, 0.0, -np.inf)
    matrix = rows.coupling + np.diag(softness)
    found = solve(BoxLCP(matrix, -wanted, low, np.full(len(wanted), np.inf)), throw=False)
    z = found.z if found.ok else np.zeros(len(wanted))
    missing = (wanted - rows.coupling @ z) * rows.size
    missing[: rows.normals] = np.maximum(missing[: rows.normals], 0.0)
    return rows.moved.T @ z, missing, z


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
    rows, asked = rows_of(problem, problem.normal), demands(problem)
    most = float(np.abs(np.append(asked[problem.n :], np.maximum(asked[: problem.n], 0.0))).max(initial=0.0))
    if problem.contradicting_joints.size:
        return True
    _, missing, z = least_squares(rows, asked, np.full(len(asked), LEAST_WEIGHT))
    if np.abs(missing).max(initial=0.0) > MISSED * most:
        return True
    # Motions, (w · M w)^½, of all together and of each row alone.
    alone = np.where(np.arange(len(asked)) < rows.normals, np.maximum(asked, 0.0), np.abs(asked)) / rows.size
    return bool(z @ rows.coupling @ z > (AMPLIFIED * alone.sum()) ** 2)


def still(problem: ContactProblem) -> ContactProblem:
    """The problem with nothing taken back."""
    rate = np.maximum(problem.gap_rate, 0.0)
    return problem.replace(gap_rate=rate, joint_rate=np.zeros(len(problem.joint_rate)))


class TakenBack(NamedTuple):
    """How positions are moved apart from velocities, and what is not taken back for it."""

    velocity: Array  # (m,) w
    contacts: NDArray[np.int64]
    joints: NDArray[np.int64]


def triples(equality: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each bilateral row's group begins: those of one equality, three by three, are places, then turns."""
    begins = np.arange(len(equality))
    for row in range(1, len(equality)):
        first = begins[row - 1]
        if equality[row] == equality[first] and row < first + 3:
            begins[row] = first
    return begins


def take_back(
    problem: ContactProblem, found: Constraints, equality: NDArray[np.int64], velocity: Array, dt: float,
    recovery: float, most: float,
) -> TakenBack:  # fmt: skip
    """Take overlaps and joint errors back as far as possible beside these velocities, the largest at `recovery`.

    equality: of each bilateral row
    most: of (w · M w)^½, so that what is all but out of reach throws nothing
    """
    # Contacts that are far from closing have no part in it, nor does dry friction.
    real = np.flatnonzero(found.kind != DRY)
    normal = densified(problem.rows[real, :1], problem.segments[real], problem.m)[:, 0]
    speed, moving = found.gap[real] / dt, normal @ velocity
    near = np.flatnonzero(speed + moving <= FAR * recovery)
    normal, speed, moving, real = normal[near], speed[near], moving[near], real[near]
    rows = rows_of(problem, normal)

    # What is asked for: errors at one share of their size, and that nothing that is in order is undone.
    overlap, error = np.maximum(-speed, 0.0), found.joint_gap / dt
    worst = float(np.append(overlap, np.abs(error)).max(initial=0.0))
    share = min(1.0, recovery / worst) if worst > 0.0 else 1.0
    gap = np.where(speed < 0.0, share * speed, speed) + moving
    asked = -np.concatenate([gap, share * error])
    group = np.append(np.arange(len(near)), len(near) + triples(equality))
    wrong = largest_of(np.concatenate([overlap, np.abs(error)]), group) > NEGLIGIBLE * worst
    effect = np.where(rows.moved.any(axis=1), rows.size, 0.0)
    softness = np.where(wrong, SOFT, FIRM) * np.maximum(largest_of(effect, group) / rows.size, 1.0) ** 2
    w, missing, z = least_squares(rows, asked, softness)
    length = float(z @ rows.coupling @ z) ** 0.5
    if length > most:
        w *= most / length

    # What is not taken back, and what presses against it.
    left = np.abs(missing) > NOT_TAKEN_BACK * np.abs(asked).max(initial=0.0)
    if left.any():
        left |= np.abs(z) > NOT_TAKEN_BACK * np.abs(z).max()
    return TakenBack(w, real[left[: len(real)]], np.flatnonzero(left[len(real) :]))


def largest_of(values: Array, group: NDArray[np.int64]) -> Array:
    """The largest value in each one's group."""
    most = np.zeros(len(values))
    np.maximum.at(most, group, values)
    return most[group]


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
