"""Gymnasium's MuJoCo environments with exact contact.

`wrap` changes how an environment steps and nothing else: actions, observations, rewards, ends of episodes and the
number of steps for an action stay its own. `VectorEnv` makes many of them at once, which threads step side by side.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.bodies.scene import Scene
from stiction.bodies.state import place_bodies
from stiction.errors import InvalidScene, SolveFailed, is_whole
from stiction.optional import gymnasium
from stiction.problems.laws import Coulomb, Law
from stiction.stepping.choices import check_law, check_solver, check_stepper
from stiction.stepping.engine import Engine, alone
from stiction.stepping.rollout import CONTROL, PHYSICS, Roller, StepOptions, mj
from stiction.stepping.time_stepping import DEFAULT, TimeStepping

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.solvers.contract import Solver
    from stiction.stepping.report import Report


def wrap(
    env: Any,
    *,
    law: Law = Coulomb(),  # noqa: B008 (frozen)
    solver: Solver | None = None,
    stepper: Any = None,
    ignore: tuple[str, ...] = (),
) -> Any:
    """The same environment, stepped with our contact: `env = st.gym.wrap(gymnasium.make("Hopper-v5"))`.

    env: one on Gymnasium's MujocoEnv, inside any wrappers, or a vector of such in this process (`SyncVectorEnv`)
    ignore: features of its model that are to be ignored, see `Scene`

    A step whose contact problem is not solved raises SolveFailed; the environment then is in the state before the
    failed step and can be reset. `env.unwrapped.contact.report` is the report of the last step.
    """
    bare = getattr(env, "unwrapped", env)
    if isinstance(bare, gymnasium().vector.VectorEnv):
        for each in inner(bare):
            wrap(each, law=law, solver=solver, stepper=stepper, ignore=ignore)
        return env
    check_environment("gym.wrap", bare)
    use(bare, Contact(bare, law, solver, stepper or TimeStepping(), ignore))
    return env


def inner(vector: Any) -> list[Any]:
    """The environments of a vector."""
    envs = getattr(vector, "envs", None)
    if not isinstance(envs, (list, tuple)):
        raise InvalidScene(
            f"gym.wrap: the environments of {type(vector).__name__} are not in this process; make them with "
            "st.gym.VectorEnv(env_id, num_envs), or wrap each in the function that makes it"
        )
    return list(envs)


def check_environment(owner: str, bare: Any) -> None:
    if not isinstance(bare, gymnasium().envs.mujoco.MujocoEnv):
        raise InvalidScene(f"{owner}: {type(bare).__name__} is no environment on Gymnasium's MujocoEnv")


def use(bare: Any, contact: Contact) -> None:
    bare.contact = contact
    bare._step_mujoco_simulation = contact.advance


class Contact:
    """How a wrapped environment steps."""

    def __init__(self, env: Any, law: Law, solver: Solver | None, stepper: Any, ignore: tuple[str, ...]) -> None:
        check_law("gym.wrap", law)
        check_solver("gym.wrap", solver)
        check_stepper("gym.wrap", stepper)
        self.env, self.law, self.solver, self.stepper = env, law, solver, stepper
        self.scene = Scene.of(env.model, ignore=ignore)
        self.scene.check()
        self.engine: Engine | None = None
        self.report: Report | None = None

    def advance(self, control: NDArray[Any], steps: int) -> None:
        """So many steps under this control, in place of `mj_step`."""
        data = self.env.data
        if self.engine is None or self.engine.data is not data or data.time == 0.0:
            self.engine = Engine(self.scene, data)  # an episode begins: nothing is remembered of the last one
        data.ctrl[:] = control
        for _ in range(steps):
            self.report = self.engine.step(self.stepper, self.law, self.solver)


class CompiledContact(Contact):
    """Contact whose steps of one action are one compiled call where possible, with the same bits.

    residual: the worst of the last action's steps; there is no report
    """

    residual = 0.0
    roller: Roller | None = None

    def advance(self, control: NDArray[Any], steps: int) -> None:
        data, model = self.env.data, self.env.model
        if self.roller is None or self.roller.engine.data is not data:
            options = StepOptions(
                self.law, self.stepper, "raise", CONTROL, DEFAULT if self.solver is None else self.solver
            )
            self.roller = Roller(Engine(self.scene, data), options)
        elif data.time == 0.0:  # an episode begins: nothing is remembered of the last one
            place_bodies(model, data)
            self.roller.engine.last = None
        rows = np.tile(np.asarray(control, np.float64), (steps, 1))
        state, sensed = np.empty((steps, mj.mj_stateSize(model, PHYSICS))), np.empty((steps, model.nsensordata))
        residual, failed, t = np.zeros(steps), np.full(1, -1), 0
        with alone(data):
            while t < steps:
                t = self.roller.make_steps(t, steps, rows, state, sensed, residual, failed)
        self.residual = float(residual.max(initial=0.0))


def VectorEnv(
    env_id: str,
    num_envs: int,
    *,
    law: Law = Coulomb(),  # noqa: B008 (frozen)
    solver: Solver | None = None,
    stepper: Any = None,
    ignore: tuple[str, ...] = (),
    workers: int | None = None,
    autoreset_mode: Any = None,
    **options: Any,
) -> Any:
    """Many environments of one kind, stepped with our contact, as a `gymnasium.vector.VectorEnv`.

    env_id: of a task on Gymnasium's MujocoEnv, such as "Hopper-v5"
    workers: threads, by default one for each processor; they change no bit
    autoreset_mode: as Gymnasium's `SyncVectorEnv` takes it, by default at the next step
    options: for `gymnasium.make`

    A step whose contact problem is not solved ends its episode: `truncated`, with the reason in `info["contact"]`.
    """
    for name, value in (("num_envs", num_envs), ("workers", workers)):
        if not is_whole(value, 1) and not (name == "workers" and value is None):
            raise InvalidScene(f"gym.VectorEnv: {name} must be a whole number of at least 1, got {value!r}")

    def make() -> Any:
        env = gymnasium().make(env_id, **options)
        check_environment("gym.VectorEnv", env.unwrapped)
        contact = CompiledContact(env.unwrapped, law, solver, stepper or TimeStepping(), ignore)
        use(env.unwrapped, contact)
        return classes()[1](env)

    more = {} if autoreset_mode is None else {"autoreset_mode": autoreset_mode}
    made = classes()[0]([make] * num_envs, **more)
    made.begin(min(workers or os.cpu_count() or 1, num_envs))
    return made


@cache
def classes() -> tuple[Any, Any]:
    """The vector and the wrapper of its environments, made when Gymnasium is there."""
    package = gymnasium()

    class Together(package.vector.SyncVectorEnv):  # type: ignore[misc,name-defined]
        """Gymnasium's vector in one process, whose environments are stepped by threads beforehand."""

        pool: ThreadPoolExecutor | None = None

        def begin(self, workers: int) -> None:
            self.pool = ThreadPoolExecutor(workers) if workers > 1 else None

        def step(self, actions: Any) -> Any:
            """As Gymnasium's; which environments are reset instead, and when, stays its own."""
            if self.pool is not None:
                due = self.autoreset_mode == package.vector.AutoresetMode.NEXT_STEP
                each = zip(self.envs, package.vector.utils.iterate(self.action_space, actions), strict=True)
                going = [
                    self.pool.submit(env.prepare, action)
                    for k, (env, action) in enumerate(each)
                    if not (due and self._autoreset_envs[k])
                ]
                for one in going:
                    one.result()
            return super().step(actions)

        def close_extras(self, **options: Any) -> None:
            if self.pool is not None:
                self.pool.shutdown()
            super().close_extras(**options)

    class Ending(package.Wrapper):  # type: ignore[misc,name-defined]
        """An environment whose episode ends where contact is not solved."""

        ready: Any = None
        seen: Any = None

        def prepare(self, action: Any) -> None:
            """Step now; `step` hands the outcome on."""
            self.ready = self.made(action)

        def step(self, action: Any) -> Any:
            outcome, self.ready = self.made(action) if self.ready is None else self.ready, None
            return outcome

        def made(self, action: Any) -> Any:
            try:
                outcome = self.env.step(action)
            except SolveFailed as error:
                return self.seen, 0.0, False, True, {"contact": str(error)}
            self.seen = outcome[0]
            return outcome

        def reset(self, **options: Any) -> Any:
            self.ready = None
            found = self.env.reset(**options)
            self.seen = found[0]
            return found

    return Together, Ending
