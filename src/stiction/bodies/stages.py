"""The stages of MuJoCo's step that stay MuJoCo's: all that comes before the constraints are solved, and the motion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stiction.bodies.collision import collide
from stiction.bodies.shadow import own
from stiction.optional import mujoco

if TYPE_CHECKING:
    from stiction.bodies.memory import Memory

mj = mujoco()
step1, actuation, acceleration = mj.mj_step1, mj.mj_fwdActuation, mj.mj_fwdAcceleration
body_forces, sensors, euler = mj.mj_rnePostConstraint, mj.mj_sensorAcc, mj.mj_Euler


def smooth(model: Any, data: Any, memory: Memory | None = None, acts: bool = True) -> None:
    """Kinematics, inertia, contacts, sensors of position and velocity, and all forces but those of constraints.

    memory: given where contacts must be mended (`collision.needs_mending`)
    acts: whether there may be forces of actuators; without any, `qfrc_actuator` must be zero already
    """
    if memory is None:
        step1(model, data)
    else:
        mended_step1(model, data, memory)
    if acts:
        actuation(model, data)
    acceleration(model, data)


def may_act(model: Any) -> bool:
    """Whether a model has what `mj_fwdActuation` computes: actuators, compensation of gravity, plugins."""
    return bool(model.nactuator or model.ngravcomp or model.nplugin or model.jnt_actgravcomp.any())


def mended_step1(model: Any, data: Any, memory: Memory) -> None:
    """`mj_step1`, with contacts mended before they are posed as constraints."""
    mj.mj_checkPos(model, data)
    mj.mj_checkVel(model, data)
    mj.mj_fwdKinematics(model, data)
    mj.mj_makeM(model, data)
    mj.mj_factorM(model, data)
    collide(model, data, memory)
    mj.mj_makeConstraint(model, data)
    mj.mj_transmission(model, data)
    mj.mj_sensorPos(model, data)
    mj.mj_fwdVelocity(model, data)
    mj.mj_sensorVel(model, data)
    mj.mj_energyPos(model, data)
    mj.mj_energyVel(model, data)
    control = mj.get_mjcb_control()
    if control is not None:
        control(own(model), data)


def advance(model: Any, data: Any, senses: bool = True, joined: bool = True) -> None:
    """Sensors of force and acceleration, then the step itself: v += dt qacc, positions with the new v, time.

    joined: whether there are equality constraints, without which `write_back` has set the forces of bodies already
    """
    if joined:
        body_forces(model, data)
    if senses:
        sensors(model, data)
    euler(model, data)
