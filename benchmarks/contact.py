"""Frictionless contact, n = 150: pivoting methods against one LAPACK solution and against quadratic programming."""

from __future__ import annotations

import peers
from measure import Contestant, Table, ours, race

import stiction as st
from stiction.problems.heaps import frictionless_contact, wall

CONTACTS = 150
SCENES = {
    "heap of 10 bodies (rank about 55, strongly redundant)": lambda seed: frictionless_contact(CONTACTS, seed, 10),
    "heap of 18 bodies (rank about 95)": lambda seed: frictionless_contact(CONTACTS, seed, 18),
    "heap of 40 bodies (full rank)": lambda seed: frictionless_contact(CONTACTS, seed, 40),
    "brick wall (rank about 110, every contact closed)": lambda seed: wall(CONTACTS, seed),
}


def against_lapack(quick: bool) -> list[Table]:
    contestants = [
        peers.lapack(),
        ours(st.CottleDantzig()),
        ours(st.Keller()),
        ours(st.PrincipalPivot()),
        ours(st.Lemke()),
        ours(st.BlockPivot(perturbation=1e-6), "BlockPivot, perturbed"),
    ]
    note = "`numpy.linalg.solve` solves no LCP: it is the time of one linear system of that size."
    tables = scenes(contestants, "numpy.linalg.solve", quick, 15)
    return [Table(t.title, t.columns, t.rows, [note] if t is tables[-1] else (), t.numbers) for t in tables]


def against_quadratic_programming(quick: bool) -> list[Table]:
    """Each peer in both forms, with what it needs to reach a residual of 1e-8, if it can."""
    contestants = [ours(st.CottleDantzig()), ours(st.Keller())]
    if peers.available("quadprog"):
        contestants += [peers.quadprog_dual(1e-10), peers.quadprog_primal()]
    if peers.available("daqp"):
        contestants += [peers.daqp_dual(), peers.daqp_primal()]
    if peers.available("proxsuite"):
        contestants += [peers.proxsuite_dual(1e-10), peers.proxsuite_primal(1e-10)]
    return scenes(contestants, "CottleDantzig", quick, 5)


def scenes(contestants: list[Contestant], reference: str, quick: bool, repeats: int) -> list[Table]:
    seeds = range(2 if quick else 12)
    return [
        race(
            f"Frictionless contact, n = {CONTACTS}: {scene}", [make(s) for s in seeds], contestants, reference, repeats
        )
        for scene, make in SCENES.items()
    ]
