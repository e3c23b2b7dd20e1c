"""Whole scenes: ours beside MuJoCo, PyBullet and DART, which get the same bodies, friction, time step and forces.

Nothing is taken from an engine's word. Positions are read from each, and everything else follows from them: how far
bodies that should rest have gone, how fast they move at the end, how deep they overlap (by MuJoCo's geometry, for all).
MuJoCo multiplies no friction coefficients and takes the larger; Bullet multiplies, so it gets square roots.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from measure import Table, duration
from peers import available
from steps import heap, named

import stiction as st

PLANE, SPHERE, CAPSULE, CYLINDER, BOX = 0, 2, 3, 5, 6
THICK = 1.0  # m, of the boxes that stand for planes where an engine has none that its contact finds well


class Course(NamedTuple):
    """A scene, seconds to settle, seconds that count."""

    make: Callable[[], tuple[Any, Any]]
    settle: float
    seconds: float


def courses(quick: bool) -> dict[str, Course]:
    if quick:
        return {"stack of 10": Course(named("block-stack", blocks=10), 0.1, 0.1)}
    return {
        "stack of 10": Course(named("block-stack", blocks=10), 1.0, 5.0),
        "mass ratio 1000": Course(named("mass-ratio", ratio=1000.0), 1.0, 5.0),
        "grasp, 36 contacts": Course(named("force-closure-grasp"), 0.5, 2.0),
        "pinched capsule": Course(named("pinched-capsule"), 0.5, 5.0),
        "heap of 40": Course(heap(40), 3.0, 2.0),
        "heap of 200": Course(heap(200), 3.0, 1.0),
    }


def scenes(quick: bool) -> list[Table]:
    return [table(name, course) for name, course in courses(quick).items()]


def table(name: str, course: Course) -> Table:
    rows, numbers = [], {}
    for who, build in engines().items():
        found = measured(course, build)
        numbers[who] = found._asdict()
        rows.append((who, *found.cells(numbers["ours"]["seconds"])))
    columns = (
        "engine", "a step", "times ours", "creep [m/s]", "speed at the end [m/s]", "deepest overlap [m]",
        "height lost [J]",
    )  # fmt: skip
    missing = [label for label, package in (("PyBullet", "pybullet"), ("DART", "dartpy")) if not available(package)]
    notes = [f"{course.settle:g} s to settle, then {course.seconds:g} s. Creep: of the body that goes furthest."]
    if missing:
        notes.append(f"Not installed: {', '.join(missing)}.")
    return Table(f"Engines: {name}", columns, rows, notes, numbers)


class Found(NamedTuple):
    seconds: float
    creep: float
    speed: float
    overlap: float
    lost: float
    failed: str

    def cells(self, ours: float) -> tuple[str, ...]:
        if self.failed:
            return (self.failed, "", "", "", "", "")
        numbers = (f"{each:.1e}" for each in (self.creep, self.speed, self.overlap, self.lost))
        return (duration(self.seconds), f"{self.seconds / ours:.2g}", *numbers)


def measured(course: Course, build: Callable[..., Any]) -> Found:
    spec, control = course.make()
    model = spec.compile()
    try:
        engine = build(model, control)
        dt, overlap = model.opt.timestep, Overlap(spec.compile())
        free = [b for b in range(1, model.nbody) if model.body_dofnum[b] == 6]
        for _ in range(round(course.settle / dt)):
            engine.step()
        begin, steps = engine.positions()[free], round(course.seconds / dt)
        spent, deepest, before = 0.0, 0.0, begin
        for k in range(steps):
            before = engine.positions()[free] if k == steps - 1 else before
            start = time.perf_counter()
            engine.step()
            spent += time.perf_counter() - start
            if k % max(1, steps // 50) == 0:
                deepest = max(deepest, overlap(engine))
    except st.SolveFailed as error:
        return failure(f"residual {error.solution.certificate.residual:.0e}")
    except Exception as error:  # a peer that cannot build or run the scene says why, and the others go on
        return failure(f"{type(error).__name__}: {error}"[:50])
    end = engine.positions()[free]
    creep = np.linalg.norm(end - begin, axis=1).max() / course.seconds
    speed = np.linalg.norm(end - before, axis=1).max() / dt
    lost = float(model.body_mass[free] @ ((end - begin) @ model.opt.gravity))
    return Found(spent / steps, float(creep), float(speed), deepest, lost, "")


def failure(why: str) -> Found:
    return Found(np.nan, np.nan, np.nan, np.nan, np.nan, f"failed: {why}")


class Overlap:
    """The deepest overlap of an engine's state, by MuJoCo's geometry."""

    def __init__(self, model: Any) -> None:
        import mujoco

        self.mj, self.model, self.data = mujoco, model, mujoco.MjData(model)

    def __call__(self, engine: Any) -> float:
        self.data.qpos[:] = engine.qpos()
        self.mj.mj_kinematics(self.model, self.data)
        self.mj.mj_collision(self.model, self.data)
        return max(0.0, -min((self.data.contact[i].dist for i in range(self.data.ncon)), default=0.0))


def engines() -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {
        "ours": Ours,
        "MuJoCo": partial(MuJoCo),
        "MuJoCo, elliptic": partial(MuJoCo, cone=1),
        "MuJoCo, PGS": partial(MuJoCo, cone=1, solver=0),
        "MuJoCo, elliptic, noslip 10": partial(MuJoCo, cone=1, noslip_iterations=10),
    }
    if available("pybullet"):
        found |= {
            "PyBullet, impulses": partial(Bullet, solver="SI"),
            "PyBullet, Dantzig": partial(Bullet, solver="DANTZIG"),
        }
    if available("dartpy"):
        found |= {"DART, Dantzig": Dart}
    return found


class Ours:
    def __init__(self, model: Any, control: Any) -> None:
        self.sim = st.Simulation(st.Scene(model, control=control))

    def step(self) -> None:
        self.sim.step()

    def positions(self) -> Any:
        return np.array(self.sim.data.xipos)

    def qpos(self) -> Any:
        return self.sim.data.qpos


class MuJoCo:
    def __init__(self, model: Any, control: Any, **options: Any) -> None:
        import mujoco

        for name, value in options.items():
            setattr(model.opt, name, value)
        self.mj, self.model, self.data, self.control = mujoco, model, mujoco.MjData(model), control

    def step(self) -> None:
        if self.control is not None:
            self.control(self.model, self.data)
        self.mj.mj_step(self.model, self.data)

    def positions(self) -> Any:
        return np.array(self.data.xipos)

    def qpos(self) -> Any:
        return self.data.qpos


# What a model is made of, for engines that cannot read it


class Geom(NamedTuple):
    kind: int
    size: Any
    position: Any
    turn: Any  # w, x, y, z
    friction: float


class Body(NamedTuple):
    """kind: "fixed", "free" or "slide"; force: what an actuator does along the axis of a slide."""

    kind: str
    position: Any
    turn: Any
    mass: float
    inertia: Any
    geoms: list[Geom]
    axis: Any
    force: float


def bodies_of(model: Any, control: Any) -> list[Body]:
    """The model's bodies, the world first; others must be free or slide along one axis of the world."""
    import mujoco

    data = mujoco.MjData(model)
    if control is not None:
        control(model, data)
    mujoco.mj_forward(model, data)
    found = []
    for b in range(model.nbody):
        first, count = model.body_jntadr[b], model.body_jntnum[b]
        kinds = [int(k) for k in model.jnt_type[first : first + count]]
        kind = {(): "fixed", (0,): "free", (2,): "slide"}.get(tuple(kinds))
        if kind is None or model.body_parentid[b] != 0:
            raise ValueError(f"body {model.body(b).name} is neither free nor on one slide")
        axis, force = np.zeros(3), 0.0
        if kind == "slide":
            axis, force = model.jnt_axis[first].copy(), float(data.qfrc_actuator[model.jnt_dofadr[first]])
        start, number = model.body_geomadr[b], model.body_geomnum[b]
        geoms = [
            Geom(
                int(model.geom_type[g]), model.geom_size[g].copy(), model.geom_pos[g].copy(),
                model.geom_quat[g].copy(), float(model.geom_friction[g, 0]),
            )
            for g in range(start, start + number)
        ]  # fmt: skip
        axes = np.array([turned(model.body_iquat[b], axis) for axis in np.eye(3)])
        inertia = axes.T @ np.diag(model.body_inertia[b]) @ axes
        aligned = np.allclose(inertia, np.diag(inertia.diagonal()), rtol=0.0, atol=1e-9 * inertia.max(initial=0.0))
        if not (aligned and np.allclose(model.body_ipos[b], 0.0)):
            raise ValueError(f"body {model.body(b).name}: its axes are not those of its inertia")
        found.append(Body(
            kind, model.body_pos[b].copy(), model.body_quat[b].copy(), float(model.body_mass[b]),
            inertia.diagonal().copy(), geoms, axis, force,
        ))  # fmt: skip
    return found


