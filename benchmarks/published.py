"""The published problems, one row each: textbook LCPs by everybody who takes them, and contact on the circular cone.

There ours stands beside Siconos' nonsmooth Gauss–Seidel.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import siconos_peer
from measure import TOLERANCE, Contestant, Table, Timed, attempt, duration, judged, ours, unseen
from peers import available, drake, quantecon

import stiction as st
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
    peer = siconos_peer.gauss_seidel() if siconos_peer.worker() else None
    rows: list[tuple[str, ...]] = []
    solved = {"ours": 0, "theirs": 0}
    published = contact_classics()
    names = list(published)[:: 8 if quick else 1]
    for name in names:
        problem = published[name].with_law(st.Coulomb())
        seconds, residual = best(lambda posed: lambda: st.solve(posed, throw=False).impulse, problem)
        row = [name, str(problem.n), duration(seconds), f"{residual:.0e}"]
        solved["ours"] += residual <= TOLERANCE
        if peer is not None:
            their_seconds, their_residual = best(peer.prepare, problem)
            solved["theirs"] += their_residual <= TOLERANCE
            row += [duration(their_seconds), f"{their_residual:.0e}", f"{their_seconds / seconds:.3g}"]
        rows.append(tuple(row))
    columns = ["problem", "contacts", "ours", "residual"]
    counts = [f"ours {solved['ours']} of {len(names)}"]
    if peer is not None:
        columns += [peer.name, "residual", f"{peer.name} / ours"]
        counts.append(f"{peer.name} {solved['theirs']}")
    note = f"Solved to {TOLERANCE:.0e}: {', '.join(counts)}. Best of three; ours is `st.solve`, certificate and all."
    if peer is None:
        note += " Siconos is not installed here."
    return Table("Published contact problems, circular cone", columns, rows, [note])


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
