"""Ways to find an answer: one algorithm a file, `solve`, `Auto`."""

from stiction.solvers.auto import Auto
from stiction.solvers.contact.baraff.baraff import Baraff
from stiction.solvers.contact.cell_lemke.cell_lemke import CellLemke
from stiction.solvers.contact.cone_newton.cone_newton import ConeNewton
from stiction.solvers.contact.splitting.splitting import Splitting
from stiction.solvers.contact.structured_lemke.structured_lemke import StructuredLemke
from stiction.solvers.contract import ContactProposal, Contract, Proposal, Solver
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
