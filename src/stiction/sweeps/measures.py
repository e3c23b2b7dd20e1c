"""Measures of a run: one number each, found by looking at every step."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from stiction.bodies.state import energy, place_bodies

if TYPE_CHECKING:
    from stiction.stepping.simulation import Simulation


class Measure:
    """Begun with a simulation that has not moved; `look` after every step, `result` in the end."""

    def __init__(self, simulation: Simulation) -> None:
        self.value = 0.0

    def look(self, simulation: Simulation) -> None:
        pass

    def result(self, simulation: Simulation) -> float | int:
        return float(self.value)


class Slip(Measure):
    """Largest sliding speed of a contact that bears, in m/s."""

    def look(self, simulation: Simulation) -> None:
        assert simulation.report is not None
        solution = simulation.report.solution
        closed = solution.contact_velocity[solution.impulse[:, 0] > 0.0]
        self.value = max(self.value, np.hypot(closed[:, 1], closed[:, 2]).max(initial=0.0))


class Force(Measure):
    """Largest normal force of a contact, in N."""

    def look(self, simulation: Simulation) -> None:
        assert simulation.report is not None
        impulse = simulation.report.solution.impulse[:, 0]
        self.value = max(self.value, impulse.max(initial=0.0) / simulation.model.opt.timestep)


class Gap(Measure):
    """Smallest gap, in m; infinite where nothing came near anything."""

    def __init__(self, simulation: Simulation) -> None:
        self.value = math.inf

    def look(self, simulation: Simulation) -> None:
        gathered = simulation.engine.gathered
        assert gathered is not None
        self.value = min(self.value, gathered.gap.min(initial=math.inf))


class Residual(Measure):
    """The worst residual of a step."""

    def look(self, simulation: Simulation) -> None:
        assert simulation.report is not None
        self.value = max(self.value, simulation.report.certificate.residual)


class Contacts(Measure):
    """How many contacts the last step had."""

    def result(self, simulation: Simulation) -> int:
        return 0 if simulation.engine.gathered is None else int(simulation.engine.gathered.n)


class Energy(Measure):
    """Potential and kinetic energy in the end, in J."""

    def result(self, simulation: Simulation) -> float:
        place_bodies(simulation.model, simulation.data)
        return sum(energy(simulation.model, simulation.data))


class Moved(Measure):
    """How far the centre of a body has moved at most, from beginning to end, in m."""

    def __init__(self, simulation: Simulation) -> None:
        place_bodies(simulation.model, simulation.data)
        self.begin = np.array(simulation.data.xipos)

    def result(self, simulation: Simulation) -> float:
        place_bodies(simulation.model, simulation.data)
        return float(np.linalg.norm(simulation.data.xipos - self.begin, axis=1).max())


MEASURES: dict[str, type[Measure]] = {
    "slip": Slip, "energy": Energy, "residual": Residual, "moved": Moved, "force": Force, "gap": Gap,
    "contacts": Contacts,
}  # fmt: skip
UNITS = {"slip": "m/s", "energy": "J", "moved": "m", "force": "N", "gap": "m"}
