"""Words and numbers on the page of the browser viewer. Names of bodies are not trusted to be harmless."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from stiction.solutions.contact import Mode
from stiction.viewer.forces import LOOKS, rows, strongest_first
from stiction.viewer.keys import KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stiction.stepping.contacts import Contacts
    from stiction.viewer.history import Moment
    from stiction.viewer.session import Session

BOX = "padding: 0 1em 0.5em 1em; font-size: 0.85em; line-height: 1.35"
ALARM = "margin: 0 1em 0.5em 1em; padding: 0.5em; font-size: 0.85em; border: 2px solid #d93a4e"
NOTICE = "margin: 0 1em 0.5em 1em; padding: 0.5em; font-size: 0.85em; border: 2px solid #b87400"
SOON = 0.3  # s: compiling that takes less is not announced
CELL = "padding: 0 0.4em 0 0; text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums"


def status(
    session: Session, moment: Moment, steps_per_second: float, pictures_per_second: float, past: bool = False
) -> str:
    """Time, energy, residual and how fast it runs; what went wrong, above all of it.

    past: the moment is one that was, and the simulation waits
    """
    state = "looking back" if past else "running" if session.playing else "paused"
    rows = [("state", state), ("time", f"{moment.time:.3f} s")]
    contacts = moment.contacts
    if contacts is not None:
        potential, kinetic = moment.energy
        rows.append(("residual", f"{moment.residual:.1e}"))
        rows.append(("energy", f"{potential + kinetic:.5g} J (potential {potential:.5g}, kinetic {kinetic:.3g})"))
        always = (Mode.STICK, Mode.SLIDE)
        counts = {mode: int((contacts.mode == mode).sum()) for mode in Mode if mode != Mode.OPEN}
        words = [f"{count} {mode.name.lower()}" for mode, count in counts.items() if count or mode in always]
        rows.append(("contacts", f"{len(contacts)}: {', '.join(words)}"))
    pace = steps_per_second * session.simulation.model.opt.timestep
    rows.append(
        ("pace", f"{steps_per_second:.0f} steps/s, {pace:.2f} × real time, {pictures_per_second:.0f} pictures/s")
    )
    return alarm(session.failure) + lines(rows, "stiction-status")


def lines(rows: Iterable[tuple[str, str]], name: str) -> str:
    """Names and what they are, one below the other."""
    body = "<br>".join(
        f"<strong>{escape(each)}</strong> <span data-{each.replace(' ', '-')}>{escape(text)}</span>"
        for each, text in rows
    )
    return f'<div id="{name}" style="{BOX}">{body}</div>'


def remark(text: str, name: str) -> str:
    return f'<div id="{name}" style="{BOX}; overflow-wrap: anywhere">{escape(text)}</div>' if text else ""


def alarm(failure: str | None) -> str:
    if failure is None:
        return ""
    advice = "Nothing has moved. Choose another solver or law, reset, or press Play to try again."
    text = f"<strong>The step failed.</strong> {escape(failure)}<br>{advice}"
    return f'<div id="stiction-failure" role="alert" style="{ALARM}">{text}</div>'


def notice(seconds: float, kernels: int) -> str:
    """While kernels are compiled; nothing if none are."""
    if seconds < SOON:
        return ""
    words = (
        f"<strong>Compiling kernels</strong> for {seconds:.0f} s ({kernels} so far). This is done once; "
        "the simulation goes on when it is ready, and you can look around meanwhile."
    )
    return f'<div id="stiction-notice" role="status" style="{NOTICE}">{words}</div>'


def key_table() -> str:
    body = "".join(f"<tr>{left(key.shown)}{left(key.words)}</tr>" for key in KEYS)
    more = "Drag a body to pull it; drag beside it to turn the view. Ctrl+K lists all commands."
    return f'<div style="{BOX}"><table>{body}</table>{more}</div>'


def legend() -> str:
    text = "; ".join(f"{look.symbol} {mode.name.lower()}: {look.words}" for mode, look in LOOKS.items())
    return f'<div style="{BOX}">{escape(text)}</div>'


def table(contacts: Contacts | None, most: int = 40) -> str:
    """The contacts of a step, the strongest first, each with its number from 1."""
    if contacts is None or not len(contacts):
        return f'<div id="stiction-contacts" style="{BOX}">nothing touches</div>'
    head = "".join(
        f'<th style="{CELL}">{each}</th>' for each in ("#", "bodies", "mode", "normal [N]", "friction", "gap [m]")
    )
    body = "".join(
        f"<tr>{right(str(number + 1))}{left(pair)}{left(mode)}{right(f'{normal:.4g}')}{right(f'{friction:.4g}')}"
        f"{right(f'{gap:.1e}')}</tr>"
        for number, (pair, mode, normal, friction, gap) in zip(
            strongest_first(contacts, most), rows(contacts, most), strict=True
        )
    )
    more = f"<p>and {len(contacts) - most} more</p>" if len(contacts) > most else ""
    whole = f'<table style="font-size: 0.92em"><tr>{head}</tr>{body}</table>{more}'
    return f'<div id="stiction-contacts" style="{BOX}; overflow-x: auto">{whole}</div>'


def left(text: str) -> str:
    return f'<td style="{CELL}; text-align: left">{escape(text)}</td>'


def right(number: str) -> str:
    return f'<td style="{CELL}">{number}</td>'
