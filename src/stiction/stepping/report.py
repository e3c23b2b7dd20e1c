"""What a step tells."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from stiction.solutions.contact import ContactCertificate, ContactSolution


class Report(NamedTuple):
    """One step, from its beginning to `time`.

    potential, kinetic: energy in J at the beginning of the step
    solution: impulses and velocities of the step's contact problem, certified
    """

    time: float
    potential: float
    kinetic: float
    solution: ContactSolution

    @property
    def certificate(self) -> ContactCertificate:
        """By how much the laws of contact are violated."""
        return self.solution.certificate

    @property
    def energy(self) -> float:
        """Potential and kinetic energy, in J, at the beginning of the step."""
        return self.potential + self.kinetic

    def __repr__(self) -> str:
        return f"<Report t = {self.time:.6g} s, energy {self.energy:.6g} J, {self.solution.explain()}>"
