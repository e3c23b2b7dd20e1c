"""The question of one step: `LCP`, `BoxLCP`, their files, and named problems to test and compare on."""

from stiction.problems.classics import Classic, box_classics, classic, classics, fathi, murty_exponential
from stiction.problems.families import FAMILIES, INFEASIBLE, Family, rescaled
from stiction.problems.files import load, save
from stiction.problems.lcp import LCP, BoxLCP

__all__ = [
    "FAMILIES",
    "INFEASIBLE",
    "LCP",
    "BoxLCP",
    "Classic",
    "Family",
    "box_classics",
    "classic",
    "classics",
    "fathi",
    "load",
    "murty_exponential",
    "rescaled",
    "save",
]
