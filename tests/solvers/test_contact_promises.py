"""What contact solvers promise: a thousand problems of every family, judged here a second time with dense NumPy.

The judge below is written from the laws alone and shares nothing with that of the package: it takes no normal form and
no kernel. An answer counts if both find a residual of at most 1e-8; an answer called solved that this judge refuses is
reported apart from one that is not found.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from scipy.sparse.csgraph import connected_components

import stiction as st
from stiction.problems.zoo.contact_families import CONTACT_FAMILIES, stack

TOLERANCE = 1e-8
SEEDS = 1000
# Sizes from 1e-1.5 to 1e1.5 m, masses as their cubes: doubles end here, so not every seed is solved.
BEYOND_DOUBLES = {"stack-lengths"}
FAMILIES = [name for name in CONTACT_FAMILIES if name not in BEYOND_DOUBLES]

CONE = ((st.Coulomb(), st.Auto()),)
PYRAMID = ((st.Coulomb(facets=8), st.CellLemke()), (st.Coulomb(facets=8), st.StructuredLemke(reduced=True)))
PIVOT = (
    (st.Frictionless(), st.PrincipalPivot()),
    (st.Viscous(), st.PrincipalPivot()),
    (st.Viscous(implicit=True), st.PrincipalPivot()),
    (st.NoSlip(), st.PrincipalPivot()),
)


class Measured(NamedTuple):
    """What the judge needs of a problem, whatever its law."""

    mass: np.ndarray  # (m, m)
    root: np.ndarray  # (m, m) M^-1/2
    trees: list[np.ndarray]  # velocities of each tree
    rows: np.ndarray  # (3n, m)
    free: np.ndarray  # (n, 3) contact velocities without impulses
    W: np.ndarray  # (n,) mean diagonal of each contact's Delassus block, joints held
    island_of: np.ndarray  # (n,) of contacts
    islands: list[Island]


class Island(NamedTuple):
    """Velocities that contacts, joints or masses couple."""

    velocities: np.ndarray  # their numbers
    size: float  # the fastest free motion along a contact that can close, in m/s
    motion: float  # (v · M v)^½ without contact
    demand: float  # what overlaps and joints ask for, in the same unit
    heaviest: float  # of the normals, 1 / |M^-1/2 row| of the tree that is moved least


def measured(problem):
    n, m = problem.n, problem.m
    if problem.mass is None:
        free, none = problem.offset.reshape(n, 3), np.zeros((0, 0))
        blocks = np.abs(problem.delassus).reshape(n, 3, n, 3).max(axis=(1, 3))
        of = connected_components(blocks + blocks.T, directed=False)[1]
        islands = []
        for k in range(of.max(initial=-1) + 1):
            mine = free[of == k]
            near = np.abs(mine[mine[:, 0] <= 0.0]).max(initial=0.0)
            islands.append(Island(none, np.abs(mine[mine[:, 0] <= near]).max(initial=0.0), 0.0, 0.0, 0.0))
        W = problem.delassus.diagonal().reshape(n, 3).mean(axis=1)
        return Measured(none, none, [], none, free, W, of, islands)
    mass, at = np.zeros((m, m)), 0
    for block in problem.mass_blocks:
        mass[at : at + len(block), at : at + len(block)] = block
        at += len(block)
    rows, joints, rate = problem.dense_rows().reshape(3 * n, m), problem.joints, problem.joint_rate
    values, vectors = np.linalg.eigh(mass)
    root = vectors / np.sqrt(values) @ vectors.T
    white, held = rows @ root, rows @ root
    # Without impulses of contacts: as forces alone would have it, and with joints held.
    motions = [problem.velocity]
    if len(joints):
        bound, x = joints @ root, np.linalg.solve(root, problem.velocity)
        motions.append(root @ (x - np.linalg.pinv(bound, 1e-10) @ (bound @ x + rate)))
        held = held - held @ np.linalg.pinv(bound, 1e-10) @ bound
    W = (held**2).sum(axis=1).reshape(n, 3).mean(axis=1)
    # Islands, and trees; one mass matrix is a tree for each island.
    touched = np.concatenate([np.abs(rows).reshape(n, 3, m).sum(axis=1), np.abs(joints)])
    of_velocity = connected_components(np.abs(mass) + touched.T @ touched, directed=False)[1] if m else np.zeros(0, int)
    if problem.mass.ndim == 2:
        trees = [np.flatnonzero(of_velocity == k) for k in range(of_velocity.max(initial=-1) + 1)]
    else:
        trees = [np.arange(*pair) for pair in itertools.pairwise(problem.trees) if pair[0] < pair[1]]
    heavy = np.zeros(n)
    for i in range(n):
        normal = white[3 * i]
        sides = [np.linalg.norm(normal[tree]) for tree in trees]
        sides += [np.linalg.norm(held[3 * i])] if len(joints) else []
        heavy[i] = max((1.0 / side for side in sides if side > 1e-9 * np.linalg.norm(normal)), default=0.0)
    of = np.array([of_velocity[np.flatnonzero(touched[i])[0]] for i in range(n)], int)
    islands = []
    for k in range(of_velocity.max(initial=-1) + 1):
        mine = np.flatnonzero(of_velocity == k)
        motion = np.sqrt(problem.velocity[mine] @ mass[np.ix_(mine, mine)] @ problem.velocity[mine])
        contacts = np.flatnonzero(of == k)
        demand = (heavy * np.maximum(-problem.gap_rate, 0.0))[contacts].sum()
        for row, asked in zip(joints @ root, rate, strict=True):
            if np.abs(row[mine]).any():
                demand += abs(asked) / min(np.linalg.norm(row[tree]) for tree in trees if np.abs(row[tree]).any())
        size = 0.0
        for i in contacts:
            if problem.gap_rate[i] <= np.sqrt(3.0 * W[i]) * (motion + demand):
                for v in motions:
                    u = rows[3 * i : 3 * i + 3] @ v
                    size = max(size, np.abs(u).max(), -problem.gap_rate[i], -u[0] - problem.gap_rate[i])
                whole = sum(
                    np.linalg.norm(np.linalg.solve(root, problem.velocity)[t]) for t in trees if touched[i, t].any()
                )
                size = max(size, 1e-6 * np.sqrt(W[i]) * whole)
        islands.append(Island(mine, size, motion, demand, heavy[contacts].max(initial=0.0)))
    offset = np.zeros((n, 3))
    offset[:, 0] = problem.gap_rate
    return Measured(mass, root, trees, rows, (rows @ problem.velocity).reshape(n, 3) + offset, W, of, islands)


def residual(problem, answer, known):
    """The largest violation of balance, joints, the law and energy, each over its scale; NaN, if there is one."""
    n, p, W = problem.n, answer.impulse, known.W
    size = np.array([island.size for island in known.islands])[known.island_of] if n else np.zeros(0)
    if problem.mass is None:
        u, lost, rounding = known.free + (problem.delassus @ p.ravel()).reshape(n, 3), np.zeros(n), np.zeros(n)
        found = []
    else:
        u = (known.rows @ answer.velocity).reshape(n, 3)
        u[:, 0] += problem.gap_rate
        momentum = known.mass @ (answer.velocity - problem.velocity)
        momentum -= known.rows.T @ p.ravel() + problem.joints.T @ answer.joint_impulse
        lost = np.abs(known.rows @ known.root @ known.root @ momentum).reshape(n, 3).max(axis=1)
        found, rounding = balance_and_joints(problem, answer, known, momentum)
    parts = [
        np.maximum(-u[:, 0], 0.0),
        np.abs(np.minimum(u[:, 0], W * p[:, 0])),
        friction_error(problem, p, u, known),
        lost,
    ]
    scale = np.maximum(size, rounding)
    worst = np.max(parts, axis=0) if n else np.zeros(0)
    found += [np.divide(worst, scale, out=np.where(worst == 0.0, 0.0, 1.0) * (worst == worst), where=scale > 0.0)]
    found += [np.where(np.isnan(worst), np.nan, 0.0)]
    return np.concatenate([np.atleast_1d(each) for each in (0.0, *found)]).max()


def balance_and_joints(problem, answer, known, momentum):
    """Ratios of every tree's momentum, every joint and every island's energy, and what rounding leaves at contacts."""
    root, joints = known.root, problem.joints
    before, after = (np.linalg.solve(root, v) for v in (problem.velocity, answer.velocity))
    island_of = {int(v): island for island in known.islands for v in island.velocities}
    lengths = np.linalg.norm(joints @ root, axis=1)
    terms, found = [], []
    for tree in known.trees:
        island = island_of[int(tree[0])]
        most = island.motion + island.demand
        total = np.linalg.norm(before[tree]) + np.linalg.norm((after - before)[tree])
        for i in range(problem.n):
            if np.abs(known.rows[3 * i : 3 * i + 3, tree]).any():
                total += min(np.abs(answer.impulse[i]).max(), 1e6 * island.heaviest * most) * np.sqrt(known.W[i])
        for k, row in enumerate(joints @ root):
            if np.abs(row[tree]).any():
                least = min(np.linalg.norm(row[other]) for other in known.trees if np.abs(row[other]).any())
                total += min(abs(answer.joint_impulse[k]), 1e6 / least * most) * lengths[k]
        terms.append(total)
        found.append(np.linalg.norm((root @ momentum)[tree]) / total if total > 0.0 else 0.0)
    for k in range(len(joints)):
        rounding = max(
            1e-6 * lengths[k] * t for t, tree in zip(terms, known.trees, strict=True) if joints[k, tree].any()
        )
        free = abs(joints[k] @ problem.velocity + problem.joint_rate[k])
        found.append(abs(joints[k] @ answer.velocity + problem.joint_rate[k]) / max(free, rounding))
    if not (isinstance(problem.law, st.Viscous) and not problem.law.implicit):
        for island in known.islands:
            allowed = island.motion + 100.0 * island.demand
            excess = np.linalg.norm(after[island.velocities]) - (1.0 + 1e-6) * allowed
            found.append(max(excess, 0.0) / allowed if allowed > 0.0 else 0.0)
    at = [
        sum(t for t, tree in zip(terms, known.trees, strict=True) if np.abs(known.rows[3 * i : 3 * i + 3, tree]).any())
        for i in range(problem.n)
    ]
    return [np.array(found)], 1e-6 * np.sqrt(known.W) * np.array(at, float)


def friction_error(problem, p, u, known):
    """(n,) how far tangential impulses are from those that the law asks for, as velocities."""
    law, W = problem.law, known.W
    carried, sliding = np.linalg.norm(p[:, 1:], axis=1), np.linalg.norm(u[:, 1:], axis=1)
    if isinstance(law, st.Frictionless):
        return W * carried
    if isinstance(law, st.Viscous):
        slid = u if law.implicit else known.free
        return W * np.linalg.norm(p[:, 1:] + problem.viscosity[:, None] * slid[:, 1:], axis=1)
    if isinstance(law, st.NoSlip):
        return np.minimum(sliding, W * (carried + np.abs(p[:, 0])))
    wanted, radius = p[:, 1:] - u[:, 1:] / W[:, None], problem.friction * np.maximum(p[:, 0], 0.0)
    if law.facets is None:
        length = np.linalg.norm(wanted, axis=1)
        nearest = wanted * np.minimum(1.0, radius / np.maximum(length, 1e-300))[:, None]
    else:
        angle = law.rotation + 2.0 * np.pi * np.arange(law.facets) / law.facets
        nearest = onto_polygons(wanted, radius[:, None, None] * np.column_stack([np.cos(angle), np.sin(angle)]))
    return W * np.linalg.norm(p[:, 1:] - nearest, axis=1)


def onto_polygons(points, corners):
    """(n, 2) the nearest points of n convex polygons, corners (n, d, 2) counterclockwise; they may all be zero."""
    sides, away = np.roll(corners, -1, axis=1) - corners, points[:, None] - corners
    inside = (sides[..., 0] * away[..., 1] - sides[..., 1] * away[..., 0] >= 0.0).all(axis=1) & corners.any(axis=(1, 2))
    along = np.clip((sides * away).sum(axis=2) / np.maximum((sides**2).sum(axis=2), 1e-300), 0.0, 1.0)
    beside = corners + along[..., None] * sides
    which = np.argmin(((beside - points[:, None]) ** 2).sum(axis=2), axis=1)
    return np.where(inside[:, None], points, beside[np.arange(len(points)), which])


def survey(family, promises, seeds):
    """(answers, not solved, called solved and wrong), the last two as lines that tell seed, residuals and status."""
    count, missed, wrong = 0, [], []
    for seed in range(seeds):
        problem = CONTACT_FAMILIES[family](seed)
        known = measured(problem)
        for law, solver in promises:
            if isinstance(law, st.Viscous) and problem.viscosity is None:
                continue  # nothing is told but W and q
            posed = problem.with_law(law)
            found = st.solve(posed, solver, throw=False)
            second = residual(posed, found, known)
            line = (
                f"{family} seed {seed}, {law}, {type(solver).__name__}: {found.status.name}, "
                f"residual {found.certificate.residual:.1e}, judged again {second:.1e}"
            )
            count += 1
            if not found.ok:
                missed.append(line)
            elif not second <= TOLERANCE:
                wrong.append(line)
    return count, missed, wrong


@pytest.mark.parametrize("law", [law for law, _ in (*CONE, *PYRAMID[:1], *PIVOT)], ids=str)
def test_second_judge_agrees_with_the_first(law):
    """On answers, and on answers spoilt by a thousandth, where residuals are far from rounding."""
    for family in ("stack-3", "chain-hinged", "heap-3", "plate-gaps", "plane-arm"):
        problem = CONTACT_FAMILIES[family](1).with_law(law)
        known = measured(problem)
        found = st.solve(problem)
        assert residual(problem, found, known) <= TOLERANCE
        spoilt = found._replace(impulse=1.001 * found.impulse, velocity=1.002 * found.velocity)
        told = st.certify(problem, spoilt).residual
        assert told > 1e-5
        assert residual(problem, spoilt, known) == pytest.approx(told, rel=1e-6)


def test_second_judge_refuses_what_is_not_a_number():
    problem = stack(2, 1)
    found = st.solve(problem)
    assert not residual(problem, found._replace(impulse=np.nan * found.impulse), measured(problem)) <= TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("promises", [CONE, PYRAMID, PIVOT], ids=["cone", "pyramid", "pivot"])
def test_thousand_problems_are_solved_and_none_is_wrong(family, promises):
    count, missed, wrong = survey(family, promises, SEEDS)
    assert not wrong
    assert not missed, f"{len(missed)} of {count}: {missed[:5]}"
