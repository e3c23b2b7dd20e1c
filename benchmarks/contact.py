"""Frictionless contact, n = 150: pivoting methods against one LAPACK solution and against quadratic programming.

As an LCP in normal impulses, and as a contact problem, of which the solvers never form that matrix.
"""

from __future__ import annotations

from dataclasses import replace

import peers
from kernels import kernel
from measure import Contestant, Table, aims_of, at_most, faster, ours, race, with_aims

import stiction as st
from stiction.problems.zoo import contact_families
from stiction.problems.zoo.heaps import frictionless_contact, wall

CONTACTS = 150
SCENES = {
    "heap of 10 bodies (rank about 55, strongly redundant)": lambda seed: frictionless_contact(CONTACTS, seed, 10),
    "heap of 18 bodies (rank about 95)": lambda seed: frictionless_contact(CONTACTS, seed, 18),
    "heap of 40 bodies (full rank)": lambda seed: frictionless_contact(CONTACTS, seed, 40),
    "brick wall (rank about 110, every contact closed)": lambda seed: wall(CONTACTS, seed),
}
BODIES = {
    "heap of 19 bodies": lambda seed: contact_families.heap(19, seed),
    "brick wall": lambda seed: contact_families.wall(6, 5, seed),
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
    return [*tables[:-1], replace(tables[-1], notes=[note])]


def without_matrix(quick: bool) -> list[Table]:
    """Baraff's method, and principal pivoting, from masses and rows."""
    contestants = [
        peers.lapack_on_normals(),
        kernel(st.Baraff()),
        kernel(st.PrincipalPivot()),
        ours(st.Baraff(), "Baraff, solve"),
        ours(st.PrincipalPivot(), "PrincipalPivot, solve"),
    ]
    tables = []
    for scene, make in BODIES.items():
        problems = [make(seed).with_law(st.Frictionless()) for seed in range(2 if quick else 12)]
        title = f"Frictionless contact from bodies, n = {problems[0].n}: {scene}"
        table = race(title, problems, contestants, "numpy.linalg.solve", 9)
        ratio = 1.0 / faster(table, "Baraff, kernel", "numpy.linalg.solve")
        tables.append(
            with_aims(table, at_most(f"{scene}, n = {problems[0].n}: Baraff over numpy.linalg.solve", 3.0, ratio))
        )
    return [*tables, aims_of(tables)]


def against_quadratic_programming(quick: bool) -> list[Table]:
    """Each peer in both forms, with what it needs to reach a residual of 1e-8, if it can."""
    contestants = [ours(st.CottleDantzig()), ours(st.Keller())]
    if peers.available("quadprog"):
        contestants += [peers.quadprog_dual(1e-10), peers.quadprog_primal()]
    if peers.available("daqp"):
        contestants += [peers.daqp_dual(), peers.daqp_primal()]
    if peers.available("proxsuite"):
        contestants += [peers.proxsuite_dual(1e-10), peers.proxsuite_primal(1e-10)]
    if peers.available("clarabel"):
        contestants.append(peers.clarabel_dual(1e-12))
    return scenes(contestants, "CottleDantzig", quick, 5)


def scenes(contestants: list[Contestant], reference: str, quick: bool, repeats: int) -> list[Table]:
    seeds = range(2 if quick else 12)
    return [
        race(
            f"Frictionless contact, n = {CONTACTS}: {scene}", [make(s) for s in seeds], contestants, reference, repeats
        )
        for scene, make in SCENES.items()
    ]
