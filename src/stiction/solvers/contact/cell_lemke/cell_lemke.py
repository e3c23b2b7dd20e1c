"""Lemke's path through the cells of the contacts: the pyramid law without its d + 2 complementary pairs a contact.

With an artificial variable z0 and a cover c of each contact, u_i = rows_i x + bias_i + c_i z0. For large z0 all
contacts are separated; the path is followed from there to z0 = 0 (`path`), and each contact is in one cell of `cells`
meanwhile. So the basis has at most as many unknowns as there are velocities (and z0), however many contacts and facets
there are. The friction bound has no cover: the copositivity argument needs only c_n > mu |c_t|, and no cover has to
grow.

Guaranteed in exact arithmetic to end in a solution or in a ray, as Lemke's method on the pyramid LCP (copositive).

[Lloyd2004, §5 and appendix D] for the reduced method that this one restates; [Lemke1965].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from stiction.arrays.compiled import workspace
from stiction.problems.box_friction import as_pyramid
from stiction.problems.laws import BoxFriction
from stiction.problems.pyramid import directions_of
from stiction.solvers.contact.cell_lemke.cells import CELLS
from stiction.solvers.contact.cell_lemke.path import RAY, follow_paths, sizes
from stiction.solvers.contract import STATUS, ContactProposal, Contract
from stiction.solvers.tolerances import pivot_limit

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem

NO_START = np.empty((0, 3))
cell_lemke = follow_paths  # the kernel by its solver's name: studies and benchmarks record its calls


@dataclass(frozen=True)
class CellLemke:
    """Lemke's method on the contact cells, for `Coulomb(facets=d)`.

    seed: of the random covers; the same seed gives the same answer
    tries: paths followed before giving up
    max_pivots: limit of one path; 50 (n + m) + 200 if not given
    """

    seed: int = 1
    tries: int = 8
    max_pivots: int | None = None

    contract: ClassVar[Contract] = Contract(
        matrix="contact",
        guarantee="a solution or a ray, on pyramids with any number of facets",
        cost="about as many pivots as contacts close or slide, each O(n + k²), k <= m unknowns",
        choose="friction pyramids and boxes: the default",
        warm=True,
        laws=("pyramid", "box"),
    )

    def propose(self, problem: ContactProblem, start: NDArray[np.float64] | None) -> ContactProposal:
        if isinstance(problem.law, BoxFriction):
            problem = as_pyramid(problem)  # a box is a pyramid with four facets: the same law, impulse by impulse
        return propose(cell_lemke, problem, start, CELLS, self.seed, self.tries, self.max_pivots)


def propose(
    run: Callable[..., Any],
    problem: ContactProblem,
    start: NDArray[np.float64] | None,
    method: int,
    seed: int,
    tries: int,
    max_pivots: int | None,
    afresh: int = 0,
) -> ContactProposal:
    """The proposal of one of the methods of `cells`; `run` is `follow_paths`, by the name of the solver."""
    white, directions = problem.whitened, directions_of(problem)
    n, _, width = white.rows.shape
    m = white.free.size
    if max_pivots is None:
        max_pivots = pivot_limit(n + m)
    options = np.array([method, seed % 2**32, max(1, tries), max_pivots, afresh], np.int64)
    work = workspace(*sizes(n, m, width, len(directions)))
    out = np.empty((2, n, 3))
    status, pivots, used, _ = run(
        white.rows, fixed(white.segments), white.free, white.bias, fixed(white.friction), white.scale, directions,
        NO_START if start is None else white.scaled(start), options, *work, out,
    )  # fmt: skip
    trace = (f"{used} covers tried",) if used > 1 else ()
    ray = white.impulse(out[1]) if status == RAY else None
    return ContactProposal(STATUS[status], int(pivots), white.impulse(out[0]), ray, trace)


def fixed(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view of an array that is read-only in some problems only: one compiled kernel serves both."""
    view = array.view()
    view.flags.writeable = False
    return view
