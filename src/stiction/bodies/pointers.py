"""Addresses as something to index, in kernels: `floats(address)[i]` reads and writes memory that is not ours.

No bounds are checked and nothing is kept alive: the caller knows how long the memory lasts.
"""

from __future__ import annotations

import ctypes
from typing import Any

from numba import config, types
from numba.extending import intrinsic


def pointer_to(kind: Any) -> Any:
    """The intrinsic that makes an address a pointer to numbers of this kind."""

    @intrinsic  # type: ignore[untyped-decorator]
    def pointer(typing: Any, address: Any) -> Any:
        def cast(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return types.CPointer(kind)(types.int64), cast

    return pointer


if config.DISABLE_JIT:  # ctypes pointers are indexed in the same way

    def floats(address: int) -> Any:
        return ctypes.cast(int(address), ctypes.POINTER(ctypes.c_double))

    def ints(address: int) -> Any:
        return ctypes.cast(int(address), ctypes.POINTER(ctypes.c_int32))

    def flags(address: int) -> Any:
        return ctypes.cast(int(address), ctypes.POINTER(ctypes.c_uint8))

else:
    floats = pointer_to(types.float64)
    ints = pointer_to(types.int32)
    flags = pointer_to(types.uint8)
