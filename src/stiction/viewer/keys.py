"""Keys of the page, those of MuJoCo's own viewer where it has one for the purpose."""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    """A key as viser names it and as people do, what it does, and what it is called in the code."""

    name: str
    shown: str
    words: str
    action: str


KEYS = (
    Key("space", "Space", "Play, pause", "play"),
    Key("arrowright", "→", "One step on", "forward"),
    Key("arrowleft", "←", "Back by one moment", "backward"),
    Key("end", "End", "Back to now", "now"),
    Key("backspace", "Backspace", "Reset", "reset"),
    Key("F", "F", "Contact forces", "forces"),
    Key("C", "C", "Friction cones of all contacts", "cones"),
    Key("arrowup", "↑", "Faster", "faster"),
    Key("arrowdown", "↓", "Slower", "slower"),
)

# Space and Enter press a button that was reached with Tab, and arrows move a slider that has the focus, as everywhere:
# such keys stay there. What was clicked gives the focus back, since keys in a field are no commands for viser.
SCRIPT = """<script>addEventListener("DOMContentLoaded", () => {
  document.body.addEventListener("keydown", (event) => {
    const at = document.activeElement;
    const pressed = [" ", "Enter"].includes(event.key) && at.matches("button:focus-visible, a:focus-visible");
    const moved = /^(Arrow|Home|End|Page)/.test(event.key) && at.matches("[role=slider]");
    if (pressed || moved) event.stopPropagation();
    if (event.key === "Enter" && at.matches("input")) setTimeout(() => at.blur());
  });
  document.body.addEventListener("click", (event) => {
    if (event.detail && event.target.closest("[role=option], [type=checkbox], button"))
      setTimeout(() => document.activeElement.blur());
  });
});</script>"""
