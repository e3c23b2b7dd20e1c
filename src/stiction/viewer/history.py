"""The past: moments of a simulation that can be looked at again, and continued from.

A moment keeps the configuration in which a step began, the contacts that were found there with their forces, and the
whole state in which the step ended, with the impulses that the next solve begins from. Going on from it reproduces the
same bits.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.bodies.state import place_bodies, set_state, state
from stiction.contacts.gather import CONTACT
from stiction.optional import mujoco
from stiction.viewer.forces import friction_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from stiction.stepping.contacts import Contacts
    from stiction.stepping.record import Step
    from stiction.stepping.simulation import Simulation
    from stiction.viewer.push import Grip

FRAMES = 3600  # moments: a minute at 60 in a second
BYTES = 200_000_000  # of all moments together


@dataclass(frozen=True)
class Moment:
    """A simulation at one time: enough to show it and to go on from it.

    qpos: where everything was when the last step began: there its contacts are
    state, acceleration: after the step, all that MuJoCo's next step depends on
    step: the last step, whose impulses the next solve begins from; None if they were given up to save memory
    contacts: None before the first step
    friction: (n, 2) coefficients along the two tangents
    slip: (n, 2) velocity along them in m/s
    energy: potential and kinetic, in J
    """

    time: float
    qpos: NDArray[np.float64]
    state: NDArray[np.float64]
    acceleration: NDArray[np.float64]
    step: Step | None
    law: Any
    contacts: Contacts | None = None
    friction: NDArray[np.float64] | None = None
    slip: NDArray[np.float64] | None = None
    energy: tuple[float, float] = (0.0, 0.0)
    residual: float = 0.0

    @classmethod
    def of(cls, simulation: Simulation, began: NDArray[np.float64] | None, grip: Grip | None = None) -> Moment:
        """The present moment of a simulation.

        began: positions from which the last step began
        grip: a pull by hand, which is left out, so that going on from here does not repeat it
        """
        model, data = simulation.model, simulation.data
        applied = None if grip is None else data.xfrc_applied[grip.body].copy()
        if grip is not None:
            data.xfrc_applied[grip.body] = grip.given
        after = state(model, data)
        if grip is not None:
            data.xfrc_applied[grip.body] = applied
        report = simulation.report
        kept = (np.array(data.qacc), simulation.engine.last, simulation.law)
        if report is None or began is None:
            return cls(simulation.time, np.array(data.qpos), after, *kept)
        contacts, found = simulation.contacts, simulation.engine.gathered
        assert found is not None
        slip = np.array(report.solution.contact_velocity)[found.kind == CONTACT, 1:]
        return cls(
            simulation.time, began.copy(), after, *kept, contacts, friction_of(simulation), slip,
            (report.potential, report.kinetic), report.certificate.residual,
        )  # fmt: skip

    @property
    def bytes(self) -> int:
        arrays: list[Any] = [self.qpos, self.state, self.acceleration, self.friction, self.slip]
        if self.step is not None:
            arrays += [self.step.floats, self.step.ints]
        if self.contacts is not None:
            arrays += [each for each in vars(self.contacts).values() if isinstance(each, np.ndarray)]
        return sum(each.nbytes for each in arrays if each is not None)


class History:
    """The last moments in the order of their time; safe to read while another thread adds.

    Beyond `most` bytes the oldest moments drop their step, which is the larger part of them: a simulation that goes on
    from there has no warm start. If that is not enough, and beyond `frames`, the oldest are forgotten.
    """

    def __init__(self, frames: int = FRAMES, most: int = BYTES) -> None:
        self.frames, self.most = frames, most
        self.bytes = 0
        self._moments: list[Moment] = []
        self._bare = 0  # so many of the oldest have no impulses any more
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._moments)

    def add(self, moment: Moment) -> None:
        """Keep a moment; later ones belong to another course, and are forgotten."""
        with self._lock:
            self._cut(bisect_left(self._moments, moment.time, key=time_of))
            self._moments.append(moment)
            self.bytes += moment.bytes
            while self.bytes > self.most and self._bare < len(self._moments) - 1:
                self._strip(self._bare)
            while len(self._moments) > 1 and (len(self._moments) > self.frames or self.bytes > self.most):
                self.bytes -= self._moments.pop(0).bytes
                self._bare = max(self._bare - 1, 0)

    def _strip(self, place: int) -> None:
        whole = self._moments[place]
        self._moments[place] = replace(whole, step=None)
        self.bytes -= whole.bytes - self._moments[place].bytes
        self._bare += 1

    def _cut(self, place: int) -> None:
        self.bytes -= sum(each.bytes for each in self._moments[place:])
        del self._moments[place:]
        self._bare = min(self._bare, place)

    def forget_after(self, time: float) -> None:
        with self._lock:
            self._cut(bisect_right(self._moments, time, key=time_of))

    def clear(self) -> None:
        with self._lock:
            self._cut(0)

    @property
    def span(self) -> tuple[float, float]:
        """Times of the first and the last moment."""
        with self._lock:
            return (self._moments[0].time, self._moments[-1].time) if self._moments else (0.0, 0.0)

    def at(self, time: float) -> Moment | None:
        """The one nearest to a time."""
        with self._lock:
            if not self._moments:
                return None
            place = bisect_left(self._moments, time, key=time_of)
            near = self._moments[max(place - 1, 0) : place + 1]
            return min(near, key=lambda each: abs(each.time - time))

    def before(self, time: float) -> Moment | None:
        with self._lock:
            place = bisect_left(self._moments, time, key=time_of)
            return self._moments[place - 1] if place > 0 else None

    def after(self, time: float) -> Moment | None:
        with self._lock:
            place = bisect_right(self._moments, time, key=time_of)
            return self._moments[place] if place < len(self._moments) else None

    def since(self, time: float) -> Sequence[Moment]:
        """All from a time on."""
        with self._lock:
            return self._moments[bisect_left(self._moments, time, key=time_of) :]


def time_of(moment: Moment) -> float:
    return moment.time


class Shown:
    """A moment to draw: what pictures ask of a simulation, on data of its own, while the simulation goes on."""

    def __init__(self, simulation: Simulation, moment: Moment) -> None:
        self.scene, self.model = simulation.scene, simulation.model
        self.data = mujoco().MjData(self.model)
        self.show(moment)

    def show(self, moment: Moment) -> None:
        model, data = self.model, self.data
        self.moment = moment
        set_state(model, data, moment.state)
        data.qpos[:] = moment.qpos
        place_bodies(model, data)
        mujoco().mj_camlight(model, data)
        mujoco().mj_tendon(model, data)

    @property
    def time(self) -> float:
        return self.moment.time

    @property
    def law(self) -> Any:
        return self.moment.law

    @property
    def report(self) -> Moment | None:
        """None before the first step."""
        return None if self.moment.contacts is None else self.moment

    @property
    def contacts(self) -> Contacts | None:
        return self.moment.contacts

    @property
    def friction(self) -> NDArray[np.float64] | None:
        return self.moment.friction
