"""The report of one step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stiction.solutions.contact import ContactCertificate, ContactSolution
from stiction.solutions.notebook import contacts, counted, verdict_words

if TYPE_CHECKING:
    from stiction.stepping.fused import Fused


class Report:
    """One step, from its beginning to `time`.

    potential, kinetic: energy in J at the beginning of the step
    contradictions: overlaps and equality constraints, by name, that could not all be put right in this step
    """

    __slots__ = ("_answer", "_lift", "contradictions", "kinetic", "potential", "time")

    def __init__(
        self, time: float, potential: float, kinetic: float, answer: ContactSolution | Fused,
        contradictions: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.time, self.potential, self.kinetic = time, potential, kinetic
        self._answer, self._lift, self.contradictions = answer, 0.0, contradictions

    @property
    def certificate(self) -> ContactCertificate:
        """By how much the laws of contact are violated."""
        return self._answer.certificate

    @property
    def ok(self) -> bool:
        """Whether the step is certified; only `TimeStepping(on_failure="best")` makes one that is not."""
        return not isinstance(self._answer, ContactSolution) or self._answer.ok

    @property
    def solution(self) -> ContactSolution:
        """Impulses and velocities of the step's contact problem, certified."""
        if not isinstance(self._answer, ContactSolution):
            self._lift = self._answer.lift
            self._answer = self._answer.solution()
        return self._answer

    @property
    def lift(self) -> float:
        """The largest speed, in m/s, at which contacts lift as they slide (`TimeStepping.lift`); mostly none does: 0.

        Their gaps open at this speed beside Coulomb's law, and `solution.problem` says so.
        """
        return self._lift if isinstance(self._answer, ContactSolution) else self._answer.lift

    @property
    def energy(self) -> float:
        """Potential and kinetic energy, in J, at the beginning of the step."""
        return self.potential + self.kinetic

    def __repr__(self) -> str:
        return f"<Report at {self.time:.6g} s: {counted(self.solution.mode)}, {verdict_words(self.solution)}>"

    def _repr_html_(self) -> str:
        return contacts(f"{repr(self)[1:-1]}, energy {self.energy:.6g} J", self.solution)
