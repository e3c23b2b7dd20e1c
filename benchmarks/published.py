"""The published contact problems, one row each, on the circular cone: ours beside Siconos' nonsmooth Gauss–Seidel."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import siconos_peer
from measure import TOLERANCE, Table, Timed, attempt, duration, judged, unseen

import stiction as st
from stiction.problems.contact_classics import contact_classics


def problems(quick: bool) -> list[Table]:
    peer = siconos_peer.gauss_seidel() if siconos_peer.worker() else None
    rows: list[tuple[str, ...]] = []
    solved = {"ours": 0, "theirs": 0}
    classics = contact_classics()
    names = list(classics)[:: 8 if quick else 1]
    for name in names:
        problem = classics[name].with_law(st.Coulomb())
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
    return [Table("Published contact problems, circular cone", columns, rows, [note])]


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
        if seconds[-1] > 5.0:
            break
    return min(seconds[1:] or seconds), residual
