"""Time, residual and success rate of the solvers, each peer in the same run.

`python benchmarks/run.py` prints all tables, `run.py lemke contact` some of them; `--quick` shows that it runs,
`--markdown` prints Markdown, `--into docs/performance.md` renews the tables and pictures of these suites in that page,
`--results DIR` writes each table as CSV beside the versions, `--json FILE` keeps the numbers.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import platform
import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from measure import Table

ROOT = Path(__file__).resolve().parent.parent
MARK = "<!-- tables -->\n"  # what follows it in a page is made by `--into`
PACKAGES = (
    "numpy", "numba", "mujoco", "quantecon", "quadprog", "daqp", "proxsuite", "clarabel", "drake", "pybullet", "dartpy",
)  # fmt: skip


def prepare_environment() -> None:
    """One thread for all, and kernels compiled for exactly these sources; before NumPy and Numba are imported."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    digest = hashlib.sha256(b"".join(f.read_bytes() for f in sorted((ROOT / "src").rglob("*.py"))))
    os.environ["NUMBA_CACHE_DIR"] = str(ROOT / ".cache" / "numba" / digest.hexdigest()[:16])


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
    import plots
    import published
    import steps
    import warm_start

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
    }
    parser = argparse.ArgumentParser(description="Time, residual and success rate of the solvers and their peers.")
    parser.add_argument("suite", nargs="*", help=f"of {', '.join(suites)}; all if none is named")
    parser.add_argument("--quick", action="store_true", help="fewer problems: to see that it runs")
    parser.add_argument("--markdown", action="store_true", help="tables as Markdown")
    parser.add_argument("--into", type=Path, metavar="PAGE", help=f"renew the tables after {MARK.strip()} in a page")
    parser.add_argument("--results", type=Path, metavar="DIR", help="write every table as CSV, and the versions")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers behind the tables")
    options = parser.parse_args()
    if options.into:
        _, mark, tables_before = options.into.read_text(encoding="utf-8").partition(MARK)
        if not mark:
            parser.error(f"{options.into} has no line {MARK.strip()}")
        if options.suite and "<!-- suite " in tables_before and f"{machine()}.\n" not in tables_before:
            parser.error(f"{options.into} was measured on another machine or with other packages: renew all of it")
    unknown = [name for name in options.suite if name not in suites]
    if unknown:
        parser.error(f"no suite {unknown[0]!r}; there are {', '.join(suites)}")

    print(machine(), end="\n\n")
    tables: list[tuple[str, Table]] = []
    for name in options.suite or suites:
        for table in suites[name](options.quick):
            print(table.markdown() if options.markdown else table.text(), flush=True)
            tables.append((name, table))
    if options.into:
        found = {name: [table.markdown() for suite, table in tables if suite == name] for name, _ in tables}
        for name in found:
            path = plots.draw(name, [table for suite, table in tables if suite == name], options.into.parent / "images")
            if path is not None:
                found[name].insert(0, f"![{plots.PLOTTED[name]}](images/{path.name})\n\n*{plots.PLOTTED[name]}*\n")
        options.into.write_text(renewed(options.into.read_text(encoding="utf-8"), found), encoding="utf-8")
    if options.results:
        keep(options.results, tables)
    if options.json:
        numbers = [{"suite": name, "title": table.title, **table.numbers} for name, table in tables]
        options.json.write_text(json.dumps({"machine": machine(), "tables": numbers}, indent=1))


def renewed(page: str, found: dict[str, list[str]]) -> str:
    """A page with these suites' tables in place of those it has; others stay."""
    head, _, tables = page.partition(MARK)
    blocks = dict(re.findall(r"^<!-- suite (\S+) -->\n(.*?)(?=^<!-- suite |\Z)", tables, re.MULTILINE | re.DOTALL))
    blocks |= {name: "\n" + "\n".join(table.rstrip() + "\n" for table in made) for name, made in found.items()}
    parts = [f"<!-- suite {name} -->\n{block.rstrip()}\n" for name, block in blocks.items()]
    return f"{head}{MARK}\n{machine()}.\n\n" + "\n".join(parts)


def keep(folder: Path, tables: Sequence[tuple[str, Table]]) -> None:
    """One file a table, named for its suite and place; `machine.txt` tells versions and machine."""
    folder.mkdir(parents=True, exist_ok=True)
    for suite in {name for name, _ in tables}:
        for old in folder.glob(f"{suite}-*.csv"):
            old.unlink()
    place: dict[str, int] = {}
    for name, table in tables:
        place[name] = place.get(name, 0) + 1
        with (folder / f"{name}-{place[name]}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([table.title])
            writer.writerows([table.columns, *table.rows])
            writer.writerows([note] for note in table.notes)
    (folder / "machine.txt").write_text(machine() + "\n", encoding="utf-8")


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
