"""The published problems, one row each: textbook LCPs by everybody who takes them, and contact on the circular cone.

There ours stands beside Siconos' nonsmooth Gauss–Seidel, Newton's method and ADMM. `python benchmarks/published.py DIR`
prints the same table for the contact problems among the files of a folder.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import siconos_peer
from measure import TOLERANCE, Contestant, Table, Timed, attempt, duration, judged, ours, unseen
from peers import available, drake, quantecon

import stiction as st
from stiction.errors import UnsymmetricMatrix
from stiction.problems.zoo.classics import classics
from stiction.problems.zoo.contact_classics import contact_classics


def problems(quick: bool) -> list[Table]:
    return [textbook(quick), contact(quick)]


def textbook(quick: bool) -> Table:
    """LCPs; what proves that there is no answer counts as an answer where there is none."""
    contestants = [ours(st.Auto(), "ours"), ours(st.Lemke(), "our Lemke"), *rivals()]
    solved, rows = dict.fromkeys((c.name for c in contestants), 0), []
    chosen = list(classics().items())[:: 4 if quick else 1]
    for name, classic in chosen:
        cells = []
        for contestant in contestants:
            seconds, residual = best(contestant.prepare, classic.problem)
            right = residual <= TOLERANCE
            if not right and contestant.name.startswith("our"):
                found = st.solve(classic.problem, st.Auto() if contestant.name == "ours" else st.Lemke(), throw=False)
                right = found.status == st.Status.NO_SOLUTION or (found.ray is not None and found.ray.infeasible)
            solved[contestant.name] += right
            cells.append(
                duration(seconds) if right else "no answer" if np.isinf(residual) else f"off by {residual:.0e}"
            )
        rows.append((name, str(classic.problem.n), *cells))
    counts = ", ".join(f"{name} {count}" for name, count in solved.items())
    note = f"Solved to {TOLERANCE:.0e}, or proved to have no solution, of {len(chosen)}: {counts}. Best of three times."
    return Table("Published complementarity problems", ("problem", "n", *solved), rows, [note])


def rivals() -> list[Contestant]:
    found = []
    if available("quantecon"):
        found.append(quantecon())
    if available("pydrake"):
        found += [drake("UnrevisedLemkeSolver"), drake("MobyLcpSolver")]
    if siconos_peer.worker():
        found.append(siconos_peer.lemke())
    return found


def contact(quick: bool) -> Table:
    published = contact_classics()
    named = {name: published[name].with_law(st.Coulomb()) for name in list(published)[:: 8 if quick else 1]}
    return beside_siconos("Published contact problems, circular cone", named)


def beside_siconos(title: str, problems: dict[str, Any]) -> Table:
    """One row a problem: ours, then each method of Siconos, with its residual by our judge."""
    peers = [siconos_peer.on_the_cone(method) for method in siconos_peer.METHODS] if siconos_peer.worker() else []
    solved, rows = dict.fromkeys(["ours", *(peer.name for peer in peers)], 0), []
    for name, problem in problems.items():
        row = [name, str(problem.n)]
        for who in (ours(st.Auto(), "ours"), *peers):
            seconds, residual = best(who.prepare, problem)
            solved[who.name] += residual <= TOLERANCE
            row += [duration(seconds) if np.isfinite(residual) else "no answer", f"{residual:.0e}"]
        rows.append(tuple(row))
    columns = ["problem", "contacts", *(each for name in solved for each in (name, "residual"))]
    counts = ", ".join(f"{name} {count}" for name, count in solved.items())
    note = (
        f"Solved to {TOLERANCE:.0e}, of {len(rows)}: {counts}. Best of three; ours is `st.solve`, certificate and all."
    )
    if peers:
        most = ", ".join(f"{count:,} of {method}" for method, count in siconos_peer.METHODS.items())
        note += f" Siconos aims at {siconos_peer.ACCURACY:.0e} with at most so many iterations: {most}."
    else:
        note += " Siconos is not installed here."
    return Table(title, columns, rows, [note])


def best(prepare: Any, problem: Any) -> tuple[float, float]:
    """The least of three times (after one that compiles), and the residual."""
    seconds, residual = [], np.inf
    for _ in range(4):
        solve = prepare(unseen(problem))
        begin = time.perf_counter()
        answer = attempt(solve)
        seconds.append(time.perf_counter() - begin)
        if isinstance(answer, Timed):
            seconds[-1], answer = answer
        if answer is not None:
            residual = judged(problem, answer)
        if len(seconds) > 1 and seconds[-1] > 5.0:
            break
    return min(seconds[1:] or seconds), residual


def in_folder(folder: Path) -> Table:
    """Contact problems with two tangents each among the files of a folder."""
    warnings.simplefilter("ignore", UnsymmetricMatrix)
    found = {}
    for path in sorted(each for each in folder.rglob("*") if each.suffix in (".hdf5", ".dat")):
        problem = st.load(path)
        if isinstance(problem, st.ContactProblem) and problem.rows.shape[1] == 3:
            found[path.stem] = problem
    return beside_siconos("Contact problems of a folder, circular cone", found)


if __name__ == "__main__":
    print(in_folder(Path(sys.argv[1])).markdown())
