"""What an engine's step is worth: its own impulses at its own contacts, judged by our certificate, and how they slip.

The problem is posed from what every engine tells, by the same lines for all: poses and velocities before the step, and
the contacts it found. Overlaps count as touching, so that nobody is blamed for taking them back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from engine_bodies import Body, Contact, Pose, turned
from measure import Answer

import stiction as st

if TYPE_CHECKING:
    from engine_peers import Engine


BEARS = 1e-3  # of the largest normal impulse: a contact that bears more counts for slip


class Verdict(NamedTuple):
    """residual: of our certificate; slip: fastest sliding of a contact that bears, m/s."""

    residual: float
    slip: float


def judged(engine: Engine, gravity: Any, dt: float) -> Verdict:
    """Take one step, and judge it."""
    poses, before = engine.poses(), engine.motion()
    engine.step()
    contacts, after = engine.contacts(), engine.motion()
    problem, impulse = posed(engine.parts, poses, before, contacts, gravity, dt)
    residual = st.certify(problem, Answer(impulse, *problem.respond(impulse))).residual
    least = BEARS * impulse[:, 0].max(initial=0.0)
    bearing = [contact for contact, p in zip(contacts, impulse, strict=True) if p[0] > least]
    return Verdict(residual, max((sliding(contact, poses, after) for contact in bearing), default=0.0))


def posed(
    parts: list[Body], poses: list[Pose], motion: Any, contacts: list[Contact], gravity: Any, dt: float
) -> tuple[st.ContactProblem, Any]:
    """The problem of a step under Coulomb's law, and the impulses (n, 3) along its normals and tangents."""
    moving = [b for b, part in enumerate(parts) if part.kind != "fixed"]
    place = {b: k for k, b in enumerate(moving)}
    mass, free, joints = np.zeros((len(moving), 6, 6)), np.zeros((len(moving), 6)), []
    for k, b in enumerate(moving):
        axes = np.array([turned(poses[b].turn, axis) for axis in np.eye(3)])  # rows
        inertia = axes.T @ np.diag(parts[b].inertia) @ axes
        mass[k, :3, :3], mass[k, 3:, 3:] = parts[b].mass * np.eye(3), inertia
        spin = motion[b, 3:]
        free[k, :3] = motion[b, :3] + dt * (gravity + parts[b].force / parts[b].mass * parts[b].axis)
        free[k, 3:] = spin - dt * np.linalg.solve(inertia, np.cross(spin, inertia @ spin))
        if parts[b].kind == "slide":
            across = np.linalg.svd(parts[b].axis[None])[2][1:]
            for row in (*np.pad(across, ((0, 0), (0, 3))), *np.eye(6)[3:]):
                joints.append(np.zeros(free.shape))
                joints[-1][k] = row
    rows = np.zeros((len(contacts), 3, 2, 6))
    frames = np.array([frame(contact.normal) for contact in contacts]).reshape(-1, 3, 3)
    for i, contact in enumerate(contacts):
        for side, b, sign in ((0, contact.first, -1.0), (1, contact.second, 1.0)):
            rows[i, :, side, :3] = sign * frames[i]
            rows[i, :, side, 3:] = sign * np.cross(contact.points[side] - poses[b].position, frames[i])
    problem = st.ContactProblem.from_bodies(
        mass, free, [[place.get(c.first, -1), place.get(c.second, -1)] for c in contacts] or np.zeros((0, 2), int),
        rows[:, 0], rows[:, 1:], [max(rough(parts[c.first]), rough(parts[c.second])) for c in contacts],
        gap_rate=[max(c.distance, 0.0) / dt for c in contacts],
        joints=np.array(joints).reshape(-1, free.size) if joints else None,
    )  # fmt: skip
    return problem, np.array([f @ c.impulse for f, c in zip(frames, contacts, strict=True)]).reshape(-1, 3)


def frame(normal: Any) -> Any:
    """Rows: the normal and two tangents."""
    across = np.linalg.svd(np.asarray(normal)[None])[2][1:]
    return np.array([np.asarray(normal) / np.linalg.norm(normal), *across])


def rough(part: Body) -> float:
    return max((geom.friction for geom in part.geoms), default=0.0)


def sliding(contact: Contact, poses: list[Pose], motion: Any) -> float:
    """Speed of the second body past the first, along the plane of contact."""
    first, second = (
        motion[b, :3] + np.cross(motion[b, 3:], point - poses[b].position)
        for b, point in zip((contact.first, contact.second), contact.points, strict=True)
    )
    return float(np.linalg.norm(frame(contact.normal)[1:] @ (second - first)))
