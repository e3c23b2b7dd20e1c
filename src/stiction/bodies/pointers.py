"""Addresses as something to index, in kernels: `floats(address)[i]` reads and writes memory that is not ours.

No bounds are checked and nothing is kept alive: the caller knows how long the memory lasts.
"""

from __future__ import annotations

import ctypes
from functools import partial
from typing import Any

from stiction.arrays.compiled import built


def pointer_to(name: str, toolbox: Any) -> Any:
    """Numba's intrinsic that makes an address a pointer to numbers of this type."""
    from numba import types

    @toolbox.intrinsic  # type: ignore[untyped-decorator]
    def pointer(typing: Any, address: Any) -> Any:
        def cast(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return types.CPointer(getattr(types, name))(types.int64), cast

    return pointer


def pointer(compiled: str, written: Any) -> Any:
    """The pointer that kernels use: compiled the intrinsic, else one of ctypes, which is indexed in the same way."""
    kind = ctypes.POINTER(written)
    return built(partial(pointer_to, compiled), lambda address: ctypes.cast(int(address), kind))


floats = pointer("float64", ctypes.c_double)
singles = pointer("float32", ctypes.c_float)
ints = pointer("int32", ctypes.c_int32)
flags = pointer("uint8", ctypes.c_uint8)
words = pointer("int64", ctypes.c_int64)
