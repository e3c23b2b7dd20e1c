"""The tables of the overview of measurements, made of those in `benchmarks/results` and of nothing else."""

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


CLAIMS, END_OF_CLAIMS = "<!-- claims -->\n", "<!-- end of claims -->\n"


def with_claims(page: str, results: Path) -> str:
    """A page with the claims of these results between its marks."""
    head, _, rest = page.partition(CLAIMS)
    return f"{head}{CLAIMS}{claims(results)}{END_OF_CLAIMS}{rest.partition(END_OF_CLAIMS)[2]}"


def claims(results: Path) -> str:
    """Three, each with one number and where it was measured."""
    scenes, pyramids = rows_of(results, "engines"), rows_of(results, "pyramid")
    held, soft = scenes["pinched capsule"]["ours"], scenes["pinched capsule"]["MuJoCo, pyramids"]
    solved = {
        words: sum(share(race[name]) for race in pyramids.values())
        for words, name in SOLVERS.items()
        if all(name in race for race in pyramids.values())
    }
    peers = {words: count for words, count in solved.items() if words not in OURS}
    next_best = max(peers, key=lambda words: peers[words])
    told = [
        ("What is held stays held.",
         f"A pinched capsule drifts at {held['drift [m/s]']} m/s, at {soft['drift [m/s]']} m/s in MuJoCo as it comes",
         "whole scenes", "engines"),
        ("Solved means solved.",
         f"{solved[OURS[0]]} of {20 * len(pyramids)} friction problems of the papers are solved to 1e-8, "
         f"{peers[next_best]} by the next best, {next_best.replace(', ', chr(39) + 's ')}",
         "friction pyramids", "pyramid"),
        ("In real time.",
         "A certified step of a grasp with 36 contacts takes "
         f"{scenes['grasp, 36 contacts']['ours']['a step, median']} on one core",
         "whole scenes", "engines"),
    ]  # fmt: skip
    return "".join(
        f"- **{head}** {words}\n  ([measured on {where}](docs/performance/{page}.md)).\n"
        for head, words, where, page in told
    )


OURS = ("stiction, all of it", "the method alone")


def share(row: Row) -> int:
    """How many of 20 problems were solved."""
    return round(20 * float(row["solved"].removesuffix(" %")) / 100.0)


def rows_of(results: Path, suite: str) -> dict[str, dict[str, Row]]:
    """By race and contestant."""
    found = {}
    for path in sorted(results.glob(f"{suite}-*.csv"), key=lambda path: int(path.stem.rpartition("-")[2])):
        with path.open(newline="", encoding="utf-8") as file:
            (title,), head, *rows = csv.reader(file)
        if head[0] in ("contestant", "engine"):
            named = {row[0]: dict(zip(head, row, strict=True)) for row in rows if len(row) == len(head)}
            found[title.partition(": ")[2]] = named
    return found


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
    for race, found in rows_of(results, suite).items():
        cells = [cell(found[name]) if name in found else "not installed" for name in columns.values()]
        lines.append(f"| {race} | {' | '.join(cells)} |")
    return lines
