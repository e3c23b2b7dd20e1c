"""Checks of the data of a contact problem, once, when it is made; messages name the field and the entry."""

from __future__ import annotations

import contextlib
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.errors import InvalidProblem, UnsymmetricMatrix
from stiction.problems.laws import Law
from stiction.problems.lcp import array, finite, square, vector

if TYPE_CHECKING:
    from numpy.typing import NDArray

ASYMMETRY = 1e-9  # of a mass matrix, in units of its largest entry
PRINTED = 1e-2  # the same of a Delassus matrix, which often comes from a printed file
WARNED = 1e-3  # the same above which it is warned of: more than printing with few digits does
SKEW = 1e-6  # cosine between a normal and its tangents, or between tangents, that is still a right angle
KIND = "ContactProblem"
DIMENSIONS = {1: 2, 2: 3, 3: 6, 5: 6}  # by the number of tangents


def check_law(law: Any, viscosity: Any, directions: int = 3) -> None:
    if not isinstance(law, Law):
        raise InvalidProblem(f"{KIND}: law must be a law such as Coulomb(), got {law!r}")
    if law.viscous and viscosity is None:
        raise InvalidProblem(f"{KIND}: the law Viscous needs viscosity, one number a contact, in N s / (m/s)")
    if directions > 3 and not law.turning:
        raise InvalidProblem(
            f"{KIND}: torsional and rolling friction need the law Coulomb() on the cone, not {law}; leave out the rows "
            "after the second tangent"
        )


