"""One page about all studies: claims with what is printed and what was found, figures, tables, versions and machine.

The page is one HTML file that needs nothing else: figures are inline SVG, and there is neither script nor link to
another place. It is made of stored results only; a study without any is named as not run.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

from stiction import optional
from stiction.disk import written_whole
from stiction.studies import STUDIES
from stiction.studies.claims import Claim
from stiction.studies.results import Plate, Sheet

VERDICTS = {"holds": "Holds", "departs": "Does not hold", "surprise": "Not as documented"}


def report(folder: Path, quick: bool = False) -> Path:
    """Write the page from the results in a folder; where it is."""
    suffix = "-quick" if quick else ""
    sections, summary = [], []
    for name in STUDIES:
        study: Any = import_module(f"stiction.studies.{name}")
        stored = folder / f"{name}{suffix}.npz"
        found = study.Results.load(stored) if stored.exists() else None
        claims = [] if found is None else study.check(found)
        sections.append(section(name, study, found, claims))
        summary.append((name, headline(study), claims))
    path = folder / f"report{suffix}.html"
    with written_whole(path, "study") as part:
        part.write_text(page(summary, sections, quick), encoding="utf-8")
    return path


def page(summary: Sequence[tuple[str, str, Sequence[Claim]]], sections: Iterable[str], quick: bool) -> str:
    every = [claim for _, _, claims in summary for claim in claims]
    rows = []
    for name, text, claims in summary:
        counts = "".join(f"<td>{count}</td>" for count in tallied(claims).values())
        link = f'<a href="#{escape(name)}">{escape(name)}</a><br><small>{code(text)}</small>'
        rows.append(f"<tr><td>{link}</td>" + (counts if claims else '<td colspan="3">not run</td>') + "</tr>")
    counted = tallied(every)
    surprises = f", <b>{counted['surprise']} came out otherwise than documented</b>" if counted["surprise"] else ""
    setting = "quick setting: fewer and smaller problems" if quick else "full setting"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>stiction: studies, {escape(setting.partition(":")[0])}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
<h1>Published experiments, repeated</h1>
<p class="setting">stiction, {escape(setting)}</p>
<p>{len(every)} claims of {len(summary)} studies: <b>{counted["holds"]} hold</b>, <b>{counted["departs"]} do not</b>
and are explained{surprises}. Thresholds such as “near” or “sharp” are ours, fixed in the code of
each study.</p>
<div class="wide">{table(("Study", *VERDICTS.values()), rows, "summary")}</div>
</header>
<main>
{"".join(sections)}</main>
</body>
</html>
"""


def table(heads: Iterable[str], rows: Iterable[str], kind: str = "") -> str:
    """A table of rows that are made already."""
    head = "".join(f'<th scope="col">{code(text)}</th>' for text in heads)
    named = f' class="{kind}"' if kind else ""
    return f"<table{named}><thead><tr>{head}</tr></thead>\n<tbody>{''.join(rows)}</tbody></table>"


def tallied(claims: Iterable[Claim]) -> dict[str, int]:
    """How many claims have each of VERDICTS."""
    found = [verdict(claim) for claim in claims]
    return {kind: found.count(kind) for kind in VERDICTS}


def section(name: str, study: Any, found: Any, claims: Sequence[Claim]) -> str:
    """Everything about one study."""
    parts = [f'<section id="{escape(name)}">\n<h2>{escape(name)}</h2>\n<p class="lead">{code(headline(study))}</p>']
    if found is None:
        parts.append("<p><b>Not run.</b> There are no results of this study in this setting.</p>")
    else:
        parts.append(claim_table(claims))
        for plate in study.figures(found):
            parts.append(drawing(name, plate))
        if hasattr(study, "tables"):
            parts += [sheet_table(sheet) for sheet in study.tables(found)]
    parts.append(f"<details><summary>About this study</summary>\n{prose(study.__doc__ or '')}</details>")
    if found is not None:
        machine = ", ".join(found.environment)
        parts.append(f'<p class="machine">{escape(machine)}; seed {found.seed}.</p>')
    return "\n".join(parts) + "\n</section>\n"


def headline(study: Any) -> str:
    return (study.__doc__ or "").partition("\n")[0]


def verdict(claim: Claim) -> str:
    """Which of VERDICTS."""
    if claim.holds != claim.documented:
        return "surprise"
    return "holds" if claim.holds else "departs"


def claim_table(claims: Sequence[Claim]) -> str:
    rows = []
    for claim in claims:
        kind = verdict(claim)
        came_out = VERDICTS[kind] + (f" ({'holds' if claim.holds else 'does not hold'})" if kind == "surprise" else "")
        why = f'<p class="why">{code(claim.why)}</p>' if claim.why and kind != "holds" else ""
        printed = f'<td data-label="Printed">{code(claim.printed)}</td>' if claim.printed else '<td class="none"></td>'
        rows.append(
            f'<tr class="{kind}"><td class="verdict">{came_out}</td><td>{code(claim.name)}{why}</td>'
            f'<td data-label="Found">{code(claim.found)}</td>{printed}</tr>'
        )
    return table(("Verdict", "Claim", "Found", "Printed"), rows, "claims")


def sheet_table(sheet: Sheet) -> str:
    rows = ("<tr>" + "".join(f"<td>{code(text)}</td>" for text in row) + "</tr>" for row in sheet.rows)
    wide = f'<div class="wide">{table(sheet.head, rows)}</div>'
    return f'<figure class="sheet"><figcaption>{code(sheet.caption)}</figcaption>\n{wide}</figure>'


