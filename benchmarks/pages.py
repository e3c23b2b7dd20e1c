"""The pages of the measurements: one for each suite, in `docs/performance`. Words above the mark are kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MARK = "<!-- tables -->\n"  # what follows it in a page is made by `run.py --into`
TITLES = {
    "lemke": ("Lemke's method", "Positive definite problems of three sizes, against quantecon's Lemke."),
    "contact": ("Frictionless contact", "Heaps and walls without friction, beside one linear system of the same size."),
    "quadratic": ("Quadratic programs", "The same contact as a quadratic program, by solvers made for those."),
    "block": ("Block pivoting", "How many factorizations block pivoting needs on definite problems."),
    "warm": ("Warm starts", "What the last answer is worth for the next problem, without friction."),
    "overhead": ("Overhead of a call", "What `st.solve` costs around the method: checks, scaling, certificate."),
    "baraff": ("Baraff's method", "Forces one at a time, without forming a matrix."),
    "pyramid": ("Friction pyramids", "Coulomb friction on pyramids of 4 and 8 facets, against others' Lemke."),
    "cone": ("The circular cone", "Coulomb friction on the true cone, beside pyramids."),
    "box": ("Box friction", "Two bounded directions for each contact."),
    "heap": ("Heaps", "The heap of logs of Lacoursière, step by step."),
    "no-slip": ("Without slip", "Contact that may not slip, against the general method."),
    "growth": ("Growth", "How time grows with the number of contacts."),
    "start": ("Warm starts with friction", "What the last impulses are worth for the next step."),
    "call": ("Overhead with friction", "What a solve of a contact problem costs around the method."),
    "steps": ("Steps", "Whole steps of scenes: what a step costs, and where it goes."),
    "published": ("Published problems", "Problems that others published, from FCLIB and Siconos."),
    "derivatives": ("Derivatives", "Their error against differences, their cost beside the solve, and `linearize`."),
    "engines": ("Whole scenes", "The same scenes by other engines: time, drift, residual, overlap."),
}


def blank(suite: str) -> str:
    """A page before anything is measured."""
    title, sentence = TITLES[suite]
    return f"# {title}\n\n{sentence} [How it is measured](index.md#how-it-is-measured).\n\n{MARK}"


def renewed(page: str, machine: str, tables: Sequence[str]) -> str:
    """A page with these tables, and where they were measured, below its mark."""
    head = page.partition(MARK)[0]
    return f"{head}{MARK}\n*{machine}.*\n\n" + "\n".join(table.rstrip() + "\n" for table in tables)
