"""How kernels that call each other become one piece of machine code.

Numba compiles every function as if it were called from Python: it gets a wrapper that unpacks Python's arguments, its
code is optimized together with that of all functions that it calls, and machine code is made of it. A function five
calls below is so optimized five times over, and nearly all kernels are only ever called by other kernels.

Here a kernel has two sides. Called from another kernel it is a `Part`: typed and lowered, and no more. Called from
Python it is a `Whole`: linked with all parts below it, each once, then optimized once, and kept on disk
(`kernel_cache`). The first solve takes a third of the time for it, and what is optimized together is no slower.

This uses places of Numba that are meant for extension (a pipeline's class, a dispatcher's class) and some that are
not (libraries of code); where these are not as known, kernels are compiled as Numba does.
"""

from __future__ import annotations

import os
import sys
import threading
from itertools import count
from typing import TYPE_CHECKING, Any

from numba import njit
from numba.core import cgutils, event
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from stiction.arrays.kernel_cache import keep

if TYPE_CHECKING:
    from stiction.arrays.compiled import Kernel

try:
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler, Flags
    from numba.core.registry import CPUDispatcher

    USED = (
        "_ensure_finalized", "_finalize_dynamic_globals", "_get_module_for_linking", "_optimize_final_module",
        "_optimize_functions", "_raise_if_finalized", "_verify_declare_only_symbols", "finalize",
        "get_pointer_to_function",
    )  # fmt: skip
    KNOWN = all(hasattr(JITCodeLibrary, name) for name in USED)
except ImportError:
    KNOWN = False

PATIENCE = 2.0  # s that compiling may take unannounced
_numbers = count()


def whole(kernel: Kernel) -> Any:
    """The dispatcher that Python calls."""
    if not KNOWN:
        return kernel.part
    return keep(Whole(kernel.py_func, targetoptions=dict(kernel.targetoptions), pipeline_class=ForPython))


