"""What each contact does, as far as derivatives need it: how its impulse may change, and what must stay zero.

Velocities alone decide the mode. Impulses p̂ and velocities û are those of the normal form (`problems.normal_form`),
and g is where friction is on the disc, polygon or square of size one:

    mode     impulse may change by            stays zero        meaning
    OPEN     nothing                          nothing           u_n > 0
    NORMAL   n                                u_n               closed without friction
    EDGE     (1, mu g)                        u_n               slides; g = -u_t / |u_t|, or a vertex
    FACE     (1, mu g) and d ⊥ g              u_n, d·u_t        slides with friction on a side of the polygon
    STICK    everything                       u                 sticks
    HELD     tangents                         u_t               without slip: opens, and is kept from sliding

On the round cone g turns with the velocity: p_t = -mu p_n u_t / |u_t| has the derivative

    dp_t = -mu dp_n t - dmu p_n t - (mu p_n / |u_t|) (I - t tᵀ) du_t,      t = u_t / |u_t|

whose last term, the compliance C, acts like a viscosity across the sliding. `Viscous` has C = viscosity · I.

The margin of a contact is the least change of velocity, in m/s, that could bring it into another mode: the opening
velocity; the sliding velocity (on a polygon, the distance to the next vertex's direction); W p_n before it opens; W
times the distance of p_t from its bound before it slides, W the contact's own inverse mass. Where contacts share a load
in many ways the impulses with the largest margins count: a kink is where no way of sharing has a margin.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.problems.contact import ContactProblem
    from stiction.solutions.contact import ContactSolution

    Array = NDArray[np.float64]
    Integers = NDArray[np.int64]
    Flags = NDArray[np.bool_]

OPEN, NORMAL, EDGE, FACE, STICK, HELD = range(6)
COUNT = np.array([0, 1, 1, 2, 3, 2])  # dimensions in which the impulse may change
NAMES = ("opens", "is closed", "slides", "slides", "sticks", "is held")
ROUND = 16  # sides of the polygon that stands for the disc where impulses inside the cone are looked for
FACETS_ROUND = np.column_stack(
    [np.cos(2.0 * np.pi * np.arange(ROUND) / ROUND), np.sin(2.0 * np.pi * np.arange(ROUND) / ROUND)]
)
INSCRIBED = float(np.cos(np.pi / ROUND))


class Modes(NamedTuple):
    """Modes of n contacts.

    mode: (n,) as above; g, d: (n, 2) as above; mu: (n,) friction, 0 for laws without a bound
    round: (n,) whether g turns with the sliding velocity
    slack: (n,) margin that velocities leave, in m/s; infinite where they decide nothing
    """

    mode: Integers
    g: Array
    d: Array
    mu: Array
    round: Flags
    slack: Array


def modes_of(problem: ContactProblem, solution: ContactSolution, small: Array) -> Modes:
    """The mode of each contact by its velocity; small: (n,) velocities, in m/s, that count as zero."""
    n, law, kind = problem.n, problem.law, problem.law.kind
    u = solution.contact_velocity
    mode, slack = np.full(n, OPEN), np.abs(u[:, 0])
    g, d, turning = np.zeros((n, 2)), np.zeros((n, 2)), np.zeros(n, bool)
    mu = problem.friction if law.bounded else np.zeros(n)
    closed = u[:, 0] <= small
    slack[closed] = np.inf

    # Laws without a bound on friction.
    if kind in ("frictionless", "viscous"):
        mode[closed] = NORMAL
        return Modes(mode, g, d, mu, turning, slack)
    if kind == "no-slip":
        mode[closed] = STICK
        mode[~closed & (np.abs(solution.impulse[:, 1:]).max(axis=1, initial=0.0) > 0.0)] = HELD
        return Modes(mode, g, d, mu, turning, slack)

    # Coulomb's: without friction, with a known direction, on a polygon, or on the disc.
    rough = closed & (mu > 0.0)
    mode[closed & ~rough] = NORMAL
    if problem.slip is not None:
        known = rough & ~np.isnan(problem.slip[:, 0])
        mode[known], g[known] = EDGE, -problem.slip[known]
        rough = rough & ~known
    which = np.flatnonzero(rough)
    if not len(which):
        return Modes(mode, g, d, mu, turning, slack)
    across = u[which, 1:]
    corners = law.corners(problem.dim)
    if corners is None:
        speed = np.sqrt((across**2).sum(axis=1))
        slides = speed > small[which]
        mode[which] = np.where(slides, EDGE, STICK)
        g[which] = np.where(slides[:, None], -across / np.where(slides, speed, 1.0)[:, None], 0.0)
        turning[which] = slides
        slack[which[slides]] = speed[slides]
    else:
        on_polygon(corners, across, small[which], which, mode, g, d, slack)
    return Modes(mode, g, d, mu, turning, slack)


def on_polygon(
    corners: Array, across: Array, small: Array, which: Integers, mode: Integers, g: Array, d: Array, slack: Array
) -> None:
    """The vertices that oppose the sliding best: all of them at rest, else one or two neighbours."""
    work = across @ corners.T
    above = work - work.min(axis=1, keepdims=True)
    best = above <= small[:, None]
    count = best.sum(axis=1)
    rests = np.asarray((np.abs(work) <= small[:, None]).all(axis=1))
    others = np.where(best, np.inf, above).min(axis=1)
    first, last = best.argmax(axis=1), best.shape[1] - 1 - best[:, ::-1].argmax(axis=1)
    mode[which] = np.where(rests, STICK, np.where(count == 1, EDGE, FACE))
    one, two = corners[first], corners[last]
    g[which] = np.where(rests[:, None], 0.0, 0.5 * (one + two))
    side = two - one
    length = np.sqrt((side**2).sum(axis=1))
    faces = ~rests & (count > 1)
    d[which] = np.where(faces[:, None], side / np.where(length > 0.0, length, 1.0)[:, None], 0.0)
    slack[which] = np.where(rests, np.inf, others)


def bases(modes: Modes, dim: int) -> tuple[Array, Array, Integers]:
    """(n, 3, 3) orthonormal columns in which impulses may change, (n, 3, 3) what stays zero, (n,) how many count."""
    n, mode = len(modes.mode), modes.mode
    may, zero = np.zeros((n, 3, 3)), np.zeros((n, 3, 3))
    count = COUNT[mode]
    presses = (mode != OPEN) & (mode != HELD)
    zero[presses, 0, 0] = 1.0
    edge = np.zeros((n, 3))
    edge[:, 0], edge[:, 1:] = 1.0, modes.mu[:, None] * modes.g
    along = (mode == EDGE) | (mode == FACE)
    may[along, :, 0] = edge[along] / np.sqrt((edge[along] ** 2).sum(axis=1, keepdims=True))
    may[mode == NORMAL, 0, 0] = 1.0
    face = mode == FACE
    may[face, 1:, 1] = zero[face, 1:, 1] = modes.d[face]
    may[mode == STICK] = zero[mode == STICK] = np.eye(3)
    held = mode == HELD
    may[held, 1, 0] = zero[held, 1, 0] = may[held, 2, 1] = zero[held, 2, 1] = 1.0
    if dim == 2:
        count = np.where(mode == STICK, 2, np.where(held, 1, count))
    return may, zero, count


def impulse_slack(problem: ContactProblem, modes: Modes, p: Array) -> Array:
    """(n,) margins, in N s, that impulses leave; infinite for open contacts."""
    mode, mu = modes.mode, modes.mu
    slack = np.where((mode == OPEN) | (mode == HELD), np.inf, p[:, 0])
    if not problem.law.bounded:
        return slack
    stick, face = mode == STICK, mode == FACE
    corners = problem.law.corners(problem.dim)
    if stick.any():
        slack[stick] = np.minimum(slack[stick], inside(corners, mu[stick], p[stick]))
    if face.any():
        # p_t = mu p_n g + b d, b between both vertices.
        assert corners is not None
        half = 0.5 * side_of(corners, modes.d[face])
        along = np.abs((p[face, 1:] * modes.d[face]).sum(axis=1))
        slack[face] = np.minimum(slack[face], mu[face] * p[face, 0] * half - along)
    return slack


def side_of(corners: Array, d: Array) -> Array:
    """(k,) lengths of the sides of a polygon along these directions."""
    sides = np.roll(corners, -1, axis=0) - corners
    if len(corners) == 2:
        return np.full(len(d), 2.0 * float(np.abs(corners[0]).max()))
    length = np.sqrt((sides**2).sum(axis=1))
    nearest = np.abs(d @ (sides / length[:, None]).T).argmax(axis=1)
    return np.asarray(length[nearest], np.float64)


def facets(corners: Array) -> tuple[Array, Array]:
    """(k, 2) outward normals of a polygon's sides, and (k,) their distances from its centre."""
    if len(corners) == 2:  # in the plane
        return np.sign(corners) * [1.0, 0.0], np.abs(corners[:, 0])
    middle = 0.5 * (corners + np.roll(corners, -1, axis=0))
    distance = np.sqrt((middle**2).sum(axis=1))
    return middle / distance[:, None], distance


