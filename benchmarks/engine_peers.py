"""The engines of `engines.py`, with one way to step and to read them: poses, velocities and contacts of the last step.

MuJoCo takes the larger of two friction coefficients, Bullet multiplies them, so it gets square roots.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from engine_bodies import BOX, CAPSULE, CYLINDER, SPHERE, Body, Contact, Geom, Pose, as_box, bodies_of, turned

import stiction as st


class Engine(ABC):
    """Body 0 is the world."""

    parts: list[Body]

    @abstractmethod
    def step(self) -> None: ...

    @abstractmethod
    def pose(self, b: int) -> Pose: ...

    @abstractmethod
    def motion(self) -> Any:
        """(bodies, 6) velocities of the centres of mass, then angular ones, along world axes."""

    @abstractmethod
    def contacts(self) -> list[Contact]:
        """Of the last step, with their impulses."""

    def poses(self) -> list[Pose]:
        return [self.pose(b) for b in range(len(self.parts))]

    def positions(self) -> Any:
        return np.array([self.pose(b).position for b in range(len(self.parts))])

    def qpos(self) -> Any:
        """As MuJoCo has it."""
        values: list[Any] = []
        for body, pose in zip(self.parts, self.poses(), strict=True):
            if body.kind == "free":
                values += [pose.position, pose.turn]
            elif body.kind == "slide":
                values.append([float((pose.position - body.position) @ body.axis)])
        return np.concatenate(values)


class InMuJoCo(Engine):
    """States in MuJoCo's data."""

    def __init__(self, model: Any, data: Any, control: Any) -> None:
        import mujoco

        self.mj, self.model, self.data = mujoco, model, data
        self.parts = bodies_of(model, control)

    def pose(self, b: int) -> Pose:
        part, q = self.parts[b], self.model.jnt_qposadr[self.model.body_jntadr[b]]
        if part.kind == "free":
            return Pose(self.data.qpos[q : q + 3].copy(), self.data.qpos[q + 3 : q + 7].copy())
        slid = self.data.qpos[q] * part.axis if part.kind == "slide" else 0.0
        return Pose(part.position + slid, part.turn)

    def motion(self) -> Any:
        found = np.zeros((len(self.parts), 6))
        for b, part in enumerate(self.parts):
            v = self.data.qvel[self.model.body_dofadr[b] :]
            if part.kind == "free":
                found[b, :3], found[b, 3:] = v[:3], turned(self.pose(b).turn, v[3:6])
            elif part.kind == "slide":
                found[b, :3] = v[0] * part.axis
        return found

    def contacts(self) -> list[Contact]:
        found, force = [], np.zeros(6)
        for i in range(self.data.ncon):
            contact = self.data.contact[i]
            self.mj.mj_contactForce(self.model, self.data, i, force)
            frame = contact.frame.reshape(3, 3)
            found.append(Contact(
                *(int(self.model.geom_bodyid[g]) for g in contact.geom), (contact.pos.copy(),) * 2, frame[0].copy(),
                float(contact.dist), self.model.opt.timestep * force[:3] @ frame,
            ))  # fmt: skip
        return found


class Ours(InMuJoCo):
    def __init__(self, model: Any, control: Any) -> None:
        self.sim = st.Simulation(st.Scene(model, control=control))
        super().__init__(self.sim.model, self.sim.data, control)

    def step(self) -> None:
        self.sim.step()


class MuJoCo(InMuJoCo):
    def __init__(self, model: Any, control: Any, **options: Any) -> None:
        import mujoco

        for name, value in options.items():
            setattr(model.opt, name, value)
        super().__init__(model, mujoco.MjData(model), control)
        self.control = control

    def step(self) -> None:
        if self.control is not None:
            self.control(self.model, self.data)
        self.mj.mj_step(self.model, self.data)


