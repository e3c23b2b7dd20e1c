"""Functions called in kernels by their addresses: MuJoCo's, and kernels that are compiled already.

A kernel that calls another one by its address runs exactly the machine code that Python runs, and so gives the same
bits; compiled into its caller, sums might be ordered otherwise.

MuJoCo's Python functions turn its errors into exceptions. Called by their addresses they cannot: an error of MuJoCo's
ends the process. Whoever calls them must have ruled that out (`stepping.loop`).
"""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

from stiction.arrays.calls import kind, kinds_of
from stiction.arrays.compiled import Kernel, built
from stiction.optional import mujoco

NAMES = ("libmujoco.so*", "libmujoco*.dylib", "mujoco.dll")


def make_call_c(toolbox: Any) -> Any:
    """Numba's intrinsic for void f(model, data, numbers, int); C lets a caller give more arguments than are read."""
    from llvmlite import ir
    from numba import types

    @toolbox.intrinsic  # type: ignore[untyped-decorator]
    def call(typing: Any, address: Any, model: Any, data: Any, numbers: Any, spec: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            word, small = ir.IntType(64), ir.IntType(32)
            form = ir.FunctionType(ir.VoidType(), [word, word, word, small])
            function = builder.inttoptr(arguments[0], form.as_pointer())
            builder.call(function, [*arguments[1:4], builder.trunc(arguments[4], small)])
            return context.get_dummy_value()

        return types.none(*[types.int64] * 5), code

    return call


def call_c_as_written(address: int, model: int, data: int, numbers: int, spec: int) -> None:
    form = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)
    form(int(address))(int(model), int(data), int(numbers), int(spec))


call_c = built(make_call_c, call_c_as_written)


def make_call_distance(toolbox: Any) -> Any:
    """Numba's intrinsic for double mj_geomDistance(model, data, one, two, most, ends)."""
    from llvmlite import ir
    from numba import types

    @toolbox.intrinsic  # type: ignore[untyped-decorator]
    def call(typing: Any, address: Any, model: Any, data: Any, one: Any, two: Any, most: Any, ends: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            word, small, number = ir.IntType(64), ir.IntType(32), ir.DoubleType()
            form = ir.FunctionType(number, [word, word, small, small, number, word])
            function = builder.inttoptr(arguments[0], form.as_pointer())
            model, data, one, two, most, ends = arguments[1:]
            geoms = builder.trunc(one, small), builder.trunc(two, small)
            return builder.call(function, [model, data, *geoms, most, ends])

        return types.float64(*[types.int64] * 5, types.float64, types.int64), code

    return call


def call_distance_as_written(
    address: int, model: int, data: int, one: int, two: int, most: float, ends: int
) -> float:  # fmt: skip
    word, small = ctypes.c_void_p, ctypes.c_int
    form = ctypes.CFUNCTYPE(ctypes.c_double, word, word, small, small, ctypes.c_double, word)
    return float(form(int(address))(int(model), int(data), int(one), int(two), float(most), int(ends)))


call_distance = built(make_call_distance, call_distance_as_written)


def lowered(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Call a kernel by its address, as Numba calls one; the second argument has the type of the result."""
    kinds = signature.args[2:]
    form = context.call_conv.get_function_type(signature.return_type, kinds)
    function = builder.inttoptr(arguments[0], form.as_pointer())
    _, found = context.call_conv.call_function(builder, function, signature.return_type, kinds, arguments[2:])
    return found


def make_call_begin(toolbox: Any) -> Any:
    from numba import types

    @toolbox.intrinsic  # type: ignore[untyped-decorator]
    def call(typing: Any, address: Any, like: Any, a: Any, b: Any, c: Any, d: Any, e: Any) -> Any:
        return like(types.int64, like, a, b, c, d, e), lowered

    return call


def make_call_look(toolbox: Any) -> Any:
    from numba import types

    @toolbox.intrinsic  # type: ignore[untyped-decorator]
    def call(typing: Any, address: Any, like: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
        return like(types.int64, like, a, b, c, d), lowered

    return call


def make_call_step(toolbox: Any) -> Any:
    from numba import types

    @toolbox.intrinsic  # type: ignore[untyped-decorator]
    def call(
        typing: Any, address: Any, like: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, i: Any,
        j: Any, k: Any, l: Any,
    ) -> Any:  # fmt: skip
        return like(types.int64, like, a, b, c, d, e, f, g, h, i, j, k, l), lowered

    return call


def not_as_written(*given: Any) -> Any:
    raise NotImplementedError("kernels have addresses only where they are compiled")


call_begin = built(make_call_begin, not_as_written)
call_look = built(make_call_look, not_as_written)
call_step = built(make_call_step, not_as_written)


def address_of(kernel: Any, given: tuple[Any, ...], like: Any) -> int | None:
    """Where the machine code is that a call with such arguments from Python runs; like: a result of the same type.

    None where kernels are not compiled here, or the result is of another type.
    """
    code = kernel.code(kinds_of(given)) if isinstance(kernel, Kernel) else None
    return code.kernel if code is not None and code.kernel and code.results == kind(like) else None


@cache
def addresses_in_mujoco(*names: str) -> tuple[int, ...] | None:
    """Where these functions of MuJoCo's are; None if its library is not found beside its package."""
    package = mujoco()
    folder = Path(str(package.__file__)).parent
    for path in sorted(path for name in NAMES for path in folder.glob(name)):
        try:
            library = ctypes.CDLL(str(path))
            if library.mj_version() == package.mj_version():
                found = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in names]
                return tuple(int(address or 0) for address in found) if all(found) else None
        except (OSError, AttributeError):
            continue
    return None
