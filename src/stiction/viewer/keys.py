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
# such keys stay there. What was clicked gives the focus back, since keys in a field are no commands for viser: at once,
# for browsers that are busy take the next key before a timer, and again when a list that has closed took it back.
SCRIPT = """<script>addEventListener("DOMContentLoaded", () => {
  let tabbed = false;
  const leave = () => document.activeElement.blur();
  document.body.addEventListener("pointerdown", () => { tabbed = false; }, true);
  document.body.addEventListener("keydown", (event) => {
    if (event.key === "Tab") tabbed = true;
    const at = document.activeElement;
    const pressed = tabbed && [" ", "Enter"].includes(event.key) && at.matches("button, a");
    const moved = /^(Arrow|Home|End|Page)/.test(event.key) && at.matches("[role=slider]");
    if (pressed || moved) event.stopPropagation();
    if (event.key === "Enter" && at.matches("input")) setTimeout(leave);
  });
  document.body.addEventListener("click", (event) => {
    if (!event.detail || !event.target.closest("[role=option], [type=checkbox], button")) return;
    leave();
    setTimeout(leave);
  });
});</script>"""
