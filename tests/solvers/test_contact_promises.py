"""What contact solvers promise: a thousand problems of every family, judged here a second time with dense NumPy.

The judge below is written from the laws alone and shares nothing with that of the package: it takes no normal form and
no kernel. An answer counts if both find a residual of at most 1e-8; an answer called solved that this judge refuses is
reported apart from one that is not found.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import stiction as st
from stiction.problems.contact_families import CONTACT_FAMILIES, stack

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
    rows: np.ndarray  # (3n, m)
    felt: np.ndarray  # (3n, m) rows M⁻¹
    free: np.ndarray  # (n, 3) contact velocities without impulses
    W: np.ndarray  # (n,) mean diagonal of each contact's Delassus block, joints held
    size: float  # largest free velocity


def measured(problem):
    n, m = problem.n, problem.m
    if problem.mass is None:
        free = problem.offset.reshape(n, 3)
        W, none = problem.delassus.diagonal().reshape(n, 3).mean(axis=1), np.zeros((0, 0))
        return Measured(none, none, none, free, W, np.abs(free).max(initial=0.0) or 1.0)
    mass, at = np.zeros((m, m)), 0
    for block in problem.mass_blocks:
        mass[at : at + len(block), at : at + len(block)] = block
        at += len(block)
    rows, joints = problem.dense_rows().reshape(3 * n, m), problem.joints
    felt = np.linalg.solve(mass, rows.T).T
    held = felt.T
    if len(joints):
        through = np.linalg.solve(mass, joints.T)
        held = held - through @ np.linalg.lstsq(joints @ through, joints @ held, rcond=1e-12)[0]
    W = np.einsum("ij,ji->i", rows, held).reshape(n, 3).mean(axis=1)
    offset = np.zeros((n, 3))
    offset[:, 0] = problem.gap_rate
    free = (rows @ problem.velocity).reshape(n, 3) + offset
    terms = (np.abs(rows) @ np.abs(problem.velocity)).reshape(n, 3) + np.abs(offset)
    driven = np.abs(joints @ problem.velocity + problem.joint_rate)
    size = max(np.abs(free).max(initial=0.0), 1e-6 * terms.max(initial=0.0), driven.max(initial=0.0))
    return Measured(mass, rows, felt, free, W, size or 1.0)


def residual(problem, answer, known):
    """The largest violation of balance, joints and the law, over the largest free velocity."""
    n, p, W = problem.n, answer.impulse, known.W
    found = [np.zeros(1)]
    if problem.mass is None:
        u = known.free + (problem.delassus @ p.ravel()).reshape(n, 3)
    else:
        lost = known.mass @ (answer.velocity - problem.velocity)
        lost -= known.rows.T @ p.ravel() + problem.joints.T @ answer.joint_impulse
        u = (known.rows @ answer.velocity).reshape(n, 3)
        u[:, 0] += problem.gap_rate
        found += [np.abs(known.felt @ lost), np.abs(problem.joints @ answer.velocity + problem.joint_rate)]
    found += [np.maximum(-u[:, 0], 0.0), np.abs(np.minimum(u[:, 0], W * p[:, 0]))]
    found.append(friction_error(problem, p, u, known))
    return np.concatenate(found).max() / known.size  # NaN, if there is one


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
