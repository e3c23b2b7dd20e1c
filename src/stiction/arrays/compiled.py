"""How kernels are compiled, and where they write.

A kernel is plain Python over arrays and numbers. Its machine code is looked up at the first call: shipped with the
package (`prebuilt`), kept on disk by an earlier process for exactly these sources (`kernel_cache`), or compiled now
(`linking`); `calls` defines how Python calls it. A kernel allocates nothing: it writes only to a `Workspace` passed in,
one per thread, which grows to the largest problem seen. Numba is imported only when something has to be compiled.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from functools import cached_property, update_wrapper
from sys import getrefcount
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from stiction.arrays.sources import unusual

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from stiction.arrays.calls import Code
    from stiction.arrays.kernel_cache import Made

F = TypeVar("F", bound=Callable[..., Any])

# Reassociation lets sums be vectorized; NaN and infinity keep their meaning, because bounds are infinite.
FAST_SUMS = {"reassoc", "contract", "nsz"}
# Divide as IEEE 754 (no exceptions inside kernels), and without Numba's runtime: an allocation does not compile. Every
# option is set, since Numba takes those that are not from the caller that it happens to compile first: whether sums are
# reordered would depend on what was compiled before.
PLAIN: dict[str, Any] = {
    "nopython": True,
    "boundscheck": None,
    "error_model": "numpy",
    "_nrt": False,
    "fastmath": set(),
    "forceinline": False,
}


def is_compiled() -> bool:
    """Whether kernels are compiled at all: `NUMBA_DISABLE_JIT=1` has them run as they are written."""
    numba = sys.modules.get("numba")
    if numba is not None:
        return not numba.config.DISABLE_JIT
    return os.environ.get("NUMBA_DISABLE_JIT", "0").strip() in ("", "0")


_making = threading.RLock()  # no kernel is compiled twice


class Target:
    """The target of compilation; `gpu` is set while Numba's compilers are locked (`gpu.for_gpu`)."""

    gpu = False
    one_piece = False  # compile kernels marked `@alone` into their callers too: for libraries that are shipped


class Kernel:
    """A compiled function. When Numba compiles other kernels that call it, it sees a dispatcher of its own (`part`)."""

    __qualname__: str
    alone = False  # whether other kernels call it in an object file of its own
    once = False  # whether it is never compiled into its callers

    def __init__(self, function: Any, options: dict[str, Any], as_written: bool = False) -> None:
        update_wrapper(self, function)
        self.py_func, self.targetoptions = function, options
        self.codes: dict[str, Code] = {}  # by kinds: machine code that is loaded stays loaded
        self.calls: dict[str, Any] = {}
        self.run: Any = function if as_written else self.first

    def __call__(self, *given: Any) -> Any:
        return self.run(*given)

    def first(self, *given: Any) -> Any:
        """Replace `run` by a function that chooses machine code by the kinds of the arguments, then call it."""
        from stiction.arrays.calls import kinds_of, tidied

        calls: dict[str, Any] = {}

        def choose(*given: Any) -> Any:
            kinds = kinds_of(given)
            if kinds not in calls:
                calls[kinds] = self.call(kinds, self.run)
                # From now on these kinds are tried first, and the others after them.
                self.run = calls[kinds] or self.run
            call = calls[kinds]
            return call(*map(tidied, given)) if call else self.whole(*given)

        self.run = choose
        return choose(*given)

    def call(self, kinds: str, otherwise: Any) -> Any:
        """A callable for arguments of these kinds, which passes others on to `otherwise`; None if only `whole` fits."""
        from stiction.arrays.calls import call_of

        code = self.code(kinds)
        return code and call_of(code, kinds, not self.targetoptions.get("nogil"), otherwise)

    def code(self, kinds: str) -> Code | None:
        """The machine code for these kinds: shipped, kept, or compiled now; None where Numba's dispatcher is needed."""
        from stiction.arrays.calls import UNKNOWN, array_is_as_known, name_of
        from stiction.arrays.prebuilt import library

        if kinds in self.codes:
            return self.codes[kinds]
        if UNKNOWN in kinds or unusual() or not array_is_as_known():
            return None
        shipped = library()
        found = shipped.find(name_of(self), kinds) if shipped is not None else None
        if found is None:
            from stiction.arrays.kernel_cache import filed

            def make() -> Made | None:
                from stiction.arrays.linking import compiled

                return compiled(self, kinds, symbol)

            name, key, symbol = filed(self, kinds)
            found = kept_or_made(name, key, make)
        if found is not None:
            self.codes[kinds] = found
        return found

    @cached_property
    def whole(self) -> Any:
        """Numba's dispatcher for calls from Python."""
        from stiction.arrays.linking import whole

        return whole(self)

    @cached_property
    def part(self) -> Any:
        """Numba's dispatcher for calls from other kernels."""
        from stiction.arrays.linking import part

        return part(self)

    @cached_property
    def gpu_part(self) -> Any:
        """numba-cuda's dispatcher for calls from other kernels."""
        from stiction.arrays.gpu import part

        return part(self)

    @property
    def _numba_type_(self) -> Any:
        from numba import types

        return types.Dispatcher(self.gpu_part if Target.gpu else self.part)

    def for_arguments(self, *given: Any) -> Any:
        """The callable for arguments of these kinds, to be called without looking it up every time."""
        from stiction.arrays.calls import kinds_of

        kinds = kinds_of(given)
        if kinds not in self.calls:
            self.calls[kinds] = self.call(kinds, self) or self.whole
        return self.calls[kinds]

    def __repr__(self) -> str:
        return f"<kernel {self.__module__}.{self.__qualname__}>"


