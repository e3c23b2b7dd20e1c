"""The stages of MuJoCo's step that stay MuJoCo's: all that comes before the constraints are solved, and the motion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stiction.bodies.collision.mend import LEANING, MENDABLE, RIGHT, STAGED, collide, in_order, mend
from stiction.bodies.shadow import own
from stiction.optional import mujoco

if TYPE_CHECKING:
    from stiction.bodies.structs import Memory

mj = mujoco()
step1, actuation, acceleration = mj.mj_step1, mj.mj_fwdActuation, mj.mj_fwdAcceleration
body_forces, sensors, euler = mj.mj_rnePostConstraint, mj.mj_sensorAcc, mj.mj_Euler
kinematics, make_mass, factor_mass = mj.mj_fwdKinematics, mj.mj_makeM, mj.mj_factorM
make_constraint, transmission, forces_of_velocity = mj.mj_makeConstraint, mj.mj_transmission, mj.mj_fwdVelocity
constraint_velocities = mj.mj_referenceConstraint
sensors_of_position, sensors_of_velocity = mj.mj_sensorPos, mj.mj_sensorVel
potential, kinetic, control_callback = mj.mj_energyPos, mj.mj_energyVel, mj.get_mjcb_control


def smooth(model: Any, data: Any, memory: Memory | None = None, acts: bool = True) -> None:
    """Kinematics, inertia, contacts, sensors of position and velocity, and all forces but those of constraints.

    memory: given where contacts must be mended (`collision.needs_mending`)
    acts: whether there may be forces of actuators; without any, `qfrc_actuator` must be zero already
    """
    before_control(model, data, memory)
    after_control(model, data, acts)


def before_control(model: Any, data: Any, memory: Memory | None = None, search: int = STAGED) -> int:
    """The stages that do not depend on controls and applied forces, as in `mj_step1`; search: as in `mended_step1`."""
    if memory is None:
        step1(model, data)
        return search
    return mended_step1(model, data, memory, search)


def after_control(model: Any, data: Any, acts: bool = True) -> None:
    """The stages that do: forces of actuators, and the acceleration without constraints."""
    if acts:
        actuation(model, data)
    acceleration(model, data)


def may_act(model: Any) -> bool:
    """Whether a model has what `mj_fwdActuation` computes: actuators, compensation of gravity, plugins."""
    return bool(model.nactuator or model.ngravcomp or model.nplugin or model.jnt_actgravcomp.any())


def mended_step1(model: Any, data: Any, memory: Memory, search: int = STAGED) -> int:
    """`mj_step1`, with contacts mended before they are posed as constraints; returns how to search the next time.

    What a model has nothing of is not asked for. Positions and velocities are known to be good (`bodies.inputs`).

    search: of `collision.mend`. Where MuJoCo searches by itself and no callback sees its contacts, one call does all,
        and what was mended is posed again; if cylinders lean, all is done once more. The result is the same
    """
    if search != STAGED and control_callback() is None:
        step1(model, data)
        return put_in_order(model, data, memory, search, in_order(memory))
    return staged_step1(model, data, memory, search)


def put_in_order(model: Any, data: Any, memory: Memory, search: int, order: int) -> int:
    """Mend contacts after `mj_step1`; order: of `collision.mend`; returns how to search the next time."""
    if order == RIGHT:
        return search
    if order != MENDABLE:
        return staged_step1(model, data, memory, search)
    if not mend(model, data, memory):
        return search
    data.contact.efc_address[:] = -1  # what is excluded now would keep the rows that it had
    make_constraint(model, data)
    constraint_velocities(model, data)
    return STAGED if search == LEANING else search


def staged_step1(model: Any, data: Any, memory: Memory, search: int) -> int:
    """`mj_step1` stage by stage, contacts mended in between; returns how to search the next time."""
    control, senses = control_callback(), model.nsensor
    kinematics(model, data)
    make_mass(model, data)
    factor_mass(model, data)
    mended = collide(model, data, memory)
    make_constraint(model, data)
    if model.nu:
        transmission(model, data)
    if senses:
        sensors_of_position(model, data)
    forces_of_velocity(model, data)
    if senses:
        sensors_of_velocity(model, data)
    potential(model, data)
    kinetic(model, data)
    if control is not None:
        control(own(model), data)
    return STAGED if mended or model.nhfield else max(search, LEANING)


def move(model: Any, data: Any, velocity: Any, dt: float) -> None:
    """Positions as if bodies had moved with these velocities for a time; nothing else changes."""
    mj.mj_integratePos(model, data.qpos, velocity[: model.nv], dt)


def advance(model: Any, data: Any, senses: bool = True, joined: bool = True) -> None:
    """Sensors of force and acceleration, then the step itself: v += dt qacc, positions with the new v, time.

    joined: whether there are equality constraints, without which `write_back` has set the forces of bodies already
    """
    if joined:
        body_forces(model, data)
    if senses:
        sensors(model, data)
    euler(model, data)
