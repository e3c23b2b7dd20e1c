"""Ways to find an answer: one algorithm a file, `solve`, `Auto`."""

from stiction.solvers.auto import Auto
from stiction.solvers.baraff import Baraff
from stiction.solvers.block_pivot import BlockPivot
from stiction.solvers.cell_lemke import CellLemke
from stiction.solvers.cone_newton import ConeNewton
from stiction.solvers.contract import ContactProposal, Contract, Proposal, Solver
from stiction.solvers.cottle_dantzig import CottleDantzig
from stiction.solvers.enumerate import Enumerate
from stiction.solvers.gauss_seidel import GaussSeidel
from stiction.solvers.keller import Keller
from stiction.solvers.lemke import Lemke
from stiction.solvers.murty import Murty
from stiction.solvers.principal_pivot import PrincipalPivot
from stiction.solvers.smoothing_newton import SmoothingNewton
from stiction.solvers.solve import solve
from stiction.solvers.splitting import Splitting
from stiction.solvers.structured_lemke import StructuredLemke

COMPLEMENTARITY = (
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
ALL = (*COMPLEMENTARITY, StructuredLemke, CellLemke, Baraff, Splitting, ConeNewton)

__all__ = [
    "ALL",
    "COMPLEMENTARITY",
    "Auto",
    "Baraff",
    "BlockPivot",
    "CellLemke",
    "ConeNewton",
    "ContactProposal",
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
    "Splitting",
    "StructuredLemke",
    "solve",
]
