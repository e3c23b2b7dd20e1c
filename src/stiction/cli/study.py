"""`stiction study`: published experiments, repeated."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from stiction.cli.output import FAILED, say, tell

HELP = """Repeat the experiments of the papers: list, run, check, plot, report.

**Examples**

    stiction study list
    stiction study check --quick
    stiction study plot lacoursiere2003 --out results
"""
app = App(name="study", help=HELP, help_format="markdown", sort_key=9)

Name = Annotated[str, Parameter(help="Of a study; `stiction study list` lists them.")]
Some = Annotated[str | None, Parameter(help="Of a study; all if none is named.", show_default=False)]
Quick = Annotated[bool, Parameter(help="Fewer and smaller problems.", negative="", show_default=False)]
Out = Annotated[Path, Parameter(help="Folder in which results are kept.")]
On = Annotated[str, Parameter(help="`here`, `cores` or `ray`: where problems of many seeds run that are not timed.")]
Workers = Annotated[int | None, Parameter(help="How many, by default one for each processor.", show_default=False)]
FOLDER = Path("studies")


@app.command(name="list")
def list_() -> None:
    """List the studies."""
    from stiction.studies import commands

    for name, headline in commands.available().items():
        say(f"{name}  {headline}")


@app.command
def run(
    name: Some = None, /, *, quick: Quick = False, out: Out = FOLDER, on: On = "here", workers: Workers = None
) -> None:
    """Run a study anew and keep its results."""
    from stiction.studies import commands

    for each in chosen(name):
        tell(f"running {each}")
        say(str(commands.run(each, quick, out, on, workers)))


@app.command
def check(name: Some = None, /, *, quick: Quick = False, out: Out = FOLDER) -> int:
    """Compare what was found with what the paper claims.

    Exit status 1 if a claim came out otherwise than the study documents, unless it rests on times. Studies without
    results are run first.
    """
    from stiction.studies import commands

    surprises = 0
    for each in chosen(name):
        claims = commands.check(each, quick, out)
        say(each)
        for claim in claims:
            say(f"  {claim}")
            surprises += claim.surprising
    if surprises:
        tell(f"{surprises} claims came out otherwise than documented")
    return FAILED if surprises else 0


@app.command
def plot(name: Some = None, /, *, quick: Quick = False, out: Out = FOLDER) -> None:
    """Draw the figures of a study."""
    from stiction.studies import commands

    for each in chosen(name):
        for path in commands.plot(each, quick, out):
            say(str(path))


@app.command
def report(*, quick: Quick = False, out: Out = FOLDER) -> None:
    """Write one page about all studies."""
    from stiction.studies import commands

    say(str(commands.report(quick, out)))


def chosen(name: str | None) -> list[str]:
    from stiction.studies import commands

    return list(commands.available()) if name is None else [name]