def kept_or_made(name: str, key: str, make: Callable[[], Made | None]) -> Code | None:
    """Load machine code that an earlier process kept, or make it and keep it."""
    from stiction.arrays.kernel_cache import keep, kept, loaded

    with _making:
        found = kept(name, key)
        if found is None:
            made = make()
            if made is not None:
                keep(name, key, made)
                found = loaded(made)
    return found


def gateway() -> int:
    """Address of the C function through which Python calls kernels: shipped, kept, or compiled now."""
    from stiction.arrays.prebuilt import library

    shipped = library()
    if shipped is not None:
        return shipped.gateway

    def make() -> Made:
        from stiction.arrays.linking import compiled_gateway

        return compiled_gateway()

    code = kept_or_made("gateway.kernel", "gateway", make)
    assert code is not None
    return code.entry


class Built:
    """An intrinsic, made when the first kernel that uses it is compiled; `written` does the same in Python."""

    def __init__(self, make: Callable[[Any], Any], written: Callable[..., Any]) -> None:
        self.make, self.written = make, written

    def __call__(self, *given: Any) -> Any:
        return self.written(*given)

    @cached_property
    def cpu_type(self) -> Any:
        from stiction.arrays.linking import Toolbox, type_of_built

        return type_of_built(self.make(Toolbox))

    @cached_property
    def gpu_type(self) -> Any:
        from stiction.arrays.gpu import Toolbox, type_of_built

        return type_of_built(self.make(Toolbox))

    @property
    def _numba_type_(self) -> Any:
        return self.gpu_type if Target.gpu else self.cpu_type


def built(make: Callable[[Any], Any], written: Callable[..., Any]) -> Any:
    """An intrinsic for kernels: `make(toolbox)` where they are compiled, the Python function `written` where not.

    The toolbox holds the parts of Numba that differ between CPU and GPU: `intrinsic`, `cgutils`, `make_array` and
    `populate_array`.
    """
    return Built(make, written) if is_compiled() else written


def made(function: F, options: dict[str, Any], as_written: bool = False) -> F:
    return Kernel(function, {**PLAIN, **options}, as_written) if is_compiled() else function  # type: ignore[return-value]


def kernel(function: F) -> F:
    """Compiled at its first call."""
    return made(function, {})


def inlined(function: F) -> F:
    """A kernel compiled into its callers: for what is called at every pivot with a NamedTuple too large to copy."""
    return made(function, {"inline": "always"})


def alone(function: F) -> F:
    """A kernel compiled apart from its callers: once for all of them, possibly by another process (`ahead`)."""
    if is_compiled():
        function.alone = True  # type: ignore[attr-defined]
    return function


def once(function: F) -> F:
    """A kernel never compiled into its callers: a long one that several call, beside which a call costs nothing."""
    if is_compiled():
        function.once = True  # type: ignore[attr-defined]
    return function


def in_callers(function: F) -> F:
    """A kernel compiled into its callers: passing workspaces would cost as much as the arithmetic in it."""
    return made(function.py_func, {**function.targetoptions, "forceinline": True}) if is_compiled() else function  # type: ignore[attr-defined]


def sums(function: F) -> F:
    """A kernel whose sums may be reordered: dot products and the like."""
    return made(function, {"fastmath": FAST_SUMS})


def without_lock(function: F) -> F:
    """A kernel that releases the interpreter's lock; its arguments must not be used by other threads meanwhile."""
    return made(function, {"nogil": True})


def minima(function: F) -> F:
    """A kernel whose comparisons never see NaN (infinity is allowed), so that they can be vectorized."""
    return made(function, {"fastmath": {*FAST_SUMS, "nnan"}})


def shared(function: F) -> F:
    """A function that kernels call compiled and Python calls as it is written: sizes of workspaces."""
    return made(function, {}, as_written=True)


class Workspace(NamedTuple):
    """Scratch of one solve: flat buffers, cut into named arrays inside the kernel."""

    floats: NDArray[np.float64]
    ints: NDArray[np.int64]


_scratch = threading.local()
OURS = 3  # references to a workspace that is free: the thread's, the function's, and the argument of `getrefcount`


def workspace(floats: int, ints: int) -> Workspace:
    """The thread's scratch buffers, at least this large; they are reused until a larger problem comes.

    If a caller still holds them, new buffers are returned. Hold the workspace or its arrays as long as you use them: a
    view of a part does not count as holding.
    """
    work: Workspace | None = getattr(_scratch, "work", None)
    if (
        work is None
        or work.floats.size < floats
        or work.ints.size < ints
        or getrefcount(work) > OURS
        or getrefcount(work.floats) > OURS - 1
    ):
        have_floats, have_ints = (0, 0) if work is None else (work.floats.size, work.ints.size)
        work = Workspace(np.empty(max(floats, have_floats, 1024)), np.empty(max(ints, have_ints, 256), np.int64))
        _scratch.work = work
    return work
