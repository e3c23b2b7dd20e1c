"""Time, residual and success rate of the solvers, each peer in the same run.

`python benchmarks/run.py` prints all tables, `run.py lemke contact` some of them; `--quick` shows that it runs,
`--markdown` prints Markdown, `--into docs/performance` renews the pages of these suites there, with their pictures,
`--results DIR` writes each table as CSV beside the versions, `--overview PAGE` and `--readme PAGE` renew the tables and
claims made of those; `--json FILE` keeps the numbers.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import sys
from difflib import get_close_matches
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import NoReturn

    from measure import Table

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    "numpy", "numba", "mujoco", "quantecon", "quadprog", "daqp", "proxsuite", "clarabel", "drake", "pybullet", "dartpy",
)  # fmt: skip


def prepare_environment() -> None:
    """One thread for all; before NumPy and Numba are imported."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"


class Parser(argparse.ArgumentParser):
    """One that complains in one line, as the other commands do."""

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"bench: {message}\n")
        sys.exit(2)


def nearest(what: str, given: str, known: Iterable[str]) -> str:
    """Message about a name that is not known."""
    known = list(known)
    near = get_close_matches(given, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
    return f"there is no {what} {given!r}; {hint}"


def main() -> None:
    prepare_environment()
    import contact
    import contact_calls
    import contact_starts
    import definite
    import engines
    import friction
    import growth
    import no_slip
    import overhead
    import pages
    import plots
    import published
    import steps
    import summary
    import warm_start

    import derivatives

    suites = {
        "lemke": definite.against_quantecon,
        "contact": contact.against_lapack,
        "quadratic": contact.against_quadratic_programming,
        "block": definite.block_factorizations,
        "warm": warm_start.gains,
        "overhead": overhead.costs,
        "baraff": contact.without_matrix,
        "pyramid": friction.pyramids,
        "cone": friction.cones,
        "box": friction.boxes,
        "heap": friction.heaps,
        "no-slip": no_slip.against_stewart_trinkle,
        "growth": growth.pegs,
        "start": contact_starts.gains,
        "call": contact_calls.overhead,
        "steps": steps.tables,
        "published": published.problems,
        "engines": engines.scenes,
        "derivatives": derivatives.tables,
    }
    parser = Parser(description="Time, residual and success rate of the solvers and their peers.")
    parser.add_argument("suite", nargs="*", help=f"of {', '.join(suites)}; all if none is named")
    parser.add_argument("--quick", action="store_true", help="fewer problems: to see that it runs")
    parser.add_argument("--markdown", action="store_true", help="tables as Markdown")
    parser.add_argument("--into", type=Path, metavar="DIR", help="renew the pages of these suites in a folder")
    parser.add_argument("--results", type=Path, metavar="DIR", help="write every table as CSV, and the versions")
    parser.add_argument("--overview", type=Path, metavar="PAGE", help="renew its tables that are made of results")
    parser.add_argument("--readme", type=Path, metavar="PAGE", help="renew its claims that are made of results")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers behind the tables")
    options, others = parser.parse_known_args()
    if others:
        known = [option for action in parser._actions for option in action.option_strings]
        parser.error(nearest("option", others[0].partition("=")[0], known))
    if options.into and not options.into.is_dir():
        parser.error(f"--into {options.into}: there is no such folder")
    if (options.overview or options.readme) and not options.results:
        parser.error("--overview and --readme need --results DIR, of which their numbers are made")
    unknown = [name for name in options.suite if name not in suites]
    if unknown:
        parser.error(nearest("suite", unknown[0], suites))

    print(machine(), end="\n\n")
    tables: list[tuple[str, Table]] = []
    for name in options.suite or suites:
        made = suites[name](options.quick)
        for table in made:
            print(table.markdown() if options.markdown else table.text(), flush=True)
        tables += [(name, table) for table in made]
        if options.into:  # suite by suite, so that a run that is stopped keeps what it has
            shown = [table.markdown() for table in made]
            picture = plots.draw(name, made, options.into.parent / "images")
            if picture is not None:
                shown.insert(0, f"![{plots.PLOTTED[name]}](../images/{picture.name})\n\n*{plots.PLOTTED[name]}*\n")
            page = options.into / f"{name}.md"
            given = page.read_text(encoding="utf-8") if page.exists() else pages.blank(name)
            page.write_text(pages.renewed(given, machine(), shown), encoding="utf-8")
        if options.results:
            keep(options.results, name, made)
    if options.overview:
        text = options.overview.read_text(encoding="utf-8")
        options.overview.write_text(summary.renewed(text, options.results), encoding="utf-8")
    if options.readme:
        text = options.readme.read_text(encoding="utf-8")
        options.readme.write_text(summary.with_claims(text, options.results), encoding="utf-8")
    if options.json:
        numbers = [{"suite": name, "title": table.title, **table.numbers} for name, table in tables]
        options.json.write_text(json.dumps({"machine": machine(), "tables": numbers}, indent=1))


def keep(folder: Path, suite: str, tables: Sequence[Table]) -> None:
    """One file a table, named for its suite and place; `<suite>.txt` tells versions and machine."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob(f"{suite}-*.csv"):
        old.unlink()
    for place, table in enumerate(tables, 1):
        with (folder / f"{suite}-{place}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([table.title])
            writer.writerows([table.columns, *table.rows])
            writer.writerows([note] for note in table.notes)
    (folder / f"{suite}.txt").write_text(machine() + "\n", encoding="utf-8")


@cache
def machine() -> str:
    """What a reader needs to compare, and nothing that tells whose machine it is."""
    import siconos_peer

    found = [f"{platform.machine()}, {os.cpu_count()} cores, one thread", f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} not installed")
    found.append(f"Siconos {siconos_peer.version() or 'not installed'}")
    return "; ".join(found)


if __name__ == "__main__":
    main()
