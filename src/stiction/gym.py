"""Gymnasium's MuJoCo environments with exact contact.

`wrap` changes how an environment steps and nothing else: actions, observations, rewards, ends of episodes and the
number of steps for an action stay its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from stiction.bodies.scene import Scene
from stiction.errors import InvalidScene
from stiction.optional import gymnasium
from stiction.problems.laws import Coulomb, Law
from stiction.stepping.choices import check_law, check_solver, check_stepper
from stiction.stepping.engine import Engine
from stiction.stepping.time_stepping import TimeStepping

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

    env: one on Gymnasium's MujocoEnv, inside any wrappers
    ignore: refused features of its model that are to be ignored, see `Scene`

    A step whose contact problem is not solved raises SolveFailed; the environment then is in the state before the
    failed step and can be reset. `env.unwrapped.contact.report` tells about the last step.
    """
    bare = getattr(env, "unwrapped", env)
    if not isinstance(bare, gymnasium().envs.mujoco.MujocoEnv):
        raise InvalidScene(f"gym.wrap: {type(bare).__name__} is no environment on Gymnasium's MujocoEnv")
    bare.contact = Contact(bare, law, solver, stepper or TimeStepping(), ignore)
    bare._step_mujoco_simulation = bare.contact.advance
    return env


class Contact:
    """How a wrapped environment steps."""

    def __init__(self, env: Any, law: Law, solver: Solver | None, stepper: Any, ignore: tuple[str, ...]) -> None:
        check_law("gym.wrap", law)
        if solver is not None:
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
