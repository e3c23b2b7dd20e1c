"""The claims of a paper, and the findings."""

from __future__ import annotations

from typing import Any, NamedTuple


class Claim(NamedTuple):
    """One statement of a paper, put to the test.

    name: the statement
    holds: whether it came out
    found: the numbers that decide it
    documented: the study's own account; False marks a departure from the paper that the study explains
    printed: the paper's own number or words
    why: the explanation, where it does not hold
    timed: whether it rests on times, which another machine may decide otherwise
    """

    name: str
    holds: bool
    found: str
    documented: bool = True
    printed: str = ""
    why: str = ""
    timed: bool = False

    @property
    def surprising(self) -> bool:
        """Whether it came out otherwise than documented, and no clock is to blame."""
        return self.holds != self.documented and not self.timed

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "does not hold"
        printed = f" (printed: {self.printed})" if self.printed else ""
        return f"{verdict:13}  {self.name}: {self.found}{printed}{self.remark()}"

    def remark(self) -> str:
        if self.holds == self.documented:
            return ""
        return "  (by these times; not as documented)" if self.timed else "  (not as documented)"


class Statement(NamedTuple):
    """A claim before the test; one with a reason why it fails is a departure that the study documents."""

    name: str
    printed: str = ""
    why: str = ""
    timed: bool = False

    def found(self, holds: Any, numbers: str) -> Claim:
        return Claim(self.name, bool(holds), numbers, not self.why, self.printed, self.why, self.timed)
