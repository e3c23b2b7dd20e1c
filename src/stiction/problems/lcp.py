"""Linear complementarity problems, of any field.

    LCP       0 <= z  ⊥  w = M z + q >= 0
    BoxLCP    lo <= z <= hi,  w = H z + q,  w_i >= 0 at lo_i,  <= 0 at hi_i,  = 0 between      [Lacoursiere2003, eq. 2]

Infinite bounds make a box problem mixed: a variable with both bounds infinite is free, and its row an equation.
Problems are validated once, here, and cannot change afterwards: their arrays are private and read-only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.errors import InvalidProblem

if TYPE_CHECKING:
    import os

    from numpy.typing import ArrayLike, NDArray


NOTHING = ((0,), (1, 0))  # shapes of [] and [[]], read as a matrix without entries


@dataclass(frozen=True, eq=False, repr=False)
class BoxLCP:
    """Find `z` with `lo <= z <= hi` and `w = H z + q` complementary to the bounds.

    H: (n, n) matrix; q: (n,) vector; lo, hi: (n,) bounds, -inf and inf allowed, numbers stand for all of them.
    """

    H: NDArray[np.float64]
    q: NDArray[np.float64]
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]

    def __init__(self, H: ArrayLike, q: ArrayLike, lo: ArrayLike = 0.0, hi: ArrayLike = np.inf) -> None:
        matrix = square("BoxLCP", "H", H)
        n = len(matrix)
        vectors = np.empty((3, n))
        vectors[0] = vector("BoxLCP", "q", q, n, "H")
        vectors[1] = bounds("lo", lo, n)
        vectors[2] = bounds("hi", hi, n)
        check_order(vectors[1], vectors[2])
        self._freeze(matrix, vectors)

    def _freeze(self, matrix: NDArray[np.float64], vectors: NDArray[np.float64]) -> None:
        """Keep the data read-only; kernels get `vectors` (rows q, lo, hi) as one array."""
        matrix.flags.writeable = False
        vectors.flags.writeable = False
        for name, value in (("H", matrix), ("q", vectors[0]), ("lo", vectors[1]), ("hi", vectors[2])):
            object.__setattr__(self, name, value)
        object.__setattr__(self, "vectors", vectors)

    vectors: NDArray[np.float64]

    @property
    def n(self) -> int:
        """Number of variables."""
        return len(self.H)

    @cached_property
    def symmetric(self) -> bool:
        """Whether `H` equals its transpose to the last bit."""
        from stiction.arrays.dense import is_symmetric

        return bool(is_symmetric(self.H))  # type: ignore[no-untyped-call]

    @cached_property
    def smallest_diagonal(self) -> float:
        """The smallest diagonal entry of `H` (infinity for n = 0): its sign rules out P and P0 matrices."""
        return float(self.H.diagonal().min(initial=np.inf))

    @cached_property
    def bounded(self) -> int:
        """Number of variables with a finite bound; the others are free."""
        return int(np.sum(np.isfinite(self.lo) | np.isfinite(self.hi)))

    @staticmethod
    def from_mixed(A: ArrayLike, B: ArrayLike, C: ArrayLike, D: ArrayLike, a: ArrayLike, b: ArrayLike) -> BoxLCP:
        """The mixed problem A x + C y + a = 0, 0 <= y ⊥ D x + B y + b >= 0, as a box problem in (x, y)."""
        A, B = square("from_mixed", "A", A), square("from_mixed", "B", B)
        free, bounded = len(A), len(B)
        C = matrix("from_mixed", "C", C, (free, bounded))
        D = matrix("from_mixed", "D", D, (bounded, free))
        a = vector("from_mixed", "a", a, free, "A")
        b = vector("from_mixed", "b", b, bounded, "B")
        lo = np.concatenate([np.full(free, -np.inf), np.zeros(bounded)])
        return BoxLCP(np.block([[A, C], [D, B]]), np.concatenate([a, b]), lo, np.inf)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies and unpickled problems are built anew, hence checked and read-only too."""
        return BoxLCP, (self.H, self.q, self.lo, self.hi)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the problem as `.npz`, to be read by `stiction.load`."""
        from stiction.problems.files import save

        save(self, path)

    def __repr__(self) -> str:
        free = int(np.sum(np.isinf(self.lo) & np.isinf(self.hi)))
        boxed = int(np.sum(np.isfinite(self.lo) & np.isfinite(self.hi)))
        return f"{type(self).__name__}(n={self.n}, free={free}, boxed={boxed})"


@dataclass(frozen=True, eq=False, repr=False)
class LCP(BoxLCP):
    """Find `z >= 0` with `w = M z + q >= 0` and `z · w = 0`.

    M: (n, n) matrix; q: (n,) vector.
    """

    def __init__(self, M: ArrayLike, q: ArrayLike) -> None:
        matrix = square("LCP", "M", M)
        vectors = np.zeros((3, len(matrix)))
        vectors[0] = vector("LCP", "q", q, len(matrix), "M")
        vectors[2] = np.inf
        self._freeze(matrix, vectors)

    @property
    def M(self) -> NDArray[np.float64]:
        """The matrix, by its usual name."""
        return self.H

    def __reduce__(self) -> tuple[Any, ...]:
        return LCP, (self.H, self.q)

    def __repr__(self) -> str:
        return f"LCP(n={self.n})"


def array(kind: str, name: str, value: Any) -> NDArray[np.float64]:
    """A private float64 copy of real numbers."""
    if hasattr(value, "toarray"):
        raise InvalidProblem(f"{kind}: {name} is a sparse matrix; pass {name}.toarray()")
    try:
        raw = np.asarray(value)
        if raw.dtype.kind not in "bifu":
            raise InvalidProblem(f"{kind}: {name} must hold real numbers, got dtype {raw.dtype}")
        return np.array(raw, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        if isinstance(error, InvalidProblem):
            raise
        raise InvalidProblem(f"{kind}: {name} is not an array of numbers ({error})") from None


def finite(kind: str, name: str, value: NDArray[np.float64]) -> NDArray[np.float64]:
    if not np.isfinite(value).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(value))[0])
        at = ", ".join(map(str, where))
        raise InvalidProblem(f"{kind}: {name} must be finite, but {name}[{at}] = {value[where]}")
    return value


def square(kind: str, name: str, value: Any) -> NDArray[np.float64]:
    result = array(kind, name, value)
    if result.shape in NOTHING:
        result = np.zeros((0, 0))
    if result.ndim != 2 or result.shape[0] != result.shape[1]:
        raise InvalidProblem(f"{kind}: {name} must be a square matrix, got shape {result.shape}")
    return finite(kind, name, result)


def matrix(kind: str, name: str, value: Any, shape: tuple[int, int]) -> NDArray[np.float64]:
    result = array(kind, name, value)
    if result.shape in NOTHING and 0 in shape:
        result = np.zeros(shape)
    if result.shape != shape:
        raise InvalidProblem(f"{kind}: {name} must have shape {shape}, got {result.shape}")
    return finite(kind, name, result)


def vector(kind: str, name: str, value: Any, n: int, partner: str) -> NDArray[np.float64]:
    result = array(kind, name, value)
    if result.shape != (n,):
        raise InvalidProblem(f"{kind}: {name} must have shape ({n},) to match {partner}, got {result.shape}")
    return finite(kind, name, result)


def bounds(name: str, value: Any, n: int) -> NDArray[np.float64]:
    result = array("BoxLCP", name, value)
    if result.shape not in ((), (n,)):
        raise InvalidProblem(f"BoxLCP: {name} must be a number or have shape ({n},) to match H, got {result.shape}")
    result = np.broadcast_to(result, (n,))
    impossible = np.isnan(result) | (result == (np.inf if name == "lo" else -np.inf))
    if impossible.any():
        i = int(np.argmax(impossible))
        raise InvalidProblem(f"BoxLCP: {name}[{i}] = {result[i]} leaves no value for z[{i}]")
    return result


def check_order(lo: NDArray[np.float64], hi: NDArray[np.float64]) -> None:
    if (lo > hi).any():
        i = int(np.argmax(lo > hi))
        raise InvalidProblem(f"BoxLCP: lo[{i}] = {lo[i]:g} exceeds hi[{i}] = {hi[i]:g}; swap or widen the bounds")
