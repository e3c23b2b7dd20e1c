"""What pages show of the code itself, made when the site is built: the table of solvers, the gallery of examples."""

from __future__ import annotations

import ast
from html import escape
from pathlib import Path
from typing import Any

SOLVERS, GALLERY, SCENES = "<!-- solvers -->", "<!-- gallery -->", "<!-- scenes -->"
DOCS = Path(__file__).parent
PICTURES = DOCS.parent / "src" / "stiction" / "viewer" / "gallery"


def on_page_markdown(markdown: str, **_: Any) -> str:
    for mark, made in ((SOLVERS, solver_table), (GALLERY, gallery), (SCENES, scenes)):
        if mark in markdown:
            markdown = markdown.replace(mark, made())
    return markdown


def on_files(files: Any, config: Any) -> Any:
    """Pictures of the scenes come with the package; the site shows the same files."""
    from mkdocs.structure.files import File

    for picture in sorted(PICTURES.glob("*.webp")):
        files.append(File.generated(config, f"images/scenes/{picture.name}", abs_src_path=str(picture)))
    return files


def scenes() -> str:
    """A card a scene: its picture, its name as the command line knows it, and what it is."""
    import inspect

    from stiction.scenes import SCENES as KNOWN

    cards = []
    for name, make in KNOWN.items():
        words = " ".join((inspect.getdoc(make) or "").split("\n\n")[0].split())
        picture = (
            f'<img src="../images/scenes/{name}.webp" alt="{escape(words)}" width="240" height="160" loading="lazy">'
        )
        cards.append(f"<figure>{picture}<figcaption><code>{name}</code><br>{escape(words)}</figcaption></figure>")
    return f'<div class="scenes">{"".join(cards)}</div>'


def gallery() -> str:
    """A section an example: its docstring, its clip or picture, its code."""
    sections = []
    for example in sorted((DOCS.parent / "examples").glob("*.py")):
        code = example.read_text(encoding="utf-8")
        headline, _, rest = (ast.get_docstring(ast.parse(code)) or "").partition("\n")
        clip, picture = (f"images/gallery/{example.stem}{suffix}" for suffix in (".mp4", ".svg"))
        shown = ""
        if (DOCS / clip).exists():
            size = 'width="480" height="270"'
            shown = f'<video src="../{clip}" {size} aria-label="{escape(headline)}" controls loop muted></video>\n'
        elif (DOCS / picture).exists():
            shown = f"![{headline}]({picture})\n"
        name = example.stem.replace("_", " ").capitalize()
        source = f'??? note "examples/{example.name}"\n\n    ```{{.py}}\n' + "".join(
            f"    {line}\n" if line else "\n" for line in code.splitlines()
        )
        sections.append(f"### {name}\n\n**{headline}**\n{rest}\n\n{shown}\n{source}    ```\n")
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
