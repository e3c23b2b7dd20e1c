"""The same kernels on a GPU, through numba-cuda.

A kernel that one on a GPU calls is compiled from the source that a CPU runs: `compiled.Kernel` and `compiled.Built`
hand out numba-cuda's dispatchers and intrinsics while `for_gpu` is entered. Sums are not reordered there, as a thread
has no vectors to fill. What is compiled is kept on disk beside the kernels of the CPU (`kernel_cache`), as machine code
of the GPU at hand.

Under Numba's simulator (`NUMBA_ENABLE_CUDASIM=1`) nothing is compiled, and threads of a GPU are threads of Python.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
import threading
import warnings
from typing import TYPE_CHECKING, Any

import numba_cuda
from numba import cuda, types
from numba.core import config

from stiction.arrays.compiled import Target
from stiction.arrays.kernel_cache import ADVICE, places, read, stamp_of, title, warn_once, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stiction.arrays.compiled import Kernel

SIMULATED = bool(config.ENABLE_CUDASIM)
TAKEN = ("inline", "forceinline")  # options of a kernel that mean the same there

if not SIMULATED:
    from numba.core.compiler_lock import global_compiler_lock as cpu_lock
    from numba.cuda import cgutils
    from numba.cuda.core.compiler_lock import global_compiler_lock as gpu_lock
    from numba.cuda.descriptor import cuda_target
    from numba.cuda.dispatcher import CUDADispatcher, _Kernel
    from numba.cuda.extending import intrinsic
    from numba.cuda.np.arrayobj import make_array, populate_array
    from numba.cuda.serialize import dumps

    class Toolbox:
        """The toolbox that `built` hands to makers of intrinsics."""

        intrinsic, cgutils = staticmethod(intrinsic), cgutils
        make_array, populate_array = staticmethod(make_array), staticmethod(populate_array)


@contextlib.contextmanager
def for_gpu() -> Iterator[None]:
    """Compile for the GPU; nobody else compiles meanwhile."""
    with cpu_lock, gpu_lock:
        Target.gpu = True
        try:
            yield
        finally:
            Target.gpu = False


def launchable(function: Any, arguments: tuple[Any, ...], registers: int) -> Any:
    """A function as a kernel that is launched, compiled for arguments of these types or read from disk.

    registers: of a thread at most; fewer let more threads wait for memory at once
    """
    if SIMULATED:
        return cuda.jit(function)
    dispatcher = cuda.jit(max_registers=registers)(function)
    if hasattr(dispatcher, "_cache"):
        dispatcher._cache = GpuCache(function)
    with for_gpu():
        dispatcher.compile(arguments)
    for each in dispatcher.overloads.values():
        _ = each.regs_per_thread  # asks the GPU, and so loads it: threads that launch at once would load it twice
    return dispatcher


_quiet = threading.Lock()


def launched(kernel: Any, blocks: int, threads: int, stream: Any) -> Any:
    """A kernel that is ready to be called; that a small batch does not fill a GPU needs no warning."""
    with _quiet, warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*low occupancy")
        return kernel[blocks, threads, stream]


def array_type(number: Any, axes: int) -> Any:
    """The type of a contiguous array."""
    return types.Array(number, axes, "C")


def part(kernel: Kernel) -> Any:
    """The dispatcher that kernels on a GPU call."""
    options = {name: kernel.targetoptions[name] for name in TAKEN if kernel.targetoptions.get(name)}
    return CUDADispatcher(kernel.py_func, {**options, "device": True, "debug": False, "opt": True})


def type_of_built(built: Any) -> Any:
    """The type by which kernels on a GPU know something that was made after Numba began to compile them."""
    cuda_target.typing_context.refresh()
    cuda_target.target_context.refresh()
    return cuda_target.typing_context.resolve_value_type(built)


class GpuCache:
    """The compiled signatures of one kernel for GPUs: numba-cuda asks here before it compiles, and hands in the result.

    Of the texts that machine code was made of nothing is kept.
    """

    def __init__(self, function: Any) -> None:
        self.function = function

    @property
    def cache_path(self) -> str | None:
        folder = places().folder
        return None if folder is None else str(folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code that an earlier process compiled; None if there is none that can be read."""
        target_context.refresh()  # what is unpickled refers to types that this registers
        name, key = self.filed(sig, target_context.codegen())

        def understood(content: bytes) -> Any:
            kept, payload = pickle.loads(content)
            return _Kernel._rebuild(**payload) if kept == key else None

        return read(name, understood) if name else None

    def save_overload(self, sig: Any, data: Any) -> None:
        where = places()
        name, key = self.filed(sig, data.codegen)
        if where.folder is None or not name:
            return
        library = data.library
        texts = library._llvm_strs, library._ptx_cache
        library._llvm_strs, library._ptx_cache = [], {}
        try:
            write_whole(where.folder / name, dumps((key, data._reduce_states())))
        except Exception as error:  # a full disk, something that cannot be pickled
            warn_once(f"compiled kernels are not kept, the next process compiles them anew: {error}. {ADVICE}")
        finally:
            library._llvm_strs, library._ptx_cache = texts

    def filed(self, sig: Any, codegen: Any) -> tuple[str, Any]:
        """Name of the file and what must be found in it; no name for functions that come from no file."""
        code = self.function.__code__
        stamp = stamp_of(code.co_filename)
        if stamp is None:
            return "", None
        closure = self.function.__closure__
        held = b"" if closure is None else dumps(tuple(cell.cell_contents for cell in closure))
        key = sig, codegen.magic_tuple(), hashlib.sha256(code.co_code + held).hexdigest()
        place = code.co_filename, code.co_firstlineno, stamp, numba_cuda.__version__, str(sig), *key[1:]
        name = hashlib.sha256(repr(place).encode()).hexdigest()[:24]
        return f"gpu-{title(self.function)}-{name}.kernel", key