def inside(corners: Array | None, mu: Array, p: Array) -> Array:
    """(k,) how far p_t lies within its bound."""
    if corners is None:
        return np.asarray(mu * p[:, 0] - np.sqrt((p[:, 1:] ** 2).sum(axis=1)))
    normals, distance = facets(corners)
    return np.asarray((distance * (mu * p[:, 0])[:, None] - p[:, 1:] @ normals.T).min(axis=1), np.float64)


def shared_inside(
    problem: ContactProblem, modes: Modes, p: Array, directions: Array, weight: Array, enough: Array
) -> Array:
    """Impulses of the same motion that lie as far within their bounds as they can, up to `enough`.

    directions: (k, n, 3) impulses that move nothing; weight: (n,) W; enough: (n,) margins, in m/s, that suffice

    A linear program: maximise the sum of min(margin, enough); the disc is replaced by a polygon inside it.
    """
    from scipy.optimize import linprog

    n, k, mode = problem.n, len(directions), modes.mode
    presses = np.flatnonzero((mode != OPEN) & (mode != HELD))
    corners = problem.law.corners(problem.dim)
    normals, distance = (FACETS_ROUND, np.full(ROUND, INSCRIBED)) if corners is None else facets(corners)

    # Rows a · p >= t of every bound: p_n, and friction of contacts that stick or lie on a side.
    rows, owner = [np.eye(1, 3)[0]] * len(presses), list(presses)
    if problem.law.bounded:
        for i in presses:
            if mode[i] == STICK:
                for normal, size in zip(normals, distance, strict=True):
                    rows.append(np.array([modes.mu[i] * size, *-normal]))
                    owner.append(i)
            elif mode[i] == FACE:
                assert corners is not None
                half = 0.5 * side_of(corners, modes.d[i : i + 1])[0]
                for sign in (-1.0, 1.0):
                    rows.append(np.array([modes.mu[i] * half, *(sign * modes.d[i])]))
                    owner.append(i)
    bound, whose = np.array(rows), np.array(owner)
    now = weight[whose] * (bound * p[whose]).sum(axis=1)
    change = weight[whose, None] * np.einsum("rc,krc->rk", bound, directions[:, whose])
    pick = np.zeros((len(whose), n))
    pick[np.arange(len(whose)), whose] = 1.0
    size = np.abs(change).max(initial=0.0) or 1.0
    unit = enough[whose] if len(whose) else enough
    found = linprog(
        np.concatenate([np.zeros(k), -np.ones(len(presses))]),
        A_ub=np.hstack([-change / size, pick[:, presses] * unit[:, None]]),
        b_ub=now,
        bounds=[(None, None)] * k + [(0.0, 1.0)] * len(presses),
        method="highs",
    )
    if found.status != 0:
        return p
    return np.asarray(p + np.tensordot(found.x[:k] / size, directions, axes=1), np.float64)