class Bullet(Engine):
    def __init__(self, model: Any, control: Any, solver: str) -> None:
        import pybullet
        from pybullet_utils.bullet_client import BulletClient

        self.pb = BulletClient(pybullet.DIRECT)
        self.dt, self.parts, self.body = model.opt.timestep, bodies_of(model, control), []
        self.part_of: dict[int, int] = {}
        self.pb.setGravity(*model.opt.gravity)
        self.pb.setPhysicsEngineParameter(
            fixedTimeStep=model.opt.timestep, numSubSteps=0, deterministicOverlappingPairs=1,
            constraintSolverType=getattr(pybullet, f"CONSTRAINT_SOLVER_LCP_{solver}"),
        )  # fmt: skip
        for b, part in enumerate(self.parts):
            made = self.add(part)
            self.part_of |= dict.fromkeys(made, b)
            self.body.append(made[0] if made else -1)

    def add(self, part: Body) -> list[int]:
        shapes = [self.shape(as_box(geom)) for geom in part.geoms]
        frames = [(as_box(geom).position, xyzw(geom.turn)) for geom in part.geoms]
        mu = max((geom.friction for geom in part.geoms), default=0.0) ** 0.5
        if part.kind == "fixed":
            made = [
                self.pb.createMultiBody(0.0, shape, -1, position.tolist(), turn)
                for shape, (position, turn) in zip(shapes, frames, strict=True)
            ]
            for each in made:
                self.pb.changeDynamics(each, -1, lateralFriction=mu)
            return made
        shape = shapes[0] if len(shapes) == 1 else self.compound(part)
        if part.kind == "free":
            made = self.pb.createMultiBody(part.mass, shape, -1, part.position.tolist(), xyzw(part.turn))
            link = -1
        else:
            made = self.pb.createMultiBody(
                0.0, -1, -1, part.position.tolist(), [0, 0, 0, 1], linkMasses=[part.mass],
                linkCollisionShapeIndices=[shape], linkVisualShapeIndices=[-1], linkPositions=[[0, 0, 0]],
                linkOrientations=[[0, 0, 0, 1]], linkInertialFramePositions=[[0, 0, 0]],
                linkInertialFrameOrientations=[[0, 0, 0, 1]], linkParentIndices=[0],
                linkJointTypes=[self.pb.JOINT_PRISMATIC], linkJointAxis=[part.axis.tolist()],
            )  # fmt: skip
            link = 0
            self.pb.setJointMotorControl2(made, 0, self.pb.VELOCITY_CONTROL, force=0.0)
        self.pb.changeDynamics(
            made, link, lateralFriction=mu, restitution=0.0, linearDamping=0.0, angularDamping=0.0,
            localInertiaDiagonal=part.inertia.tolist(), activationState=self.pb.ACTIVATION_STATE_DISABLE_SLEEPING,
        )  # fmt: skip
        return [made]

    def shape(self, geom: Geom) -> int:
        size = geom.size.tolist()
        if geom.kind == BOX:
            return int(self.pb.createCollisionShape(self.pb.GEOM_BOX, halfExtents=size))
        if geom.kind == SPHERE:
            return int(self.pb.createCollisionShape(self.pb.GEOM_SPHERE, radius=size[0]))
        kind = {CAPSULE: self.pb.GEOM_CAPSULE, CYLINDER: self.pb.GEOM_CYLINDER}[geom.kind]
        return int(self.pb.createCollisionShape(kind, radius=size[0], height=2.0 * size[1]))

    def compound(self, part: Body) -> int:
        if any(geom.kind != BOX for geom in part.geoms):
            raise ValueError("only boxes are put together")
        count = len(part.geoms)
        return int(self.pb.createCollisionShapeArray(
            shapeTypes=[self.pb.GEOM_BOX] * count, halfExtents=[geom.size.tolist() for geom in part.geoms],
            collisionFramePositions=[geom.position.tolist() for geom in part.geoms],
            collisionFrameOrientations=[xyzw(geom.turn) for geom in part.geoms],
        ))  # fmt: skip

    def step(self) -> None:
        for part, body in zip(self.parts, self.body, strict=True):
            if part.kind == "slide":
                self.pb.setJointMotorControl2(body, 0, self.pb.TORQUE_CONTROL, force=part.force)
        self.pb.stepSimulation()

    def pose(self, b: int) -> Pose:
        if self.parts[b].kind == "slide":
            slid = self.pb.getJointState(self.body[b], 0)[0]
            return Pose(self.parts[b].position + slid * self.parts[b].axis, self.parts[b].turn)
        if self.parts[b].kind == "fixed":
            return Pose(self.parts[b].position, self.parts[b].turn)
        position, turn = self.pb.getBasePositionAndOrientation(self.body[b])
        return Pose(np.array(position), np.array([turn[3], *turn[:3]]))

    def motion(self) -> Any:
        found = np.zeros((len(self.parts), 6))
        for b, part in enumerate(self.parts):
            if part.kind == "free":
                found[b, :3], found[b, 3:] = self.pb.getBaseVelocity(self.body[b])
            elif part.kind == "slide":
                found[b, :3] = self.pb.getJointState(self.body[b], 0)[1] * part.axis
        return found

    def contacts(self) -> list[Contact]:
        found = []
        for _, a, b, _, _, on_a, on_b, normal, distance, pressed, f1, t1, f2, t2 in self.pb.getContactPoints():
            force = pressed * np.array(normal) + f1 * np.array(t1) + f2 * np.array(t2)
            found.append(Contact(
                self.part_of[b], self.part_of[a], (np.array(on_b), np.array(on_a)), np.array(normal), distance,
                self.dt * force,
            ))  # fmt: skip
        return found


