"""Rigid-body contact with friction, solved exactly and fast, every answer with a certificate.

Names are loaded when they are first used: `import stiction` itself imports neither NumPy nor Numba.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stiction import gym as gym
    from stiction.bodies.scene import Scene
    from stiction.errors import (
        InvalidProblem,
        InvalidScene,
        MissingDependency,
        SolveFailed,
        StictionError,
        UnsupportedProblem,
    )
    from stiction.problems.contact import ContactProblem
    from stiction.problems.files import load
    from stiction.problems.laws import BoxFriction, Coulomb, Frictionless, NoSlip, Viscous
    from stiction.problems.lcp import LCP, BoxLCP
    from stiction.solutions.certificate import Certificate, certify
    from stiction.solutions.contact import ContactCertificate, ContactSolution, Mode
    from stiction.solutions.ray import Ray
    from stiction.solutions.solution import Solution
    from stiction.solutions.status import Status
    from stiction.solutions.uniqueness import Uniqueness
    from stiction.solvers.auto import Auto
    from stiction.solvers.baraff.baraff import Baraff
    from stiction.solvers.cell_lemke.cell_lemke import CellLemke
    from stiction.solvers.cone_newton.cone_newton import ConeNewton
    from stiction.solvers.lcp.block_pivot import BlockPivot
    from stiction.solvers.lcp.cottle_dantzig import CottleDantzig
    from stiction.solvers.lcp.enumerate import Enumerate
    from stiction.solvers.lcp.gauss_seidel import GaussSeidel
    from stiction.solvers.lcp.keller import Keller
    from stiction.solvers.lcp.lemke import Lemke
    from stiction.solvers.lcp.murty import Murty
    from stiction.solvers.lcp.smoothing_newton import SmoothingNewton
    from stiction.solvers.principal_pivot import PrincipalPivot
    from stiction.solvers.solve import solve
    from stiction.solvers.splitting.splitting import Splitting
    from stiction.solvers.structured_lemke.structured_lemke import StructuredLemke
    from stiction.stepping.event_driven import EventDriven
    from stiction.stepping.simulation import Simulation
    from stiction.stepping.step import step
    from stiction.stepping.time_stepping import TimeStepping

__version__ = "0.1.0"

__all__ = [
    "LCP",
    "Auto",
    "Baraff",
    "BlockPivot",
    "BoxFriction",
    "BoxLCP",
    "CellLemke",
    "Certificate",
    "ConeNewton",
    "ContactCertificate",
    "ContactProblem",
    "ContactSolution",
    "CottleDantzig",
    "Coulomb",
    "Enumerate",
    "EventDriven",
    "Frictionless",
    "GaussSeidel",
    "InvalidProblem",
    "InvalidScene",
    "Keller",
    "Lemke",
    "MissingDependency",
    "Mode",
    "Murty",
    "NoSlip",
    "PrincipalPivot",
    "Ray",
    "Scene",
    "Simulation",
    "SmoothingNewton",
    "Solution",
    "SolveFailed",
    "Splitting",
    "Status",
    "StictionError",
    "StructuredLemke",
    "TimeStepping",
    "Uniqueness",
    "UnsupportedProblem",
    "Viscous",
    "__version__",
    "certify",
    "load",
    "solve",
    "step",
]

_HOMES = {
    "bodies.scene": ("Scene",),
    "errors": (
        "InvalidProblem",
        "InvalidScene",
        "MissingDependency",
        "SolveFailed",
        "StictionError",
        "UnsupportedProblem",
    ),
    "problems.contact": ("ContactProblem",),
    "problems.files": ("load",),
    "problems.laws": ("BoxFriction", "Coulomb", "Frictionless", "NoSlip", "Viscous"),
    "problems.lcp": ("LCP", "BoxLCP"),
    "solutions.certificate": ("Certificate", "certify"),
    "solutions.contact": ("ContactCertificate", "ContactSolution", "Mode"),
    "solutions.ray": ("Ray",),
    "solutions.solution": ("Solution",),
    "solutions.status": ("Status",),
    "solutions.uniqueness": ("Uniqueness",),
    "solvers.auto": ("Auto",),
    "solvers.baraff.baraff": ("Baraff",),
    "solvers.lcp.block_pivot": ("BlockPivot",),
    "solvers.cell_lemke.cell_lemke": ("CellLemke",),
    "solvers.cone_newton.cone_newton": ("ConeNewton",),
    "solvers.lcp.cottle_dantzig": ("CottleDantzig",),
    "solvers.lcp.enumerate": ("Enumerate",),
    "solvers.lcp.gauss_seidel": ("GaussSeidel",),
    "solvers.lcp.keller": ("Keller",),
    "solvers.lcp.lemke": ("Lemke",),
    "solvers.lcp.murty": ("Murty",),
    "solvers.principal_pivot": ("PrincipalPivot",),
    "solvers.lcp.smoothing_newton": ("SmoothingNewton",),
    "solvers.solve": ("solve",),
    "solvers.splitting.splitting": ("Splitting",),
    "solvers.structured_lemke.structured_lemke": ("StructuredLemke",),
    "stepping.event_driven": ("EventDriven",),
    "stepping.simulation": ("Simulation",),
    "stepping.step": ("step",),
    "stepping.time_stepping": ("TimeStepping",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name == "gym":  # a module of its own
        return _import_module("stiction.gym")
    if name not in _HOME:
        raise AttributeError(f"module 'stiction' has no attribute {name!r}")
    value = getattr(_import_module(f"stiction.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
