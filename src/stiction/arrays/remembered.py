"""Answers that Numba works out again and again, remembered while kernels of this package are compiled.

Numba asks for the result of `a + b` with the same types some ten thousand times, and tries every candidate each time,
with a coloured message for each that does not fit; for the size of an array's record it has LLVM parse a module. It
imports and reads all of its registries anew before it says that an operation is not among them, and works out after
each pass where variables are last used, to count references, of which kernels have none. To leave this out takes a
quarter of all compiling away. Code of others is compiled by Numba as it is.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from numba.core import base, compiler_machinery, errors, postproc
from numba.core.compiler_lock import global_compiler_lock
from numba.core.targetconfig import ConfigStack
from numba.core.transforms import canonicalize_cfg
from numba.core.types import functions

if TYPE_CHECKING:
    from collections.abc import Iterator

# What is replaced, and where; of any type, since mypy would not have it replaced.
Calls: Any = functions.BaseFunction
Target: Any = base.BaseContext
After: Any = postproc.PostProcessor
messages: Any = errors
resolve, measure, renew, process = Calls.get_call_type, Target.get_abi_sizeof, Target.refresh, After.run
_sizes: dict[str, int] = {}  # bytes, by LLVM's notation


def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
    """The signature of a call with these types, remembered by the function: its candidates never change.

    A function that Numba compiles itself has one for each set of options of its callers.
    """
    if kws:
        return resolve(self, context, args, kws)
    known = self.__dict__.setdefault("_known_calls", {}).setdefault(ConfigStack.top_or_none(), {})
    key = context, *args
    if key not in known:
        signature = resolve(self, context, args, kws)
        known[key] = signature, self._impl_keys[signature.args]
    signature, implementation = known[key]
    self._impl_keys[signature.args] = implementation
    return signature


def get_abi_sizeof(self: Any, kind: Any) -> int:
    """The size of an LLVM type, in bytes."""
    name = str(kind)
    if name not in _sizes:
        _sizes[name] = measure(self, kind)
    return _sizes[name]


def refresh(self: Any) -> None:
    """Read the registries anew, if anything was added to them."""
    if self.__dict__.get("_known_declarations") != declarations(self):
        renew(self)
        self._known_declarations = declarations(self)


def declarations(target: Any) -> list[int]:
    """How many entries each list of each registry has."""
    known = *target._registries, *target.typing_context._registries
    return [len(each) for registry in known for each in vars(registry).values() if isinstance(each, list)]


def run(self: Any, emit_dels: bool = False, extend_lifetimes: bool = False) -> None:
    """What follows a pass: lifetimes of variables are worked out if something asks for them."""
    code = self.func_ir
    if emit_dels or code.is_generator:
        process(self, emit_dels, extend_lifetimes)
        return
    code.blocks = canonicalize_cfg(code.blocks)
    code.variable_lifetime, code.generator_info = postproc.VariableLifetime(code.blocks), None


class Plain:
    """Messages without colours: nearly all are about candidates that did not fit, and nobody reads them."""

    def code(self, message: str) -> str:
        return message

    errmsg = filename = indicate = highlight = reset = code


# Where what stands, and what takes its place.
REPLACED = tuple(
    (owner, name, ours)
    for owner, name, ours in (
        (Calls, "get_call_type", get_call_type),
        (Target, "get_abi_sizeof", get_abi_sizeof),
        (Target, "refresh", refresh),
        (After, "run", run),
        (messages, "_termcolor_inst", Plain()),
        (compiler_machinery, "_termcolor", Plain()),
    )
    if hasattr(owner, name)
)


@contextmanager
def remembered() -> Iterator[None]:
    """Compile with these answers; other threads compile before or after."""
    with global_compiler_lock:
        before = [getattr(owner, name) for owner, name, _ in REPLACED]
        for owner, name, ours in REPLACED:
            setattr(owner, name, ours)
        try:
            yield
        finally:
            for (owner, name, _), numbas in zip(REPLACED, before, strict=True):
                setattr(owner, name, numbas)