def drawing(name: str, plate: Plate) -> str:
    return (
        f"<figure>{inline_svg(plate, f'{name}-{plate.name}')}\n<figcaption>{code(plate.caption)}</figcaption></figure>"
    )


def inline_svg(plate: Plate, label: str) -> str:
    """Matplotlib's SVG as a part of a page: no wider than there is room, names of its own, no metadata."""
    file = io.StringIO()
    with optional.matplotlib().rc_context({"svg.hashsalt": label, "svg.fonttype": "path"}):
        plate.figure.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*|<!--.*?-->\s*", "", text, flags=re.DOTALL)
    text = re.sub(r'\s(?:xmlns(?::\w+)?|version)="[^"]*"', "", text)
    root = text[: text.index(">")]
    text = text.replace(root, re.sub(r'\s(?:width|height)="[^"]*"', "", root), 1)
    text = text.replace("xlink:href", "href")
    text = re.sub(r'\bid="([^"]*)"', rf'id="{label}-\1"', text)
    text = re.sub(r'href="#([^"]*)"', rf'href="#{label}-\1"', text)
    text = re.sub(r"url\(#([^)]*)\)", rf"url(#{label}-\1)", text)
    label, width = escape(plate.caption, quote=True), f"{plate.figure.get_figwidth():g}in"
    return text.replace("<svg", f'<svg role="img" aria-label="{label}" style="max-width: {width}"', 1).strip()


def prose(text: str) -> str:
    """A docstring without its headline: paragraphs, indented blocks as they are, lists of what begins with a dash."""
    made = []
    for block in re.split(r"\n\s*\n", text.partition("\n")[2].strip("\n")):
        if not block.strip():
            continue
        if block.startswith("    "):
            made.append(f"<pre>{escape(block)}</pre>")
        elif block.startswith("- "):
            items = re.split(r"\n- ", block[2:])
            made.append("<ul>" + "".join(f"<li>{code(item)}</li>" for item in items) + "</ul>")
        else:
            made.append(f"<p>{code(block)}</p>")
    return "\n".join(made) + "\n"


def code(text: str) -> str:
    """Escaped, with `code` as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=True))


STYLE = """
:root { --ink: #1c1e21; --soft: #5b6168; --line: #d9dce0; --page: #fff; --shade: #f5f6f7;
  --holds: #1b6e3c; --departs: #9a5b00; --surprise: #b3261e; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 66rem; padding: 1.5rem 1.25rem 4rem; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0.5rem 0 0; }
h2 { font-size: 1.4rem; margin: 0; }
a { color: inherit; }
.setting { color: var(--soft); margin: 0.2rem 0 1rem; }
.lead { font-size: 1.1rem; margin: 0.2rem 0 1rem; }
section { border-top: 2px solid var(--ink); margin-top: 3rem; padding-top: 1rem; }
table { border-collapse: collapse; width: 100%; font-size: 0.9rem; }
th { text-align: left; font-weight: 600; vertical-align: bottom; border-bottom: 1px solid var(--ink); }
th, td { padding: 0.4rem 0.7rem 0.4rem 0; }
td { vertical-align: top; border-bottom: 1px solid var(--line); font-variant-numeric: tabular-nums; }
.wide { overflow-x: auto; }
.summary td:not(:first-child), .summary th:not(:first-child) { text-align: right; width: 7rem; }
.summary small { color: var(--soft); }
.claims td:nth-child(2) { width: 42%; }
.verdict { font-weight: 600; white-space: nowrap; }
.verdict::before { content: "✓ "; }
.departs .verdict::before { content: "✗ "; }
.surprise .verdict::before { content: "! "; }
.holds .verdict { color: var(--holds); } .departs .verdict { color: var(--departs); }
.surprise .verdict { color: var(--surprise); white-space: normal; }
.why { color: var(--soft); margin: 0.3rem 0 0; font-size: 0.85rem; }
figure { margin: 2rem 0; break-inside: avoid; }
figure svg { display: block; width: 100%; height: auto; }
figcaption { color: var(--soft); font-size: 0.9rem; margin: 0.4rem 0; max-width: 54rem; }
.sheet table { font-size: 0.8rem; }
.sheet td:not(:first-child), .sheet th:not(:first-child) { text-align: right; }
.sheet td:first-child { white-space: nowrap; }
details { background: var(--shade); padding: 0.6rem 1rem; margin: 2rem 0 1rem; font-size: 0.92rem; }
summary { cursor: pointer; font-weight: 600; }
pre { overflow-x: auto; font: 0.82rem/1.45 ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
code { font: 0.9em ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
.machine { color: var(--soft); font-size: 0.85rem; }
@media (max-width: 44rem) {
  body { padding: 1rem 0.9rem 3rem; }
  .claims thead { display: none; }
  .claims, .claims tbody, .claims tr, .claims td { display: block; width: 100% !important; }
  .claims tr { border-bottom: 1px solid var(--line); padding: 0.7rem 0; }
  .claims td { border: 0; padding: 0.1rem 0; }
  .claims td[data-label]::before { content: attr(data-label) ": "; color: var(--soft); }
  .claims .none { display: none; }
  .summary td:not(:first-child), .summary th:not(:first-child) { width: auto; }
  figure { overflow-x: auto; }
  figure svg { min-width: 34rem; }
}
@media print {
  body { font-size: 10pt; max-width: none; padding: 0; }
  section { break-before: page; border: 0; margin: 0; }
  tr { break-inside: avoid; }
  .wide { overflow: visible; }
  details::details-content { content-visibility: visible; }
  .sheet table { font-size: 7pt; }
}
"""