def xyzw(turn: Any) -> list[float]:
    return [*turn[1:].tolist(), float(turn[0])]


class Dart(Engine):
    def __init__(self, model: Any, control: Any) -> None:
        import dartpy as dart

        self.dart, self.world, self.dt = dart, dart.simulation.World(), model.opt.timestep
        self.parts, self.skeletons = bodies_of(model, control), []
        self.world.setGravity(model.opt.gravity.tolist())
        self.world.setTimeStep(model.opt.timestep)
        solver = self.world.getConstraintSolver()
        solver.setCollisionDetector(dart.collision.BulletCollisionDetector())
        for number, part in enumerate(self.parts):
            self.add(number, part)

    def add(self, number: int, part: Body) -> None:
        dart = self.dart
        skeleton = dart.dynamics.Skeleton(f"body{number}")
        create = {
            "fixed": skeleton.createWeldJointAndBodyNodePair,
            "free": skeleton.createFreeJointAndBodyNodePair,
            "slide": skeleton.createPrismaticJointAndBodyNodePair,
        }[part.kind]
        joint, node = create(None)
        for geom in map(as_box, part.geoms):
            shape = node.createShapeNode(self.shape(geom))
            shape.createVisualAspect()
            shape.createCollisionAspect()
            shape.createDynamicsAspect().setFrictionCoeff(geom.friction)
            shape.setRelativeTransform(self.transform(geom.position, geom.turn))
        if part.kind != "fixed":
            node.setInertia(dart.dynamics.Inertia(part.mass, np.zeros(3), np.diag(part.inertia)))
        if part.kind == "slide":
            joint.setAxis(part.axis)
        joint.setTransformFromParentBodyNode(self.transform(part.position, part.turn))
        self.world.addSkeleton(skeleton)
        self.skeletons.append((skeleton, node, joint))

    def shape(self, geom: Geom) -> Any:
        shapes = self.dart.dynamics
        if geom.kind == BOX:
            return shapes.BoxShape(2.0 * geom.size)
        if geom.kind == SPHERE:
            return shapes.SphereShape(geom.size[0])
        return {CAPSULE: shapes.CapsuleShape, CYLINDER: shapes.CylinderShape}[geom.kind](geom.size[0], 2 * geom.size[1])

    def transform(self, position: Any, turn: Any) -> Any:
        found = self.dart.math.Isometry3()
        found.set_quaternion(self.dart.math.Quaternion(*turn.tolist()))
        found.set_translation(position)
        return found

    def step(self) -> None:
        for part, (_, _, joint) in zip(self.parts, self.skeletons, strict=True):
            if part.kind == "slide":
                joint.setForces([part.force])
        self.world.step()

    def pose(self, b: int) -> Pose:
        found = self.skeletons[b][1].getWorldTransform()
        turn = found.quaternion()
        return Pose(np.array(found.translation()).ravel(), np.array([turn.w(), turn.x(), turn.y(), turn.z()]))

    def motion(self) -> Any:
        nodes = [node for _, node, _ in self.skeletons]
        return np.array([np.r_[node.getCOMLinearVelocity(), node.getAngularVelocity()] for node in nodes])

    def contacts(self) -> list[Contact]:
        found = []
        for contact in self.world.getLastCollisionResult().getContacts():
            second, first = (self.body_of(each) for each in (contact.collisionObject1, contact.collisionObject2))
            found.append(Contact(
                first, second, (np.array(contact.point),) * 2, np.array(contact.normal), -contact.penetrationDepth,
                self.dt * np.array(contact.force),
            ))  # fmt: skip
        return found

    def body_of(self, touched: Any) -> int:
        name = touched.getShapeFrame().asShapeNode().getBodyNodePtr().getSkeleton().getName()
        return int(name.removeprefix("body"))
