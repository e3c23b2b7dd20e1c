"""Answers as tables in notebooks; names are not trusted to be harmless."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST = 20  # rows


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]], more: int = 0) -> str:
    """HTML with a caption; every cell but the first is a number."""
    top = "".join(f'<th scope="col" style="text-align: {side(c)}">{escape(cell)}</th>' for c, cell in enumerate(head))
    body = "".join(
        "<tr>"
        + "".join(f'<td style="text-align: {side(c)}">{escape(cell)}</td>' for c, cell in enumerate(row))
        + "</tr>"
        for row in rows
    )
    left = f"<p>… and {more} more</p>" if more > 0 else ""
    caption = f'<caption style="text-align: left; caption-side: top">{escape(title)}</caption>'
    return f"<table>{caption}<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>{left}"


def side(column: int) -> str:
    return "left" if column == 0 else "right"


def variables(title: str, z: Any, w: Any) -> str:
    """The table of a complementarity problem."""
    rows = [[str(i), f"{z[i]:.6g}", f"{w[i]:.6g}"] for i in range(min(len(z), MOST))]
    return table(title, ("index", "z", "w = H z + q"), rows, len(z) - MOST)


def contacts(title: str, solution: Any) -> str:
    """The table of a contact problem: impulses and velocities, the strongest first."""
    from stiction.solutions.contact import Mode

    order = np.argsort(-solution.impulse[:, 0], kind="stable")
    rows = []
    for i in order[:MOST]:
        p, u = solution.impulse[i], solution.contact_velocity[i]
        numbers = (p[0], np.hypot(p[1], p[2]), u[0], np.hypot(u[1], u[2]))
        rows.append([f"{i}: {Mode(solution.mode[i]).name.lower()}", *(f"{number:.5g}" for number in numbers)])
    head = ("contact", "normal [N s]", "friction [N s]", "opening [m/s]", "sliding [m/s]")
    return table(title, head, rows, len(order) - MOST)


def counted(modes: Any) -> str:
    """The contacts and their modes in words, as in "4 contacts (3 stick, 1 slide)"."""
    from stiction.solutions.contact import Mode

    found = [f"{int((np.asarray(modes) == mode).sum())} {mode.name.lower()}" for mode in Mode if (modes == mode).any()]
    what = "contact" if len(modes) == 1 else "contacts"
    return f"{len(modes)} {what}" + (f" ({', '.join(found)})" if found else "")


def verdict_words(solution: Any) -> str:
    """Solved by ConeNewton, or what became of it, and the residual."""
    name = type(solution.solver).__name__
    status = "solved" if solution.ok else f"not solved ({solution.status.name.lower().replace('_', ' ')})"
    steps = "1 iteration" if solution.iterations == 1 else f"{solution.iterations} iterations"
    return f"{status} by {name}, {steps}, residual {solution.certificate.residual + 0.0:.1e}"
