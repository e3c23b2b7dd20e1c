"""Keys of the page, those of MuJoCo's own viewer where it has one for the purpose."""

from __future__ import annotations

from typing import NamedTuple


class Key(NamedTuple):
    """A key: its name in viser and on a keyboard, what it does in words, and that action's name in the code."""

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
# What viser leaves without a name for those who do not see it, sliders and the numbers beside them, gets that of its
# row; heads of folders, which it leaves to the mouse, are reached with Tab and opened like buttons.
SCRIPT = """<script>addEventListener("DOMContentLoaded", () => {
  let tabbed = false;
  const leave = () => document.activeElement.blur();
  document.body.addEventListener("pointerdown", () => { tabbed = false; }, true);
  document.body.addEventListener("keydown", (event) => {
    if (event.key === "Tab") tabbed = true;
    const at = document.activeElement;
    const pressed = tabbed && [" ", "Enter"].includes(event.key) && at.matches("button, a, [role=button]");
    const moved = /^(Arrow|Home|End|Page)/.test(event.key) && at.matches("[role=slider]");
    if (pressed || moved) event.stopPropagation();
    if (pressed && at.dataset.head) {
      event.preventDefault();
      at.click();
    }
    if (event.key === "Enter" && at.matches("input")) setTimeout(leave);
  });
  document.body.addEventListener("click", (event) => {
    if (!event.detail || !event.target.closest("[role=option], [type=checkbox], button")) return;
    leave();
    setTimeout(leave);
  });
  const complete = () => {
    for (const slider of document.querySelectorAll(".mantine-Slider-root[id]:not([data-named])")) {
      const label = document.querySelector(`label[for="${slider.id}"]`), row = label?.closest(".mantine-Flex-root");
      if (!row) continue;
      slider.dataset.named = "true";
      for (const each of row.querySelectorAll("[role=slider], input")) each.ariaLabel = label.textContent.trim();
    }
    for (const head of document.querySelectorAll(".mantine-Paper-root > .mantine-Paper-root:not([data-head])")) {
      if (head.style.cursor !== "pointer") continue;
      head.dataset.head = "true";
      head.role = "button";
      head.tabIndex = 0;
    }
  };
  new MutationObserver(complete).observe(document.body, { childList: true, subtree: true });
});</script>"""
