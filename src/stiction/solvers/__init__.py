"""Ways to find an answer: one algorithm a file, `solve`, `Auto`. What is in ALL, tests, tables and commands know."""

from stiction.solvers.auto import Auto as Auto
from stiction.solvers.contact.baraff.baraff import Baraff
from stiction.solvers.contact.cell_lemke.cell_lemke import CellLemke
from stiction.solvers.contact.cone_newton.cone_newton import ConeNewton
from stiction.solvers.contact.splitting.splitting import Splitting
from stiction.solvers.contact.structured_lemke.structured_lemke import StructuredLemke
from stiction.solvers.lcp.block_pivot import BlockPivot
from stiction.solvers.lcp.cottle_dantzig import CottleDantzig
from stiction.solvers.lcp.enumerate import Enumerate
from stiction.solvers.lcp.gauss_seidel import GaussSeidel
from stiction.solvers.lcp.keller import Keller
from stiction.solvers.lcp.lemke import Lemke
from stiction.solvers.lcp.murty import Murty
from stiction.solvers.lcp.smoothing_newton import SmoothingNewton
from stiction.solvers.principal_pivot import PrincipalPivot
from stiction.solvers.solve import solve as solve

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
