"""The contact problem of one step, and how it is posed.

    M (v - v_free) = Nᵀ p_n + Tᵀ p_t + Jᵀ p_j
    J v + joint_rate = 0
    0 <= p_n  ⊥  u_n = N v + gap_rate >= 0
    law(p_n, p_t, u_t = T v + tangent_rate)

Rows of N and T are given densely, over all m generalized velocities, or by body or kinematic tree: a contact touches at
most two of them, and nothing of size m² is ever formed. Or only the Delassus operator is known, u = W p + q. Problems
are validated once, here, and cannot change afterwards.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.arrays.vectors import ZEROS
from stiction.errors import InvalidProblem
from stiction.problems.checks import (
    KIND,
    at_least_zero,
    body_masses,
    body_pairs,
    body_velocities,
    check_delassus,
    check_frames,
    check_law,
    coefficients,
    mass_matrix,
    rows_of,
    shaped,
    slips,
    tangent_rates,
    tangents_of,
)
from stiction.problems.laws import Coulomb, Law
from stiction.problems.lcp import array, square, vector

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from numpy.typing import ArrayLike, NDArray

    from stiction.problems.normal_form import Posed, Whitened

    Maybe = ArrayLike | None

WHITE_WITHOUT = {"law", "friction", "viscosity", "slip"}  # what the normal form does not depend on
REPLACEABLE = ("law", "friction", "velocity", "gap_rate", "tangent_rate", "joint_rate", "viscosity", "slip")
NO_ROWS = np.zeros(0, np.int64)
STILL = {d: np.zeros((0, d)) for d in ZEROS}  # tangent rates, as kernels take them, where there are none


@dataclass(frozen=True, eq=False, repr=False)
class ContactProblem:
    """n contacts, m generalized velocities, j bilateral rows.

    mass: (m, m), symmetric positive definite; (b, 6, 6) for b free bodies; the blocks of all trees, flat, one after the
        other; None in Delassus form
    trees: (b + 1,) where the velocities of each block of the mass begin
    velocity: (m,) the velocity without contact, v_free = v + dt M⁻¹ f
    rows: (n, d, k) rows of each contact, at the velocities that it touches: n, t1, t2 and, if d is 6 and not 3, the
        turns about n, t1 and t2
    segments: (n, 4) start and length of the two runs of velocities that a contact touches
    friction: (n,) coefficients mu; given as (n, 2), (n, 3) or (n, 5), one for each tangent, those of turning in m
    gap_rate: (n,) gap / dt, or e v_n with restitution
    tangent_rate: (n, d - 1) velocities of surfaces that move by themselves, such as belts, of body 2's relative to
        body 1's, along the tangents; None if there are none
    joints, joint_rate: (j, m), (j,) bilateral rows
    viscosity: (n,) impulse per sliding velocity, for `Viscous`
    slip: (n, 2) direction of sliding where that is already known, NaN where it is not
    law: how contacts act
    delassus, offset: (dn, dn), (dn,) W and q of u = W p + q, in Delassus form, d being 3 or 6
    dim: 3, or 2 if there is one tangent only, or 6 with torsional or rolling friction
    ratio: (n, d - 1) coefficients of the tangents over mu, by which their rows were multiplied, so that friction is
        |p_t| <= mu p_n for all of them together; None if they are alike

    Torsional friction resists turning about the normal, rolling friction that about the tangents: with coefficients
    mu_i, friction is sum (p_i / mu_i)² <= p_n² over all tangents, as in MuJoCo's elliptic cone. Impulses and velocities
    are along `rows`, multiplied as they are; `solution.as_given` has them along the rows that were given.
    """

    mass: NDArray[np.float64] | None
    trees: NDArray[np.int64]
    velocity: NDArray[np.float64]
    rows: NDArray[np.float64]
    segments: NDArray[np.int64]
    friction: NDArray[np.float64]
    gap_rate: NDArray[np.float64]
    joints: NDArray[np.float64]
    joint_rate: NDArray[np.float64]
    viscosity: NDArray[np.float64] | None
    slip: NDArray[np.float64] | None
    law: Law
    delassus: NDArray[np.float64] | None
    offset: NDArray[np.float64] | None
    dim: int
    ratio: NDArray[np.float64] | None = None
    tangent_rate: NDArray[np.float64] | None = None

    def __init__(
        self, mass: ArrayLike, velocity: ArrayLike, normal: ArrayLike, tangent: ArrayLike, friction: ArrayLike,
        *, gap_rate: Maybe = None, tangent_rate: Maybe = None, joints: Maybe = None, joint_rate: Maybe = None,
        viscosity: Maybe = None, slip: Maybe = None, law: Law = Coulomb(),  # noqa: B008 (frozen)
    ) -> None:  # fmt: skip
        inertia = mass_matrix(mass)
        m = len(inertia)
        normals = rows_of("normal", normal, m)
        n = len(normals)
        tangents, dim = tangents_of(tangent, n, (m,))
        rows = np.zeros((n, max(3, dim), m))
        rows[:, 0], rows[:, 1 : 1 + tangents.shape[1]] = normals, tangents
        segments = np.tile(np.array([0, m, 0, 0]), (n, 1))
        self._set(
            inertia, [0, m], vector(KIND, "velocity", velocity, m, "mass"), rows, segments, friction, dim,
            gap_rate, tangent_rate, joints, joint_rate, viscosity, slip, law,
        )  # fmt: skip

    @classmethod
    def from_bodies(
        cls, mass: ArrayLike, velocity: ArrayLike, bodies: ArrayLike, normal: ArrayLike, tangent: ArrayLike,
        friction: ArrayLike, *, gap_rate: Maybe = None, tangent_rate: Maybe = None, joints: Maybe = None,
        joint_rate: Maybe = None, viscosity: Maybe = None, slip: Maybe = None, law: Law = Coulomb(),  # noqa: B008 (frozen)
    ) -> ContactProblem:  # fmt: skip
        """Free bodies: mass (b, 6, 6), velocity (b, 6), bodies (n, 2) with -1 for the world, rows by body.

        normal: (n, 2, 6), tangent: (n, 2, 2, 6): [contact, tangent, body, velocity]; rows of the world are ignored
        """
        inertia = body_masses(mass)
        count = len(inertia)
        pairs = body_pairs(bodies, count)
        n = len(pairs)
        normals = shaped("normal", normal, (n, 2, 6))
        tangents, dim = tangents_of(tangent, n, (2, 6))
        rows = np.zeros((n, max(3, dim), 12))
        present = np.repeat(pairs >= 0, 6, axis=1)
        rows[:, 0] = np.where(present, normals.reshape(n, 12), 0.0)
        rows[:, 1 : 1 + tangents.shape[1]] = np.where(present[:, None], tangents.reshape(n, tangents.shape[1], 12), 0.0)
        # The world takes no place: what is left comes first.
        alone = (pairs[:, 0] < 0) & (pairs[:, 1] >= 0)
        rows[alone, :, :6] = rows[alone, :, 6:]
        rows[alone, :, 6:] = 0.0
        pairs = np.where(alone[:, None], pairs[:, ::-1], pairs)
        segments = np.zeros((n, 4), np.int64)
        segments[:, 0::2] = 6 * np.maximum(pairs, 0)
        segments[:, 1::2] = np.where(pairs >= 0, 6, 0)
        check_frames(rows, pairs)
        start = body_velocities(velocity, count)
        problem = object.__new__(cls)
        trees = np.arange(0, 6 * count + 1, 6)
        problem._set(
            inertia, trees, start, rows, segments, friction, dim,
            gap_rate, tangent_rate, joints, joint_rate, viscosity, slip, law,
        )  # fmt: skip
        return problem

    @classmethod
    def from_trees(
        cls, masses: Sequence[ArrayLike], velocity: ArrayLike, trees: ArrayLike, normal: ArrayLike, tangent: ArrayLike,
        friction: ArrayLike, *, gap_rate: Maybe = None, tangent_rate: Maybe = None, joints: Maybe = None,
        joint_rate: Maybe = None, viscosity: Maybe = None, slip: Maybe = None, law: Law = Coulomb(),  # noqa: B008 (frozen)
    ) -> ContactProblem:  # fmt: skip
        """Kinematic trees of any sizes: a mass matrix each, velocities of all of them, one after the other.

        trees: (n, 2) which two each contact touches, -1 for the world
        normal, tangent: (n, k), (n, 2, k), a row's entries at the first tree's velocities and then at the second's;
            what is beyond them is ignored
        """
        blocks = []
        for b, block in enumerate(masses):
            try:
                blocks.append(mass_matrix(block))
            except InvalidProblem as error:
                raise InvalidProblem(f"{error} (tree {b})") from None
        sizes = np.array([len(block) for block in blocks], np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        m = int(starts[-1])
        pairs = body_pairs(trees, len(blocks), "trees")
        n = len(pairs)
        lengths = np.where(pairs >= 0, sizes[pairs], 0) if len(blocks) else np.zeros((n, 2), np.int64)
        k = int(lengths.sum(axis=1).max(initial=0))
        normals = array(KIND, "normal", normal)
        given = normals.shape[1] if normals.ndim == 2 else k
        normals = shaped("normal", normals, (n, max(given, k)))
        tangents, dim = tangents_of(tangent, n, (max(given, k),))
        inside = np.arange(k) < lengths.sum(axis=1)[:, None]
        rows = np.zeros((n, max(3, dim), k))
        rows[:, 0] = np.where(inside, normals[:, :k], 0.0)
        rows[:, 1 : 1 + tangents.shape[1]] = np.where(inside[:, None], tangents[:, :, :k], 0.0)
        segments = np.zeros((n, 4), np.int64)
        segments[:, 0::2] = np.where(lengths > 0, starts[np.maximum(pairs, 0)], 0)
        segments[:, 1::2] = lengths
        # The world takes no place, and neither does a tree without velocities: what is left comes first.
        alone = (lengths[:, 0] == 0) & (lengths[:, 1] > 0)
        segments[alone] = segments[alone][:, [2, 3, 0, 1]]
        problem = object.__new__(cls)
        mass = np.concatenate([block.ravel() for block in blocks]) if blocks else np.zeros(0)
        free = vector(KIND, "velocity", velocity, m, "masses")
        problem._set(
            mass, starts, free, rows, segments, friction, dim,
            gap_rate, tangent_rate, joints, joint_rate, viscosity, slip, law,
        )  # fmt: skip
        return problem

    @classmethod
    def from_delassus(
        cls,
        W: ArrayLike,
        q: ArrayLike,
        friction: ArrayLike,
        dim: int = 3,
        *,
        law: Law = Coulomb(),  # noqa: B008 (frozen)
    ) -> ContactProblem:
        """Only u = W p + q is known, contact by contact in the order n, t1(, t2), as in FCLIB.

        dim: 2, 3, or 6 if the turns about n, t1 and t2 follow
        """
        if dim not in (2, 3, 6):
            raise InvalidProblem(f"from_delassus: dim must be 2 or 3, or 6 with torsion and rolling, got {dim}")
        given = square("from_delassus", "W", W)
        n, rest = divmod(len(given), dim)
        if rest:
            raise InvalidProblem(f"from_delassus: the size of W, {len(given)}, must be a multiple of dim = {dim}")
        check_delassus(given)
        offset = vector("from_delassus", "q", q, len(given), "W")
        d = max(3, dim)
        place = np.arange(d * n).reshape(n, d)[:, :dim].ravel()
        operator, constant = np.zeros((d * n, d * n)), np.zeros(d * n)
        operator[np.ix_(place, place)], constant[place] = given, offset
        problem = object.__new__(cls)
        problem._set(
            None, [0], np.zeros(0), np.zeros((n, d, 0)), np.zeros((n, 4), np.int64), friction, dim,
            None, None, None, None, None, None, law, operator, constant,
        )  # fmt: skip
        return problem

    def _set(
        self, mass: Any, trees: Any, velocity: Any, rows: Any, segments: Any, friction: Any, dim: int,
        gap_rate: Any, tangent_rate: Any, joints: Any, joint_rate: Any, viscosity: Any, slip: Any, law: Law,
        delassus: Any = None, offset: Any = None,
    ) -> None:  # fmt: skip
        """Check what all forms share, and keep everything read-only."""
        n, m = len(rows), velocity.size
        check_law(law, viscosity, rows.shape[1])
        bilateral = np.zeros((0, m)) if joints is None else rows_of("joints", joints, m)
        mu, ratio = coefficients(friction, n, dim)
        moving = None if tangent_rate is None else tangent_rates(tangent_rate, rows.shape[:2])
        if ratio is not None:
            rows[:, 1:] *= ratio[:, :, None]
            if moving is not None:
                moving = moving * ratio
            if delassus is not None:
                every = np.column_stack([np.ones(n), ratio]).ravel()
                delassus, offset = every[:, None] * delassus * every, every * offset
        fields = {
            "mass": mass,
            "trees": np.asarray(trees, np.int64),
            "velocity": velocity,
            "rows": rows,
            "segments": segments,
            "friction": mu,
            "gap_rate": np.zeros(n) if gap_rate is None else vector(KIND, "gap_rate", gap_rate, n, "normal"),
            "joints": bilateral,
            "joint_rate": np.zeros(len(bilateral))
            if joint_rate is None
            else vector(KIND, "joint_rate", joint_rate, len(bilateral), "joints"),
            "viscosity": None if viscosity is None else at_least_zero("viscosity", viscosity, n),
            "slip": None if slip is None else slips(slip, n),
            "law": law,
            "delassus": delassus,
            "offset": offset,
            "dim": dim,
            "ratio": ratio,
            "tangent_rate": moving,
        }
        keep(self, fields)

    @classmethod
    def from_checked(cls, **fields: Any) -> ContactProblem:
        """A problem of fields that are known to be right; what is not given is none, and nothing is copied."""
        n, m = len(fields["rows"]), fields["velocity"].size
        given = {"viscosity": None, "slip": None, "delassus": None, "offset": None, **fields}
        given.setdefault("dim", fields["rows"].shape[1])
        if given.get("gap_rate") is None:
            given["gap_rate"] = np.zeros(n)
        if given.get("joints") is None:
            given["joints"] = np.zeros((0, m))
        if given.get("joint_rate") is None:
            given["joint_rate"] = np.zeros(len(given["joints"]))
        return from_fields(given)

    def __reduce__(self) -> tuple[Any, ...]:
        return from_fields, ({field.name: getattr(self, field.name) for field in dataclasses.fields(self)},)

    def replace(self, **changes: Any) -> ContactProblem:
        """The same problem with another law, friction, velocity, gap_rate, tangent_rate, joint_rate, viscosity or slip.

        What is known of it already is kept as far as it holds: islands always, the normal form under another law,
        friction, viscosity or slip.
        """
        n, fields = self.n, dict(vars(self))
        for name, value in changes.items():
            if name not in REPLACEABLE:
                raise InvalidProblem(f"replace: {name} is none of {', '.join(REPLACEABLE)}; make a new problem instead")
            if name == "law":
                fields[name] = value
            elif name in ("friction", "viscosity"):
                fields[name] = None if value is None and name == "viscosity" else frozen(at_least_zero(name, value, n))
            elif name == "slip":
                fields[name] = None if value is None else slips(value, n)
            elif name == "tangent_rate":
                if self.mass is None:
                    raise InvalidProblem(
                        "replace: tangent_rate is part of q in Delassus form; make a new problem instead"
                    )
                fields[name] = None if value is None else frozen(tangent_rates(value, self.rows.shape[:2]))
            else:
                fields[name] = vector(KIND, name, value, getattr(self, name).size, "the problem replaced")
        check_law(fields["law"], fields["viscosity"], self.rows.shape[1])
        fields.pop("posed", None)
        if not WHITE_WITHOUT.issuperset(changes):
            fields.pop("whitened", None)
        if "whitened" in fields and "friction" in changes:
            fields["whitened"] = self.whitened._replace(friction=fields["friction"])
        return from_fields(fields)

    def with_law(self, law: Law) -> ContactProblem:
        """The same problem under another law."""
        return self.replace(law=law)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the problem, to be read by `stiction.load`: .hdf5 and .h5 are FCLIB, .dat Siconos, all else `.npz`."""
        from stiction.problems.files import save

        save(self, path)

    @property
    def n(self) -> int:
        """Number of contacts."""
        return len(self.rows)

    @property
    def m(self) -> int:
        """Number of generalized velocities; 0 in Delassus form."""
        return self.velocity.size

    @property
    def normal(self) -> NDArray[np.float64]:
        """(n, m) the normal rows, dense."""
        return self.dense_rows()[:, 0]

    @property
    def tangent(self) -> NDArray[np.float64]:
        """(n, dim - 1, m) the tangent rows, dense."""
        return self.dense_rows()[:, 1 : self.dim]

    def dense_rows(self) -> NDArray[np.float64]:
        """(n, d, m) all rows over all velocities."""
        return densified(self.rows, self.segments, self.m)

    @property
    def zero(self) -> Any:
        """The impulse of a contact that has none, as kernels take it."""
        return ZEROS[self.rows.shape[1]]

    @cached_property
    def posed(self) -> Posed:
        """The problem as kernels read it, with the mass flat; not in Delassus form."""
        from stiction.problems.normal_form import Posed

        assert self.mass is not None
        moving = STILL[self.rows.shape[1]]
        if self.tangent_rate is not None:
            moving = np.column_stack([np.zeros(self.n), self.tangent_rate])
        return Posed(
            self.mass.reshape(-1), self.trees, self.velocity, self.rows, self.segments, self.friction, self.gap_rate,
            self.joints, self.joint_rate, frozen(moving),
        )  # fmt: skip

    @cached_property
    def whitened(self) -> Whitened:
        """The normal form that every contact solver works on."""
        from stiction.problems.normal_form import whiten

        return whiten(self)

    @cached_property
    def labels(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The number of the island that each velocity, -1 if it touches no contact, and each contact belongs to."""
        from stiction.problems.islands import label

        return label(self)

    @property
    def slides(self) -> bool:
        """Whether the direction of sliding is known of any contact."""
        return self.slip is not None and not bool(np.isnan(self.slip).all())

    @property
    def redundant_joints(self) -> NDArray[np.int64]:
        """Which bilateral rows depend on those before them, and carry no impulse."""
        depends = np.ones(len(self.joints), bool)
        depends[self.whitened.kept] = False
        return np.flatnonzero(depends)

    @property
    def contradicting_joints(self) -> NDArray[np.int64]:
        """Which of these ask for a rate that the rows they depend on exclude: there is no solution then.

        Rows that ask for no motion never contradict each other.
        """
        if not self.joint_rate.any():
            return NO_ROWS
        from stiction.problems.response import contradictions

        return contradictions(self)

    @property
    def mass_blocks(self) -> list[NDArray[np.float64]]:
        """The mass, tree by tree."""
        assert self.mass is not None
        sizes = np.diff(self.trees)
        parts = np.split(self.mass.ravel(), np.cumsum(sizes**2)[:-1])
        return [part.reshape(size, size) for part, size in zip(parts, sizes, strict=True) if size]

    def respond(self, impulse: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The velocities, and the impulses of the joints, that follow from contact impulses."""
        from stiction.problems.response import response

        return response(self, impulse)

    def __repr__(self) -> str:
        form = "delassus" if self.mass is None else ("", "trees", "dense", "bodies")[self.mass.ndim]
        return f"ContactProblem(n={self.n}, m={self.m}, joints={len(self.joints)}, {form}, law={self.law})"


def from_fields(fields: dict[str, Any]) -> ContactProblem:
    """A problem from checked fields, and what is already known of it."""
    problem = object.__new__(ContactProblem)
    keep(problem, fields)
    return problem


def keep(problem: ContactProblem, fields: dict[str, Any]) -> None:
    """Set all fields; arrays become read-only views."""
    for name, value in fields.items():
        object.__setattr__(problem, name, frozen(value) if isinstance(value, np.ndarray) else value)


def with_ratio(problem: ContactProblem, ratio: Any) -> ContactProblem:
    """The same, whose rows are known to have been multiplied by these coefficients over mu; None if they were not."""
    if ratio is None:
        return problem
    shape = (problem.n, problem.rows.shape[1] - 1)
    known = array(KIND, "ratio", ratio)
    if known.shape != shape or not (np.isfinite(known) & (known >= 0.0)).all():
        raise InvalidProblem(f"{KIND}: ratio must have shape {shape}, finite and not negative, got {known.shape}")
    return from_fields({**vars(problem), "ratio": known})


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only view of the array."""
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def densified(rows: NDArray[np.float64], segments: NDArray[np.int64], m: int) -> NDArray[np.float64]:
    """(n, d, m) rows over all velocities."""
    dense = np.zeros((*rows.shape[:2], m))
    entry = np.arange(rows.shape[2])
    first, second = segments[:, 1:2], segments[:, 3:4]
    column = entry + np.where(entry < first, segments[:, 0:1], segments[:, 2:3] - first)
    contact, place = np.nonzero(entry < first + second)
    dense[contact, :, column[contact, place]] = rows[contact, :, place]
    return dense
