"""The grasp without slip [Drumwright2013, fig. 1]: pivoting against Stewart and Trinkle's LCP with mu = 100."""

from __future__ import annotations

import peers
from friction import assembled
from kernels import kernel
from measure import Contestant, Table, aims_of, at_least, faster, ours, race, with_aims

import stiction as st
from stiction.problems.zoo.contact_families import grasp_tripled

PYRAMID = st.Coulomb(facets=4)
STANDARD, PIVOTING = "Stewart–Trinkle by Lemke, kernel", "PrincipalPivot, kernel"


def against_stewart_trinkle(quick: bool) -> list[Table]:
    contestants = [kernel(st.Lemke(), STANDARD, PYRAMID)]
    if peers.available("quantecon"):
        peer = assembled(peers.quantecon())
        contestants.append(Contestant("Stewart–Trinkle by quantecon lcp_lemke", peer.prepare, law=PYRAMID))
    contestants += [
        kernel(st.CellLemke(), "Stewart–Trinkle by CellLemke, kernel", PYRAMID),
        kernel(st.PrincipalPivot(), PIVOTING, st.NoSlip()),
        ours(st.PrincipalPivot(), "PrincipalPivot, solve", st.NoSlip()),
    ]
    problems = [grasp_tripled(seed) for seed in range(2 if quick else 20)]
    table = race(f"Grasp without slip, 36 contacts, {len(problems)} problems", problems, contestants, STANDARD, 7)
    what = "grasp: no slip by PrincipalPivot, times faster than Stewart–Trinkle by our own Lemke"
    table = with_aims(table, at_least(what, 6.6, faster(table, PIVOTING, STANDARD)))
    return [table, aims_of([table])]
