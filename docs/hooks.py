"""What pages show of the code itself, made when the site is built: the table of solvers, the gallery of examples."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

SOLVERS, GALLERY = "<!-- solvers -->", "<!-- gallery -->"
DOCS = Path(__file__).parent


def on_page_markdown(markdown: str, **_: Any) -> str:
    for mark, made in ((SOLVERS, solver_table), (GALLERY, gallery)):
        if mark in markdown:
            markdown = markdown.replace(mark, made())
    return markdown


def gallery() -> str:
    """A section an example: its docstring, its clip or picture, its code."""
    sections = []
    for example in sorted((DOCS.parent / "examples").glob("*.py")):
        code = example.read_text(encoding="utf-8")
        headline, _, rest = (ast.get_docstring(ast.parse(code)) or "").partition("\n")
        clip, picture = (f"images/gallery/{example.stem}{suffix}" for suffix in (".mp4", ".svg"))
        shown = ""
        if (DOCS / clip).exists():
            shown = f'<video src="../{clip}" width="480" height="270" autoplay loop muted playsinline></video>\n'
        elif (DOCS / picture).exists():
            shown = f"![{headline}]({picture})\n"
        name = example.stem.replace("_", " ").capitalize()
        source = f'??? note "examples/{example.name}"\n\n    ```{{.py}}\n' + "".join(
            f"    {line}\n" if line else "\n" for line in code.splitlines()
        )
        sections.append(f"## {name}\n\n**{headline}**\n{rest}\n\n{shown}\n{source}    ```\n")
    return "\n".join(sections)


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
