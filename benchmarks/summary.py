"""The tables of the README, made of those in `benchmarks/results` and of nothing else."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path

Row = dict[str, str]

BEGIN, END = "<!-- measured -->\n", "<!-- end of measured -->\n"
SOLVERS = {
    "stiction, all of it": "CellLemke, solve",
    "the method alone": "CellLemke, kernel",
    "quantecon": "quantecon lcp_lemke",
    "Drake, UnrevisedLemke": "Drake UnrevisedLemkeSolver",
    "Drake, Moby": "Drake MobyLcpSolver",
    "Siconos, Lemke": "Siconos Lemke",
}
ENGINES = {
    "stiction": "ours",
    "MuJoCo": "MuJoCo, pyramids",
    "MuJoCo, elliptic": "MuJoCo, elliptic",
    "PyBullet": "PyBullet, impulses",
    "DART": "DART, Dantzig",
}


def renewed(page: str, results: Path) -> str:
    """A page with the tables of these results between its marks."""
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}{tables(results)}{END}{rest.partition(END)[2]}"


def tables(results: Path) -> str:
    solved = table(results, "pyramid", "20 problems each", SOLVERS, share_and_time)
    still = table(results, "engines", "a step, drift", ENGINES, time_and_drift)
    return "\n".join([*solved, "", *still, ""])


def share_and_time(row: Row) -> str:
    return f"{row['solved']}, {row['median']}"


def time_and_drift(row: Row) -> str:
    if row["drift [m/s]"]:
        return f"{row['a step, median']}, {row['drift [m/s]']} m/s"
    return f"{row['a step, median']}, {row['99th percentile']}".removeprefix(", ")  # why there is no more to tell


def table(results: Path, suite: str, first: str, columns: dict[str, str], cell: Callable[[Row], str]) -> list[str]:
    """A line for each race of a suite, with what these contestants did there."""
    lines = [f"| {first} | {' | '.join(columns)} |", f"|---|{'---:|' * len(columns)}"]
    for path in sorted(results.glob(f"{suite}-*.csv"), key=lambda path: int(path.stem.rpartition("-")[2])):
        with path.open(newline="", encoding="utf-8") as file:
            (title,), head, *rows = csv.reader(file)
        if head[0] in ("contestant", "engine"):
            found = {row[0]: dict(zip(head, row, strict=True)) for row in rows if len(row) == len(head)}
            cells = [cell(found[name]) if name in found else "not installed" for name in columns.values()]
            lines.append(f"| {title.partition(': ')[2]} | {' | '.join(cells)} |")
    return lines
