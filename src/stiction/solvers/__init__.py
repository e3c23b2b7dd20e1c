"""Ways to find an answer: one algorithm a file, `solve`, `Auto`."""

from stiction.solvers.auto import Auto
from stiction.solvers.block_pivot import BlockPivot
from stiction.solvers.contract import Contract, Proposal, Solver
from stiction.solvers.cottle_dantzig import CottleDantzig
from stiction.solvers.enumerate import Enumerate
from stiction.solvers.gauss_seidel import GaussSeidel
from stiction.solvers.keller import Keller
from stiction.solvers.lemke import Lemke
from stiction.solvers.murty import Murty
from stiction.solvers.principal_pivot import PrincipalPivot
from stiction.solvers.smoothing_newton import SmoothingNewton
from stiction.solvers.solve import solve

ALL = (
    Lemke,
    Keller,
    CottleDantzig,
    Murty,
    PrincipalPivot,
    BlockPivot,
    SmoothingNewton,
    GaussSeidel,
    Enumerate,
)

__all__ = [
    "ALL",
    "Auto",
    "BlockPivot",
    "Contract",
    "CottleDantzig",
    "Enumerate",
    "GaussSeidel",
    "Keller",
    "Lemke",
    "Murty",
    "PrincipalPivot",
    "Proposal",
    "SmoothingNewton",
    "Solver",
    "solve",
]