def turned(quaternion: Any, vector: Any) -> Any:
    """A vector, turned by w, x, y, z."""
    w, axis = quaternion[0], np.asarray(quaternion[1:])
    return vector + 2.0 * np.cross(axis, np.cross(axis, vector) + w * np.asarray(vector))


def as_box(geom: Geom) -> Geom:
    """A thick box whose upper face is the plane."""
    if geom.kind != PLANE:
        return geom
    below = geom.position - turned(geom.turn, np.array([0.0, 0.0, THICK]))
    return geom._replace(kind=BOX, size=np.array([5.0, 5.0, THICK]), position=below)


class Poses(ABC):
    """Positions and MuJoCo's qpos of bodies kept elsewhere: `pose(b)` is position and w, x, y, z."""

    parts: list[Body]

    @abstractmethod
    def pose(self, b: int) -> tuple[Any, Any]: ...

    def positions(self) -> Any:
        return np.array([np.zeros(3), *(self.pose(b)[0] for b in range(1, len(self.parts)))])

    def qpos(self) -> Any:
        values: list[Any] = []
        for b, body in enumerate(self.parts[1:], 1):
            position, turn = self.pose(b)
            if body.kind == "free":
                values += [position, turn]
            elif body.kind == "slide":
                values.append([float((position - body.position) @ body.axis)])
        return np.concatenate(values)


