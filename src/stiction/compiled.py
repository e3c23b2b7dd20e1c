"""How kernels are compiled, and where they write.

A kernel is plain Python over arrays and numbers, compiled by Numba at its first call and kept on disk, for exactly
these sources (`kernel_cache`). It allocates nothing: everything it writes lies in a `Workspace` handed in, which is
kept per thread and grows to the largest problem seen. Importing this module imports Numba; `import stiction` does not.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numba import njit
from numba.core import event

from stiction.kernel_cache import keep
from stiction.linking import compiled

if TYPE_CHECKING:
    from numpy.typing import NDArray

F = TypeVar("F", bound=Callable[..., Any])

# Reassociation lets sums be vectorized; NaN and infinity keep their meaning, because bounds are infinite.
FAST_SUMS = {"reassoc", "contract", "nsz"}


def kernel(function: F) -> F:
    """Compile lazily, cache on disk, divide as IEEE says (no exceptions inside kernels).

    Kernels are compiled without Numba's runtime: an allocation inside one does not compile.
    """
    return compiled(function, keep, error_model="numpy", _nrt=False)  # type: ignore[no-any-return]


def inlined(function: F) -> F:
    """A kernel compiled into its callers: for what is called at every pivot with a NamedTuple too large to copy."""
    return njit(inline="always", error_model="numpy", _nrt=False)(function)  # type: ignore[no-any-return]


def sums(function: F) -> F:
    """A kernel whose sums may be reordered: dot products and the like."""
    return compiled(function, keep, error_model="numpy", _nrt=False, fastmath=FAST_SUMS)  # type: ignore[no-any-return]


def minima(function: F) -> F:
    """A kernel of comparisons in which NaN cannot occur, so that they can be vectorized; infinity can."""
    flags = {*FAST_SUMS, "nnan"}
    return compiled(function, keep, error_model="numpy", _nrt=False, fastmath=flags)  # type: ignore[no-any-return]


class Workspace(NamedTuple):
    """Scratch of one solve: flat buffers, cut into named arrays inside the kernel."""

    floats: NDArray[np.float64]
    ints: NDArray[np.int64]


_scratch = threading.local()


def workspace(floats: int, ints: int) -> Workspace:
    """The thread's scratch, at least this large; the same buffers until a larger problem comes."""
    work: Workspace | None = getattr(_scratch, "work", None)
    if work is None or work.floats.size < floats or work.ints.size < ints:
        have_floats, have_ints = (0, 0) if work is None else (work.floats.size, work.ints.size)
        work = Workspace(np.empty(max(floats, have_floats, 1024)), np.empty(max(ints, have_ints, 256), np.int64))
        _scratch.work = work
    return work


class _OnceNotice(event.Listener):  # type: ignore[misc]
    """Tells a person at a terminal, once, why the first solve takes seconds."""

    told = False

    def on_start(self, event: Any) -> None:
        module = getattr(getattr(event.data.get("dispatcher"), "py_func", None), "__module__", None) or ""
        if not self.told and module.startswith("stiction") and sys.stderr.isatty():
            type(self).told = True
            print("stiction: compiling kernels (once; later runs load them from the cache) ...", file=sys.stderr)

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _OnceNotice())
