"""What the page of the browser viewer says in words and numbers. Names of bodies are not trusted to be harmless."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from stiction.solutions.contact import Mode
from stiction.viewer.forces import LOOKS, rows

if TYPE_CHECKING:
    from stiction.stepping.contacts import Contacts
    from stiction.viewer.session import Session

BOX = "padding: 0 1em 0.5em 1em; font-size: 0.85em; line-height: 1.35"
ALARM = "margin: 0 1em 0.5em 1em; padding: 0.5em; font-size: 0.85em; border: 2px solid #b00020; color: #b00020"
CELL = "padding: 0 0.4em 0 0; text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums"


def status(session: Session, contacts: Contacts | None, steps_per_second: float, pictures_per_second: float) -> str:
    """Time, energy, residual and how fast it runs; what went wrong, above all of it."""
    simulation = session.simulation
    report = simulation.report
    lines = [("state", "running" if session.playing else "paused"), ("time", f"{simulation.time:.3f} s")]
    if report is not None:
        lines.append(("residual", f"{report.certificate.residual:.1e}"))
        lines.append(
            ("energy", f"{report.energy:.5g} J (potential {report.potential:.5g}, kinetic {report.kinetic:.3g})")
        )
    if contacts is not None:
        sticking, sliding = (int((contacts.mode == mode).sum()) for mode in (Mode.STICK, Mode.SLIDE))
        lines.append(("contacts", f"{len(contacts)}: {sticking} stick, {sliding} slide"))
    pace = steps_per_second * simulation.model.opt.timestep
    lines.append(
        ("pace", f"{steps_per_second:.0f} steps/s, {pace:.2f} × real time, {pictures_per_second:.0f} pictures/s")
    )
    body = "<br>".join(f"<strong>{name}</strong> <span data-{name}>{escape(text)}</span>" for name, text in lines)
    return alarm(session.failure) + f'<div id="stiction-status" style="{BOX}">{body}</div>'


def alarm(failure: str | None) -> str:
    if failure is None:
        return ""
    advice = "Nothing has moved. Choose another solver or law, reset, or press Play to try again."
    told = f"<strong>The step failed.</strong> {escape(failure)}<br>{advice}"
    return f'<div id="stiction-failure" role="alert" style="{ALARM}">{told}</div>'


def busy() -> str:
    """While the first step under another law or solver is made, which compiles it if that was never done before."""
    return f'<div id="stiction-status" style="{BOX}">switching … (what was never used before is compiled first)</div>'


def legend() -> str:
    told = "; ".join(f"{look.symbol} {mode.name.lower()}: {look.words}" for mode, look in LOOKS.items())
    return f'<div style="{BOX}">{escape(told)}</div>'


def table(contacts: Contacts | None, most: int = 40) -> str:
    """The contacts of the last step, the strongest first."""
    if contacts is None or not len(contacts):
        return f'<div id="stiction-contacts" style="{BOX}">nothing touches</div>'
    head = "".join(
        f'<th style="{CELL}">{each}</th>' for each in ("bodies", "mode", "normal [N]", "friction", "gap [m]")
    )
    body = "".join(
        f"<tr>{left(pair)}{left(mode)}{right(f'{normal:.4g}')}{right(f'{friction:.4g}')}{right(f'{gap:.1e}')}</tr>"
        for pair, mode, normal, friction, gap in rows(contacts, most)
    )
    more = f"<p>and {len(contacts) - most} more</p>" if len(contacts) > most else ""
    return (
        f'<div id="stiction-contacts" style="{BOX}; overflow-x: auto"><table><tr>{head}</tr>{body}</table>{more}</div>'
    )


def left(text: str) -> str:
    return f'<td style="{CELL}; text-align: left">{escape(text)}</td>'


def right(number: str) -> str:
    return f'<td style="{CELL}">{number}</td>'