class Bullet(Poses):
    def __init__(self, model: Any, control: Any, solver: str) -> None:
        import pybullet
        from pybullet_utils.bullet_client import BulletClient

        self.pb = BulletClient(pybullet.DIRECT)
        self.parts, self.body = bodies_of(model, control), []
        self.pb.setGravity(*model.opt.gravity)
        self.pb.setPhysicsEngineParameter(
            fixedTimeStep=model.opt.timestep, numSubSteps=0, deterministicOverlappingPairs=1,
            constraintSolverType=getattr(pybullet, f"CONSTRAINT_SOLVER_LCP_{solver}"),
        )  # fmt: skip
        for part in self.parts:
            self.body.append(self.add(part))

    def add(self, part: Body) -> int:
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
            return made[0] if made else -1
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
        return int(made)

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

    def pose(self, b: int) -> tuple[Any, Any]:
        if self.parts[b].kind == "slide":
            slid = self.pb.getJointState(self.body[b], 0)[0]
            return self.parts[b].position + slid * self.parts[b].axis, self.parts[b].turn
        position, turn = self.pb.getBasePositionAndOrientation(self.body[b])
        return np.array(position), np.array([turn[3], *turn[:3]])


def xyzw(turn: Any) -> list[float]:
    return [*turn[1:].tolist(), float(turn[0])]


class Dart(Poses):
    def __init__(self, model: Any, control: Any) -> None:
        import dartpy as dart

        self.dart, self.world = dart, dart.simulation.World()
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

    def pose(self, b: int) -> tuple[Any, Any]:
        found = self.skeletons[b][1].getWorldTransform()
        turn = found.quaternion()
        return np.array(found.translation()).ravel(), np.array([turn.w(), turn.x(), turn.y(), turn.z()])
