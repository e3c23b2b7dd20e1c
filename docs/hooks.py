"""The solver table of which-solver.md, made from the solvers' own contracts when the site is built."""

from __future__ import annotations

from typing import Any

MARK = "<!-- solvers -->"


def on_page_markdown(markdown: str, **_: Any) -> str:
    return markdown.replace(MARK, solver_table()) if MARK in markdown else markdown


def solver_table() -> str:
    """One row a solver."""
    from stiction.solvers import ALL, Auto

    rows = [
        "| Solver | Matrix it takes | Bounds | Contact | Warm start | What it guarantees | Cost | Choose it when |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for solver in (Auto, *ALL):
        c = solver.contract
        size = "" if c.largest is None else f", n ≤ {c.largest}"
        cells = [
            f"[`{solver.__name__}`](api/solvers.md#{solver.__module__}.{solver.__name__})",
            "none" if c.matrix == "contact" else c.matrix + size,
            "yes" if c.boxes and c.matrix != "contact" else "no",
            ", ".join(c.laws) or "none",
            "yes" if c.warm else "no",
            c.guarantee,
            c.cost,
            c.choose,
        ]
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(rows)
