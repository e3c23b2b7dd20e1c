"""Named tuples go from kernel to kernel as one value of LLVM's.

Numba takes a tuple apart at every call and puts it together again in the function called, a word at a time: a record of
thirty arrays is two hundred arguments, and half of all code before optimization. LLVM has values that hold a whole
record, and takes them apart itself when it makes machine code, which is the same in the end.

LLVM's inliner credits a call with what passing its arguments would cost, and would count such a value as one:
`credit_words` tells it how many it stands for. Long functions get no such credit: what takes a large record would be
copied into all of its callers, code half as large again that takes much longer to compile and runs no faster.

Only tuples of this package, and only on the CPU: code of others, cached under Numba's own convention, stays callable.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core.datamodel import models
from numba.core.datamodel.registry import default_manager
from numba.core.types.containers import NamedTuple, NamedUniTuple

OURS = __name__.partition(".")[0]
WORD = 5  # what LLVM's inliner takes off for an argument that need not be passed: an instruction, by its measure
LONG = 1000  # instructions, before optimization, from which on a function gets no credit


def as_one_value(model: Any) -> Any:
    """Wrap the maker of a data model, so that tuples of this package are passed whole."""

    class Passed(model):  # type: ignore[misc]
        """A tuple as an argument and as a result."""

        def get_argument_type(self) -> Any:
            return self.get_value_type()

        def as_argument(self, builder: Any, value: Any) -> Any:
            return value

        def from_argument(self, builder: Any, value: Any) -> Any:
            return value

        def get_return_type(self) -> Any:
            return self.get_value_type()

        def as_return(self, builder: Any, value: Any) -> Any:
            return value

        def from_return(self, builder: Any, value: Any) -> Any:
            return value

    def made(manager: Any, named: Any) -> Any:
        ours = named.instance_class.__module__.partition(".")[0] == OURS and manager is default_manager
        return (Passed if ours else model)(manager, named)

    return made


def pass_tuples_whole() -> None:
    """Switch this on, for good; call it before the first kernel is compiled."""
    default_manager.register(NamedTuple, as_one_value(models.TupleModel))
    default_manager.register(NamedUniTuple, as_one_value(models.UniTupleModel))


def credit_words(module: Any) -> None:
    """Let LLVM inline short functions that take records as if each word were an argument of its own."""
    for function in module.functions:
        words = sum(words_in(each.type) - 1 for each in function.args)
        if function.blocks and words and sum(len(block.instructions) for block in function.blocks) < LONG:
            set.add(function.attributes, f'"call-threshold-bonus"="{WORD * words}"')


def forbid_inlining(module: Any) -> None:
    """Have LLVM inline these functions nowhere."""
    for function in module.functions:
        if function.blocks:
            function.attributes.add("noinline")


def words_in(given: Any) -> int:
    """How many numbers and pointers a value holds."""
    if isinstance(given, ir.ArrayType):
        return int(given.count) * words_in(given.element)
    if isinstance(given, ir.LiteralStructType):
        return sum(map(words_in, given.elements))
    return 1
