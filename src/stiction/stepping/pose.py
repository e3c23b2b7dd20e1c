"""The contact problem of a step: the conditions that its constraints put on the velocities at its end."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from stiction.arrays.compiled import kernel
from stiction.arrays.runs import row_dot, spread_row
from stiction.contacts.gather import DRY
from stiction.errors import InvalidScene
from stiction.problems.islands import joining
from stiction.problems.joints import LOOSELY, make_consistent
from stiction.problems.normal_form import white_of
from stiction.solvers.contact.cone_newton.tolerances import CROWD, LARGE
from stiction.stepping.record import posed_problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.contacts.gather import Constraints
    from stiction.problems.contact import ContactProblem
    from stiction.problems.laws import Law

RECOVERY = 0.1  # m/s, at which overlaps and joint errors are corrected where nothing else is asked for
CLOSED = 5e-10  # a gap rate below this part of the fastest free approach is rounding
NONE = np.zeros(0)


def pose(
    found: Constraints, law: Law, dt: float, recovery: float, bounce: float | NDArray[np.float64] = 0.0,
    viscosity: float | None = None, before: NDArray[np.float64] | None = None, joint_recovery: float | None = None,
) -> ContactProblem:  # fmt: skip
    """The contact problem of a step; nothing is copied that need not be.

    recovery: largest speed, in m/s, at which overlaps and joint errors are corrected
    bounce, before: coefficient of restitution of each contact, and velocities before the step; without `before` there
        are no impacts, contacts close their gaps
    viscosity: in N / (m/s), for `Viscous`
    joint_recovery: of joint errors, if it is another; infinite for what the model's reference asks
    """
    refuse_dry_friction(found, law)
    refuse_turning(found, law)
    n, m, j = found.n, len(found.free), len(found.joint_gap)
    gap_rate, joint_rate, joints = np.empty(n), np.empty(j), np.empty((j, m))
    bounces, moving = (NONE, NONE) if before is None else (np.full(n, bounce), before)
    set_rates(found, dt, recovery, bounces, moving, gap_rate)
    set_joints(found, dt, recovery if joint_recovery is None else joint_recovery, joints, joint_rate)
    friction = np.full(n, dt * viscosities(viscosity)) if law.viscous else None
    problem = posed_problem(found, law, gap_rate, joints, joint_rate, friction)
    if j:
        white, _, rank = white_of(problem, found.mass, LOOSELY)
        make_consistent(white, rank, joints, joint_rate)
    return problem


def refuse_dry_friction(found: Constraints, law: Law) -> None:
    if not law.bounded and (found.kind == DRY).any():
        raise InvalidScene(f"dry friction of joints (frictionloss) needs a law of Coulomb's, not {law}")


def refuse_turning(found: Constraints, law: Law) -> None:
    if found.rows.shape[1] > 3 and not law.turning:
        raise InvalidScene(
            f"torsional and rolling friction (condim 4 and 6) need the law Coulomb() on the cone, not {law}: set "
            "condim to 3, or pass ignore=('torsion',), which takes it as 3"
        )


def viscosities(given: float | None) -> float:
    if given is None:
        raise InvalidScene("the law Viscous needs a viscosity in N / (m/s): give it to the stepper")
    return given


@kernel
def set_rates(found, dt, recovery, bounce, before, rate):
    """Write the rate in N v + rate >= 0: gap / dt lets the gap just close, bounded for overlaps; e v_n at impacts.

    Gaps that are rounding of earlier steps count as closed. They are never consistent with each other, and where
    contacts outnumber the motions that they resist, fitting them would move all resting bodies that much in every step.
    Among many contacts the same goes for gaps within their slack.
    """
    gap, rows, segments, free = found.gap, found.rows, found.segments, found.free

    # The velocity scale by which a rate counts as rounding.
    fastest = 0.0
    for i in range(len(gap)):
        fastest = max(fastest, abs(row_dot(rows[i, 0], segments[i], free)))

    # Close the gap within the step, or correct an overlap at the recovery speed at most.
    many = joining(segments, CROWD) > LARGE
    for i in range(len(gap)):
        rate[i] = max(gap[i] / dt, -recovery)
        if abs(rate[i]) <= CLOSED * fastest or (many and abs(gap[i]) <= found.slack[i]):
            rate[i] = 0.0

        # An impact: the contact must leave with its restitution.
        if len(before) > 0:
            speed = impact_velocity(rows[i, 0], segments[i], gap[i], dt, before, free)
            if speed < 0.0:
                rate[i] = min(rate[i], bounce[i] * speed)


@kernel
def impact_velocity(row, segment, gap, dt, before, free):
    """The normal velocity (negative) with which a contact hits in this step; zero if it does not hit.

    A contact approaching only as fast as this step's forces make it (gravity, say) is resting: it does not hit.
    """
    speed = row_dot(row, segment, before)
    if speed < -abs(row_dot(row, segment, free) - speed) and gap + dt * speed <= 0.0:
        return speed
    return 0.0


@kernel
def set_joints(found, dt, recovery, joints, rate):
    """Write bilateral rows over all velocities, and the rates that correct their errors, bounded by `recovery`.

    recovery: in m/s; infinite: as fast as the model's reference asks, at least at RECOVERY, and never past the aim

    Errors that are rounding count as none, as gaps do: joints with dry friction would slide to take them back.
    """
    # The velocity scale by which a rate counts as rounding.
    fastest = 0.0
    for i in range(len(found.joints)):
        fastest = max(fastest, abs(row_dot(found.joints[i], found.joint_segments[i], found.free)))

    # Rows, and the rates of their errors.
    for i in range(len(found.joints)):
        for k in range(joints.shape[1]):
            joints[i, k] = 0.0
        spread_row(found.joints[i], found.joint_segments[i], joints[i])

        # The rate that corrects the whole error in this step, bounded; or what the model's reference asks for.
        whole = found.joint_gap[i] / dt
        if abs(whole) <= CLOSED * fastest:
            whole = 0.0
        rate[i] = min(max(whole, -recovery), recovery)
        if recovery == math.inf:
            least = min(max(whole, -RECOVERY), RECOVERY)
            asked = -found.joint_aim[i]
            rate[i] = min(max(asked, least), whole) if whole >= 0.0 else max(min(asked, least), whole)