def part(kernel: Kernel) -> Any:
    """The dispatcher that kernels call."""
    if not KNOWN:
        options = {name: value for name, value in kernel.targetoptions.items() if name != "nopython"}
        return keep(njit(**options)(kernel.py_func))
    options = {**kernel.targetoptions, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    return CPUDispatcher(kernel.py_func, targetoptions=options, pipeline_class=ForKernels)


class Toolbox:
    """What `built` hands to those who make intrinsics."""

    intrinsic, cgutils = staticmethod(intrinsic), cgutils
    make_array, populate_array = staticmethod(make_array), staticmethod(populate_array)


def type_of_built(built: Any) -> Any:
    """The type by which kernels know something that was made after Numba began to compile them."""
    target = njit(lambda: None).targetdescr
    target.typing_context.refresh()
    target.target_context.refresh()
    return target.typing_context.resolve_value_type(built)


class Notice(event.Listener):  # type: ignore[misc]
    """Says once, on standard error, why a first solve takes so long; `STICTION_NOTICE=0` keeps it quiet."""

    def __init__(self) -> None:
        self.timer: threading.Timer | None = None
        self.within = 0  # compilations: one begins others
        self.said = os.environ.get("STICTION_NOTICE", "1") == "0"

    def on_start(self, event: Any) -> None:
        self.within += 1
        if self.timer is None and not self.said:
            self.timer = threading.Timer(PATIENCE, self.say)
            self.timer.daemon = True
            self.timer.start()

    def on_end(self, event: Any) -> None:
        self.within -= 1
        if self.timer is not None and not self.within:
            self.timer.cancel()
            self.timer = None

    def say(self) -> None:
        if not self.said:
            self.said = True
            print("stiction: compiling kernels (once; later runs load them from the cache) ...", file=sys.stderr)


event.register("numba:compile", Notice())


if KNOWN:

    class Whole(CPUDispatcher):  # type: ignore[misc]
        """A kernel as Python calls it."""

    class ForPython(Compiler):  # type: ignore[misc]
        """Numba's compiler, with a library that gathers all parts."""

        def __init__(
            self, typing: Any, target: Any, library: Any, given: Any, back: Any, flags: Any, *rest: Any
        ) -> None:
            if library is None:
                library = WholeLibrary(target.codegen(), f"stiction-{next(_numbers)}")
                library.enable_object_caching()
            super().__init__(typing, target, library, given, back, QuickFlags(flags), *rest)

    class ForKernels(Compiler):  # type: ignore[misc]
        """The same, with a library for a part."""

        def __init__(
            self, typing: Any, target: Any, library: Any, given: Any, back: Any, flags: Any, *rest: Any
        ) -> None:
            library = library or PartLibrary(target.codegen(), f"stiction-{next(_numbers)}")
            super().__init__(typing, target, library, given, back, QuickFlags(flags), *rest)

    class QuickFlags(Flags):  # type: ignore[misc]
        """Numba's flags, compared first by what is set: they are looked up tens of thousands of times."""

        __slots__ = ()

        def __hash__(self) -> int:
            return HASH

        def __eq__(self, other: object) -> bool:
            if isinstance(other, Flags) and self._values == other._values:
                return True
            return bool(super().__eq__(other))

    HASH = hash(Flags())  # of the names of all flags, which is what Numba takes

    class WholeLibrary(JITCodeLibrary):  # type: ignore[misc]
        """Code with all that it calls, optimized at once."""

        def finalize(self) -> None:
            self._linking_libraries: Any = closure(self._linking_libraries)
            super().finalize()

        def _optimize_final_module(self) -> None:
            # Numba's own has a pass before this that brings counts of references together; there are none here.
            manager, builder = self._codegen._module_pass_manager()
            with self._recorded_timings.record("Module passes (full optimization)", builder):
                manager.run(self._final_module, builder)

    class ForObject(Compiler):  # type: ignore[misc]
        """The same, with a library whose code is written to a file and not run here (`building`)."""

        def __init__(
            self, typing: Any, target: Any, library: Any, given: Any, back: Any, flags: Any, *rest: Any
        ) -> None:
            library = library or ObjectLibrary(target.codegen(), f"stiction-{next(_numbers)}")
            super().__init__(typing, target, library, given, back, QuickFlags(flags), *rest)

    class ObjectLibrary(WholeLibrary):
        """A whole of which no machine code is made here."""

        @property
        def codegen(self) -> Any:
            return NoEnvironment(self._codegen)

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._verify_declare_only_symbols()
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0

    class PartLibrary(JITCodeLibrary):  # type: ignore[misc]
        """Code that is only ever linked into a whole: neither optimized nor made into machine code by itself."""

        @property
        def codegen(self) -> Any:
            return NoEnvironment(self._codegen)

        def _optimize_functions(self, module: Any) -> None:
            module.data_layout = self._codegen._data_layout

        def finalize(self) -> None:
            self._raise_if_finalized()
            self._finalize_dynamic_globals()
            # Several wholes may hold it, and drop what they have inlined.
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage.name == "external":
                    function.linkage = "linkonce_odr"
            self._shared_module = self._final_module
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0

    class NoEnvironment:
        """Numba's generator of code, for parts, which have no environment in memory."""

        def __init__(self, codegen: Any) -> None:
            self.codegen = codegen

        def set_env(self, name: str, env: Any) -> None:
            pass

        def __getattr__(self, name: str) -> Any:
            return getattr(self.codegen, name)


def closure(libraries: list[Any]) -> list[Any]:
    """These and, of parts, all that they call, each once; in an order that does not change between runs."""
    found: dict[int, Any] = {}
    left = list(reversed(libraries))
    while left:
        library = left.pop()
        if id(library) not in found:
            found[id(library)] = library
            if isinstance(library, PartLibrary):
                left += reversed(library._linking_libraries)
    return list(found.values())
