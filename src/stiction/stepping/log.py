"""A run as a file: what each step found, and the force, gap and mode of every contact.

One row a step, in arrays of length `steps`:

    time        s, at the end of the step
    potential   J, at its beginning, as `kinetic`
    residual    of the certificate
    contacts    number of contacts that were looked at, open ones included
    slip        m/s, the fastest sliding of a closed contact, 0 if none slides
    gap         m, the smallest at the beginning of the step; NaN if nothing is near
    seconds     s of wall time that the step took, with kinematics, collision, solve and certificate

The contacts of step k are the rows first[k] to first[k + 1] of

    contact_geom    (rows, 2) indices into `geoms`, the names
    contact_gap     (rows,) m
    contact_force   (rows, 3) n, t1, t2 in N on the second geom's body
    contact_mode    (rows,) 0 open, 1 stick, 2 slide

and `scene`, `law`, `solver`, `stepper`, `timestep` record what was run. `.npz` holds these arrays by these names;
`.parquet` (with pyarrow) has one row a step, the contacts in list columns `contact_first`, `contact_second` (names),
`contact_gap`, `contact_normal`, `contact_tangent1`, `contact_tangent2`, `contact_mode`.

A run that is killed leaves a whole file. It is rewritten beside itself and renamed, at most once a second, so no more
than the last second is lost. Rewriting a long log every second would cost more than the run: when a part of PART bytes
is full, the next begins in a file of its own (`run.npz`, `run.2.npz`, ...). The end of a run joins them to one, and
`load` reads them as one where a run was killed.
"""

from __future__ import annotations

import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.bodies.state import names
from stiction.solutions.contact import Mode
from stiction.stepping.event_driven import EventDriven
from stiction.stepping.event_rows import select, speeds
from stiction.stepping.fused import Fused
from stiction.stepping.log_files import STEP, Record, load, part_of, remove_parts, writer

if TYPE_CHECKING:
    import os

    from numpy.typing import NDArray

    from stiction.contacts.gather import Constraints
    from stiction.stepping.report import Report
    from stiction.stepping.simulation import Simulation

    Array = NDArray[np.float64]

EVERY = 1.0  # s between two writings
PART = 8 << 20  # bytes of a part: what is rewritten every second
STEP_BYTES, CONTACT_BYTES = 8 * (len(STEP) + 1), 8 * 4 + 4 * 3


class Log:
    """Collects the steps of a simulation, and keeps a file of them up to date if a path is given."""

    def __init__(self, simulation: Simulation, path: str | os.PathLike[str] | None = None) -> None:
        self.simulation = simulation
        self.path = None if path is None else Path(path)
        self.count = 0
        self.by_step = np.empty((1024, len(STEP)))
        self.first = np.zeros(1025, np.int64)
        self.numbers = np.empty((4096, 4))  # gap, n, t1, t2
        self.places = np.empty((4096, 3), np.int32)  # geom, geom, mode
        self.part, self.part_begin = 1, 0
        self.token = secrets.token_hex(8)
        if self.path is not None:
            self.write = writer(self.path)
            self._keep(whole=True)
            remove_parts(self.path)
        self.due = time.monotonic() + EVERY

    def add(self, report: Report, seconds: float) -> None:
        """Add the step of a report, which took so many seconds of wall time."""
        engine = self.simulation.engine
        found = engine.gathered
        assert found is not None
        count = self.count
        rows = int(self.first[count])
        near, u, mode = contacts_of(report, found)
        if count == len(self.by_step):
            self.by_step, self.first = longer(self.by_step), longer(self.first)
        if rows + len(near) > len(self.numbers):
            self.numbers, self.places = longer(self.numbers, rows + len(near)), longer(self.places, rows + len(near))
        slip, gap = 0.0, np.nan
        if len(near):
            numbers, places = self.numbers[rows : rows + len(near)], self.places[rows : rows + len(near)]
            address, forces = found.address[near], engine.data.efc_force
            numbers[:, 0] = found.gap[near]
            numbers[:, 1] = forces[address]
            rough = found.friction[near] > 0.0  # a contact without friction may have no rows of tangents
            for c in (1, 2):
                numbers[:, 1 + c] = np.where(rough, forces[np.minimum(address + c, len(forces) - 1)], 0.0)
            places[:, :2] = found.pair[near]
            places[:, 2] = mode
            if isinstance(self.simulation.stepper, EventDriven):  # its contact velocities are those of a problem posed
                u = speeds(select(found, near), np.array(engine.data.qvel))
            slip = float(np.sqrt(((u[:, 1] ** 2 + u[:, 2] ** 2) * (mode != Mode.OPEN)).max()))
            gap = float(numbers[:, 0].min())
        self.by_step[count] = (
            report.time, report.potential, report.kinetic, report.certificate.residual, len(near), slip, gap, seconds,
        )  # fmt: skip
        self.first[count + 1] = rows + len(near)
        self.count = count + 1  # last: what Ctrl-C interrupts before has not been added
        if self.path is not None and time.monotonic() >= self.due:
            self._keep()
            self.due = time.monotonic() + EVERY

    def record(self, begin: int = 0) -> Record:
        """The collected arrays, from a step on."""
        end = self.count
        rows = slice(int(self.first[begin]), int(self.first[end]))
        simulation = self.simulation
        by_step = {name: self.by_step[begin:end, i] for i, name in enumerate(STEP)}
        return Record(
            scene=simulation.scene.description,
            law=repr(simulation.law),
            solver=repr(simulation.solver),
            stepper=repr(simulation.stepper),
            timestep=float(simulation.model.opt.timestep),
            geoms=tuple(names(simulation.model)[0]),
            **by_step,
            first=self.first[begin : end + 1] - self.first[begin],
            contact_geom=self.places[rows, :2],
            contact_gap=self.numbers[rows, 0],
            contact_force=self.numbers[rows, 1:],
            contact_mode=self.places[rows, 2],
        )

    def close(self) -> None:
        """Write everything to one file."""
        if self.path is not None:
            self.part, self.part_begin = 1, 0
            self._keep(whole=True)
            remove_parts(self.path)

    @staticmethod
    def load(path: str | os.PathLike[str]) -> Record:
        """Read a log, with the parts that a killed run left beside it."""
        return load(path)

    def _keep(self, whole: bool = False) -> None:
        assert self.path is not None
        self.write(part_of(self.path, self.part), self.record(self.part_begin), self.part_begin, self.token)
        steps, rows = self.count - self.part_begin, int(self.first[self.count] - self.first[self.part_begin])
        if not whole and steps * STEP_BYTES + rows * CONTACT_BYTES > PART:
            self.part, self.part_begin = self.part + 1, self.count


def contacts_of(report: Report, found: Constraints) -> tuple[NDArray[np.int64], Array, NDArray[np.int64]]:
    """Which of the gathered are contacts between geoms, their velocities and modes."""
    answer: Any = report._answer  # a solution that is put together when asked for, which a log must not do
    if isinstance(answer, Fused):
        _, _, u, mode = answer.answer
    else:
        u, mode = answer.contact_velocity, answer.mode
    near = np.flatnonzero(found.kind == 0)
    return near, u[near, :3], mode[near]


def longer(array: NDArray[Any], least: int = 0) -> NDArray[Any]:
    """A copy of the array with room for twice as much."""
    room = np.empty((max(2 * len(array), least + least // 2), *array.shape[1:]), array.dtype)
    room[: len(array)] = array
    return room
