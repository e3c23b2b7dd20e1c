"""The question of one step: `LCP`, `BoxLCP`, `ContactProblem` and its laws, their files, and named problems."""

from stiction.problems.contact import ContactProblem
from stiction.problems.files import load, save
from stiction.problems.laws import BoxFriction, Coulomb, Frictionless, NoSlip, Viscous
from stiction.problems.lcp import LCP, BoxLCP
from stiction.problems.zoo.classics import Classic, box_classics, classic, classics, fathi, murty_exponential
from stiction.problems.zoo.contact_classics import contact_classics
from stiction.problems.zoo.contact_families import CONTACT_FAMILIES
from stiction.problems.zoo.families import FAMILIES, INFEASIBLE, Family, rescaled

__all__ = [
    "CONTACT_FAMILIES",
    "FAMILIES",
    "INFEASIBLE",
    "LCP",
    "BoxFriction",
    "BoxLCP",
    "Classic",
    "ContactProblem",
    "Coulomb",
    "Family",
    "Frictionless",
    "NoSlip",
    "Viscous",
    "box_classics",
    "classic",
    "classics",
    "contact_classics",
    "fathi",
    "load",
    "murty_exponential",
    "rescaled",
    "save",
]
