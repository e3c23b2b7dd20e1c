"""How time grows with the number of contacts, on pegs: one body, n contacts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from kernels import kernel
from measure import TOLERANCE, Contestant, Table, aims_of, at_most, duration, exponent, judged, ours

import stiction as st
from stiction.problems.zoo.contact_families import peg

PEGS = (64, 128, 256, 512)
MANY = (100, 1000, 10000)


def pegs(quick: bool) -> list[Table]:
    seeds = 2 if quick else 15
    pyramid, cone, bound = st.Coulomb(facets=8), st.Coulomb(), st.NoSlip()
    tables = [
        growth("CellLemke, 8 facets: kernel", kernel(st.CellLemke(), law=pyramid), PEGS, seeds, 1.0),
        growth("ConeNewton: kernel", kernel(st.ConeNewton(), law=cone), PEGS, seeds, None),
        growth("PrincipalPivot, no slip: kernel", kernel(st.PrincipalPivot(), law=bound), MANY, seeds, 1.0),
        growth("PrincipalPivot, no slip: solve", ours(st.PrincipalPivot(), law=bound), MANY, seeds, None),
    ]
    return [*tables, aims_of(tables)]


def growth(title: str, contestant: Contestant, sizes: Sequence[int], seeds: int, wanted: float | None) -> Table:
    """Seeds and sizes in turn; of each problem the least of several times, since what slows one is the machine."""
    least = np.full((len(sizes), seeds), np.inf)
    residual = np.zeros((len(sizes), seeds))
    for seed in range(seeds):
        problems = [contestant.posed(peg(n, seed)) for n in sizes]
        for repeat in range(6):
            for k, problem in enumerate(problems):
                spent, answer = timed(contestant, problem)
                if repeat == 0:  # compiles and warms up
                    residual[k, seed] = judged(problem, answer)
                else:
                    least[k, seed] = min(least[k, seed], spent)
    typical = np.median(least, axis=1)
    rows = [
        (str(n), duration(t), duration(t / n), f"{100 * np.mean(r <= TOLERANCE):.0f} %", f"{r.max():.0e}")
        for n, t, r in zip(sizes, typical.tolist(), residual, strict=True)
    ]
    power = exponent(sizes, typical)
    numbers = {"sizes": list(sizes), "seconds": typical.tolist(), "exponent": power}
    what = f"{title}, pegs of {sizes[0]} to {sizes[-1]} contacts: exponent of growth"
    aims = () if wanted is None else (at_most(what, wanted, power),)
    columns = ("contacts", "median", "a contact", "solved", "worst residual")
    notes = [f"Time grows as the number of contacts to the power {power:.2f}."]
    return Table(f"Growth on pegs, {seeds} problems a size: {title}", columns, rows, notes, numbers, aims)


def timed(contestant: Contestant, problem: Any) -> tuple[float, Any]:
    solve = contestant.prepare(problem)
    begin = time.perf_counter()
    answer = solve()
    return time.perf_counter() - begin, answer
