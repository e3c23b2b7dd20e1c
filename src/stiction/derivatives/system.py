"""Python's side of the linear system of the active modes (`reduced`), of its answers and of how load is shared."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.arrays.compiled import workspace
from stiction.derivatives.answers import answer_columns, solve_transposed
from stiction.derivatives.load import exchanges_of, spread_load, write_loops, write_sharing
from stiction.derivatives.reduced import (
    ALIKE,
    COMPLIANT,
    FLAGS,
    INNER,
    LEFT,
    RIGHT,
    UNDETERMINED,
    Given,
    Memory,
    Work,
    examine,
    examine_modes,
    reduce_again,
    room_sizes,
    work_sizes,
    work_views,
    write_inner,
)
from stiction.derivatives.tolerances import DEPENDENT, SMALLEST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

NO_LOOPS = np.zeros((0, 0))


class System:
    """A, B and F of a solution's modes, factored.

    rows: active rows; near: contacts at kinks; ranks and loops: of B and of F
    """

    def __init__(self, given: Given, shape: tuple[int, ...], floats: Numbers, ints: NDArray[np.int64]) -> None:
        self.given, self.shape, self.buffers = given, shape, (floats, ints)

    @classmethod
    def examined(cls, given: Given) -> System:
        """The system of the modes that follow from the velocities, at the solution's own impulses."""
        n, d, width = given.rows.shape
        shape = n, d, int(given.trees[-1]), width
        floats, ints = work_sizes(*shape)
        system = cls(given, shape, np.empty(floats), np.empty(ints, np.int64))
        system.found(examine(given, DEPENDENT, system.memory))
        return system

    def with_modes(self, dependent: float = DEPENDENT, **changes: Any) -> System:
        """The system of other modes or impulses, which are arrays of `work.modes` or `impulse`."""
        floats, ints = self.buffers
        other = System(self.given, self.shape, floats.copy(), ints.copy())
        for name, value in changes.items():
            (other.work.impulse if name == "impulse" else getattr(other.work.modes, name))[:] = value
        other.found(examine_modes(self.given, dependent, other.memory))
        return other

    def found(self, numbers: tuple[int, ...]) -> None:
        self.rows, self.near, self.rank_zero, self.rank_may, self.loops_zero, self.loops_may = numbers

    @property
    def memory(self) -> Memory:
        """Where kernels find all of it, and scratch."""
        return Memory(*self.buffers, *workspace(*room_sizes(*self.shape)))

    @cached_property
    def work(self) -> Work:
        """All arrays, as they lie in the buffers."""
        return work_views(*self.shape, *self.buffers)  # type: ignore[no-any-return]

    @property
    def flags(self) -> NDArray[np.int64]:
        return self.buffers[1][-len(FLAGS) :]

    @property
    def alike(self) -> bool:
        """Whether B = F."""
        return bool(self.flags[ALIKE])

    @property
    def determined(self) -> bool:
        """Whether the motion is."""
        return bool(self.flags[INNER] != UNDETERMINED)

    @property
    def left(self) -> int:
        """Dimensions of motion that active contacts leave."""
        return int(self.flags[RIGHT])

    @cached_property
    def lowest(self) -> Numbers:
        """Pseudo-inverse of Yᵀ A Z where the motion is not determined."""
        if self.determined:
            return NO_LOOPS
        inner = np.empty((int(self.flags[LEFT]), int(self.flags[RIGHT])))
        write_inner(self.given, inner, self.memory)
        if not inner.size:
            return np.zeros(inner.shape[::-1])
        U, sizes, Vt = np.linalg.svd(inner, full_matrices=False)
        count = int((sizes > SMALLEST * sizes[0]).sum())
        return np.ascontiguousarray((Vt[:count].T / sizes[:count]) @ U[:, :count].T)

    @cached_property
    def loops(self) -> tuple[Numbers, Numbers]:
        """N of B and of F: what can be exchanged between groups without moving anything."""
        N = self.loops_in(False, self.rank_zero, self.loops_zero)
        return N, N if self.alike else self.loops_in(True, self.rank_may, self.loops_may)

    def loops_in(self, of_may: bool, rank: int, count: int) -> Numbers:
        if not count:
            return NO_LOOPS
        N = np.empty((count, rank + count))
        write_loops(self.given, of_may, N, self.memory)
        return N

    @cached_property
    def exchanges(self) -> Numbers:
        """(k, n, d) impulses, in N s, that move nothing, each of unit size in the normal form."""
        n, d = self.shape[:2]
        count, spread = self.rows - self.rank_may, np.zeros((self.rows - self.rank_may, n, d))
        if count:
            exchanges_of(
                self.given, not self.alike, self.loops[1], np.empty((count, self.rows)), spread, self.memory
            )  # fmt: skip
        return spread

    def shared(self, pushing: bool) -> Numbers:
        """(n,) the part of a contact's unit impulses (pushing) or rates that can be exchanged for others."""
        result, of_may = np.zeros(self.shape[0]), pushing and not self.alike
        if self.rows > (self.rank_may if of_may else self.rank_zero):
            write_sharing(self.given, of_may, self.loops[of_may], result, self.memory)
        return result

    def spread_load(self, more: int) -> int:
        """Impulses of the same motion further within their bounds; returns how many kinks are left."""
        self.near = spread_load(self.given, self.loops[1], more, self.memory)
        self.reduce()
        return self.near

    def take(self, impulse: Numbers) -> None:
        """Other impulses of the same motion."""
        self.work.impulse[:] = impulse
        self.reduce()

    def reduce(self) -> None:
        """C, and with it the reduced system, at the impulses that there are now."""
        if self.flags[COMPLIANT]:
            reduce_again(self.given, self.memory)
            self.__dict__.pop("lowest", None)

    def answers(
        self, r: Numbers, e: Numbers, f: Numbers, pushing: bool = True
    ) -> tuple[Numbers, Numbers, Numbers, Numbers, float]:
        """y (columns, m), impulses and velocities of contacts (columns, n, d), what is left of those that should be
        zero (columns,), and the residual.

        r: (columns, m) whitened momentum, overwritten; e, f: (columns, n, d) velocities and impulses at contacts
        """
        y, p, u, off = np.empty(r.shape), np.empty(e.shape), np.empty(e.shape), np.empty(len(r))
        over, size = answer_columns(
            self.given, self.loops, self.lowest, pushing, (r, e, f), (y, p, u, off), self.memory
        )  # fmt: skip
        return y, p, u, off, over / size if size > 0.0 else 0.0

    def transposed(self, x: Numbers, p: Numbers, u: Numbers) -> tuple[Numbers, Numbers, Numbers]:
        """Gradients by momentum (m,), contact velocities and contact impulses (n, d), all in the normal form."""
        r, e, f = np.empty(len(x)), np.empty(p.shape), np.empty(p.shape)
        solve_transposed(self.given, self.loops, self.lowest, x, p, u, r, e, f, self.memory)
        return r, e, f
