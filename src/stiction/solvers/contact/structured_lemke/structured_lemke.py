"""Lemke's method on the contact LCP without its matrix [Lloyd2004]: the structural and the reduced variant.

The LCP of a friction pyramid (`problems.pyramid`) has n (d + 2) pairs, but its matrix is a product of thin factors.
Everything that can be eliminated by hand is [§5.1, app. A], so that the basis is no larger than the number of
velocities plus two. A pivot computes the velocities x and their rates from the few unknowns, and from those every basic
variable in one scan over the contacts [eq. 36].

    structural   all pairs are there from the start [§5.1, app. A]: about n pivots of O(n + m²)
    reduced      a contact is frictionless until it first becomes active, when its friction pairs join, with a cover
                 that keeps them feasible [§5.3, app. D]: about m pivots of O(n + m²)

The pairs of contact i are (ν, θ), (σ_j, φ_j) for its d directions and (γ, λ). With the artificial variable z0 and a
cover c > 0,

    ν = n·u,      σ_j = d_j·u + λ + c_σ z0,      γ = μ θ - Σ φ_j + c_γ z0,      u = rows x + bias + (c_n, c_t) z0

(c_t, the same for all directions of a contact, only breaks ties). At most two σ_j of a contact vanish at once [app. B],
and those are neighbours; if λ is basic, one does [app. C]. So the friction of a contact has one of these forms, which
are the states of `cell_lemke.cells`, and θ is basic (the contact is active) or not independently of it:

    form        basic z       columns                    rows = 0             watched >= 0 besides ν or θ
    smooth      –             n                          n                    –                (μ = 0, not expanded)
    free        –             n                          n                    all σ_j
    line b      φ_b           n, d_b                     n, σ_b               φ_b; γ; σ_{b±1}
    corner b,o  φ_b, φ_o      n, d_b, d_o                n, σ_b, σ_o          φ_b; φ_o; γ
    vertex b    φ_b, λ        n + μ d_b                  n                    λ; σ_{b±1}
    edge b,o    φ_b, φ_o, λ   n + μ d_b, d_o - d_b       n, σ_o - σ_b         φ_o; φ_b; λ

In vertex and edge φ_b is eliminated by γ = 0 [eq. 38] and λ by σ_b = 0 [eq. 41]: the columns n and row n are N* and N,
d_o - d_b is D* [eq. 28]; and z0 gets a column of its own, the sum of c_γ d_b over these contacts, which is c* [eq. 39]
and named `lift` in the code. The rows and columns left form the matrix of eq. 42, 44 or 47; its last row is the driven
variable, or the one whose complement is driven. So the direction of each step is one column of the inverse [eq. 20 and
21 alike]. The inverse is updated and its equations are checked at every pivot; on demand (`afresh`) small ones are
computed anew at every pivot, as the paper proposes for few bodies.

Guaranteed in exact arithmetic to end in a solution (or in a ray, if the contacts contradict each other). In floating
point the rules are those of `cell_lemke.path`. `Lemke` on `pyramid_lcp(problem)` is the standard method of the paper's
comparison.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from stiction.solvers.contact.cell_lemke.cell_lemke import propose
from stiction.solvers.contact.cell_lemke.cells import REDUCED, STRUCTURAL
from stiction.solvers.contact.cell_lemke.path import follow_paths
from stiction.solvers.contract import ContactProposal, Contract

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem

structured_lemke = follow_paths  # the kernel by its solver's name: studies and benchmarks record its calls


@dataclass(frozen=True)
class StructuredLemke:
    """Lloyd's fast Lemke method, for `Coulomb(facets=d)`.

    reduced: contacts get their friction when they first become active; else all have it from the start
    seed: of the random covers; the same seed gives the same answer
    tries: paths followed before giving up
    max_pivots: limit of one path; 50 (n + m) + 200 if not given
    afresh: systems of up to this many unknowns are inverted again at every pivot; 8 covers one body, and takes 1.7
        times as long as updating, with the same answers
    """

    reduced: bool = True
    seed: int = 1
    tries: int = 24
    max_pivots: int | None = None
    afresh: int = 0

    contract: ClassVar[Contract] = Contract(
        matrix="contact",
        guarantee="a solution or a ray, on pyramids with any number of facets",
        cost="about m (structural: n) pivots of O(n + k²), k <= m unknowns",
        choose="Lloyd's method itself, or a second opinion on pyramids",
        laws=("pyramid",),
    )

    def propose(self, problem: ContactProblem, start: NDArray[np.float64] | None) -> ContactProposal:
        method = REDUCED if self.reduced else STRUCTURAL
        options = method, self.seed, self.tries, self.max_pivots, self.afresh
        return propose(structured_lemke, problem, None, *options)