def shaped(name: str, value: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    result = array(KIND, name, value)
    if result.size == 0 and 0 in shape:
        result = np.zeros(shape)
    if result.shape != shape:
        raise InvalidProblem(f"{KIND}: {name} must have shape {shape}, got {result.shape}")
    return finite(KIND, name, result)


def rows_of(name: str, value: Any, m: int) -> NDArray[np.float64]:
    result = array(KIND, name, value)
    if result.size == 0:
        return np.zeros((0, m))
    if result.ndim != 2 or result.shape[1] != m:
        raise InvalidProblem(f"{KIND}: {name} must have shape (rows, {m}) to match mass, got {result.shape}")
    return finite(KIND, name, result)


def tangents_of(value: Any, n: int, tail: tuple[int, ...]) -> tuple[NDArray[np.float64], int]:
    """Two tangent rows a contact, or one in the plane; one or three more with torsion, or torsion and rolling."""
    result = array(KIND, "tangent", value)
    if n == 0:
        return np.zeros((0, 2, *tail)), 3
    if result.shape == (n, *tail):
        result = result[:, None]
    if result.shape not in [(n, count, *tail) for count in DIMENSIONS]:
        wanted = (n, 2, *tail)
        raise InvalidProblem(
            f"{KIND}: tangent must have shape {wanted}, or 1 (in the plane), 3 (with torsion) or 5 (and rolling) rows "
            f"a contact, got {result.shape}"
        )
    return finite(KIND, "tangent", result), DIMENSIONS[result.shape[1]]


def coefficients(value: Any, n: int, dim: int) -> tuple[NDArray[np.float64], NDArray[np.float64] | None]:
    """mu of each contact, and (n, d - 1) the coefficient of each tangent over it; None if all are alike."""
    given = array(KIND, "friction", value)
    if given.ndim != 2:
        return at_least_zero("friction", value, n), None
    counts = {2: (1,), 3: (2,), 6: (3, 5)}[dim]
    if given.shape not in [(n, count) for count in counts]:
        many = " or ".join(str(count) for count in counts)
        raise InvalidProblem(
            f"{KIND}: friction must have shape ({n},), or ({n}, {many}) with a coefficient for each tangent, got "
            f"{given.shape}"
        )
    finite(KIND, "friction", given)
    if (given < 0.0).any():
        i, k = (int(each) for each in np.argwhere(given < 0.0)[0])
        raise InvalidProblem(f"{KIND}: friction must not be negative, but friction[{i}, {k}] = {given[i, k]:g}")
    # That of sliding, the larger of two; where only turning is resisted, 1.
    mu = given[:, :2].max(axis=1)
    mu = np.where(mu > 0.0, mu, given.any(axis=1).astype(float))
    ratio = np.zeros((n, max(3, dim) - 1))
    ratio[:, : given.shape[1]] = given / np.where(mu > 0.0, mu, 1.0)[:, None]
    return mu, ratio


def tangent_rates(value: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """(n, d - 1) one rate for each tangent; those that are not given are 0."""
    given, (n, d) = array(KIND, "tangent_rate", value), shape
    counts = [count for count in DIMENSIONS if count < d]
    if given.shape not in [(n, count) for count in counts]:
        many = " or ".join(map(str, counts))
        raise InvalidProblem(f"{KIND}: tangent_rate must have shape ({n}, {many}), got {given.shape}")
    result = np.zeros((n, d - 1))
    result[:, : given.shape[1]] = finite(KIND, "tangent_rate", given)
    return result


def mass_matrix(value: Any) -> NDArray[np.float64]:
    mass = square(KIND, "mass", value)
    largest = np.abs(mass).max(initial=0.0)
    skew = np.abs(mass - mass.T)
    if (skew > ASYMMETRY * largest).any():
        i, j = (int(k) for k in np.argwhere(skew > ASYMMETRY * largest)[0])
        difference = f"mass[{i}, {j}] - mass[{j}, {i}] = {mass[i, j] - mass[j, i]:g}"
        raise InvalidProblem(f"{KIND}: mass must be symmetric, but {difference}")
    if (mass.diagonal() <= 0.0).any():
        i = int(np.argmax(mass.diagonal() <= 0.0))
        raise InvalidProblem(f"{KIND}: mass must be positive definite, but mass[{i}, {i}] = {mass[i, i]:g}")
    mass = mass if not skew.any() else 0.5 * (mass + mass.T)
    try:
        np.linalg.cholesky(mass)
    except np.linalg.LinAlgError:
        least = np.linalg.eigvalsh(mass)[0]
        raise InvalidProblem(
            f"{KIND}: mass must be positive definite, but its smallest eigenvalue is {least:g}"
        ) from None
    return mass


def body_masses(value: Any) -> NDArray[np.float64]:
    mass = array(KIND, "mass", value)
    if mass.size == 0:
        return np.zeros((0, 6, 6))
    if mass.ndim != 3 or mass.shape[1:] != (6, 6):
        raise InvalidProblem(f"{KIND}: mass must have shape (bodies, 6, 6), got {mass.shape}")
    if np.array_equal(finite(KIND, "mass", mass), mass.transpose(0, 2, 1)):
        with contextlib.suppress(np.linalg.LinAlgError):
            np.linalg.cholesky(mass)
            return mass
    for body, block in enumerate(mass):
        try:
            mass[body] = mass_matrix(block)
        except InvalidProblem as error:
            raise InvalidProblem(f"{error} (body {body})") from None
    return mass


def body_pairs(value: Any, count: int, name: str = "bodies") -> NDArray[np.int64]:
    try:
        pairs = np.asarray(value)
    except ValueError as error:
        raise InvalidProblem(f"{KIND}: {name} is not an array of whole numbers ({error})") from None
    if pairs.size == 0:
        return np.zeros((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise InvalidProblem(f"{KIND}: {name} must be whole numbers of shape (n, 2), got {pairs.dtype} {pairs.shape}")
    wrong = (pairs < -1) | (pairs >= count)
    if wrong.any():
        i = int(np.argwhere(wrong)[0, 0])
        got = pairs[i].tolist()
        raise InvalidProblem(f"{KIND}: {name}[{i}] = {got}, but there are {count} {name} (-1 is the world)")
    same = pairs[:, 0] == pairs[:, 1]
    if same.any():
        i = int(np.argmax(same))
        raise InvalidProblem(f"{KIND}: {name}[{i}] = {pairs[i].tolist()} touches itself")
    return pairs.astype(np.int64)


def at_least_zero(name: str, value: Any, n: int) -> NDArray[np.float64]:
    result = array(KIND, name, value)
    result = np.full(n, float(result)) if result.ndim == 0 else result
    result = vector(KIND, name, result, n, "normal")
    if (result < 0.0).any():
        i = int(np.argmax(result < 0.0))
        raise InvalidProblem(f"{KIND}: {name} must not be negative, but {name}[{i}] = {result[i]:g}")
    return result


def slips(value: Any, n: int) -> NDArray[np.float64]:
    result = array(KIND, "slip", value)
    if result.shape != (n, 2):
        raise InvalidProblem(f"{KIND}: slip must have shape ({n}, 2), got {result.shape}")
    length = np.hypot(result[:, 0], result[:, 1])
    wrong = np.where(np.isnan(result).all(axis=1), False, ~(np.isfinite(length) & (length > 0.0)))
    if wrong.any():
        i = int(np.argmax(wrong))
        raise InvalidProblem(
            f"{KIND}: slip[{i}] = {result[i].tolist()} is no direction; give a finite vector, or two NaN if unknown"
        )
    # Units already are left as they are, so that problems read from a file equal those written.
    unit = np.isnan(length) | (np.abs(length - 1.0) <= 4.0 * np.finfo(float).eps)
    return result / np.where(unit, 1.0, length)[:, None]


def body_velocities(value: Any, count: int) -> NDArray[np.float64]:
    result = array(KIND, "velocity", value)
    if result.size == 0 and count == 0:
        return np.zeros(0)
    if result.shape not in ((count, 6), (6 * count,)):
        raise InvalidProblem(f"{KIND}: velocity must have shape ({count}, 6) to match mass, got {result.shape}")
    return finite(KIND, "velocity", result).ravel()


def check_frames(rows: NDArray[np.float64], pairs: NDArray[np.int64]) -> None:
    """Normal and tangents of a contact are at right angles, as far as a body moves along them at all."""
    parts = [rows[:, :, :3], rows[:, :, 6:9]]
    for side, directions in enumerate(parts):
        length = np.sqrt((directions**2).sum(axis=2))
        unit = directions / np.where(length > 0.0, length, 1.0)[:, :, None]
        cosines = np.abs(unit @ unit.transpose(0, 2, 1))
        for a, b in ((0, 1), (0, 2), (1, 2)):
            skew = cosines[:, a, b] > SKEW
            if skew.any():
                i = int(np.argmax(skew))
                names = ("normal[{i}]", "tangent[{i}, 0]", "tangent[{i}, 1]")
                pair = f"{names[a]} and {names[b]}".format(i=i)
                raise InvalidProblem(
                    f"{KIND}: {pair} must be at right angles, but at body {pairs[i, side]} "
                    f"their cosine is {cosines[i, a, b]:g}"
                )


def check_delassus(W: NDArray[np.float64]) -> None:
    largest = np.abs(W).max(initial=0.0)
    skew = np.abs(W - W.T)
    worst = float(skew.max(initial=0.0))
    if worst > WARNED * largest:
        i, j = (int(k) for k in np.unravel_index(np.argmax(skew), skew.shape))
        where = f"W[{i}, {j}] - W[{j}, {i}] = {W[i, j] - W[j, i]:g}"
        if worst > PRINTED * largest:
            raise InvalidProblem(f"from_delassus: W must be symmetric, but {where}")
        warnings.warn(
            f"W is not symmetric: {where}, {worst / largest:.1e} of its largest entry; solved and judged as it is",
            UnsymmetricMatrix,
            stacklevel=3,
        )
    if (W.diagonal() < 0.0).any():
        i = int(np.argmax(W.diagonal() < 0.0))
        raise InvalidProblem(f"from_delassus: W must be positive semidefinite, but W[{i}, {i}] = {W[i, i]:g}")
