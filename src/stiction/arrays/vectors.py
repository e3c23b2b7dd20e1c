"""Vectors of few numbers, in kernels: the velocity or the impulse of one contact, along its normal and its tangents.

A contact has 3 or 6 directions: n, t1, t2, then the turn about the normal (`spin`) and those about the tangents
(`roll1`, `roll2`), which are zero if there is only torsion. A vector is a NamedTuple of as many numbers, so that Numba
compiles a kernel for each size and keeps vectors in registers; `Three()` and `Six()` are zero, and say to a kernel
which of them it works with.

The functions below are written once, for numbers. Compiled they are run when their callers are, on `Number`s, and leave
only the arithmetic behind.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

from stiction.arrays.compiled import built


class Three(NamedTuple):
    n: float = 0.0
    t1: float = 0.0
    t2: float = 0.0


class Six(NamedTuple):
    n: float = 0.0
    t1: float = 0.0
    t2: float = 0.0
    spin: float = 0.0
    roll1: float = 0.0
    roll2: float = 0.0


THREE = Three()
ZEROS = {3: THREE, 6: Six()}  # by the number of directions

Vector = Any  # one of the two, or in compiled code a list of Numbers


def function_of(module: Any, name: str, kind: Any) -> Any:
    """A function of one number that a GPU's compiler knows by this name."""
    from llvmlite import ir

    return module.globals.get(name) or ir.Function(module, ir.FunctionType(kind, [kind]), name)


class Number:
    """A number of code that is being compiled."""

    __slots__ = ("builder", "value")

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    def __add__(self, other: Number) -> Number:
        return Number(self.builder, self.builder.fadd(self.value, other.value))

    def __sub__(self, other: Number) -> Number:
        return Number(self.builder, self.builder.fsub(self.value, other.value))

    def __mul__(self, other: Number) -> Number:
        return Number(self.builder, self.builder.fmul(self.value, other.value))

    def __truediv__(self, other: Number) -> Number:
        return Number(self.builder, self.builder.fdiv(self.value, other.value))

    def __neg__(self) -> Number:
        # Compilers for GPUs do not know `fneg`.
        return Number(self.builder, self.builder.fsub(self.value.type(-0.0), self.value))

    def __abs__(self) -> Number:
        builder, kind = self.builder, self.value.type
        if "nvptx" in builder.module.triple:
            absolute = function_of(builder.module, "__nv_fabs", kind)
        else:
            absolute = builder.module.declare_intrinsic("llvm.fabs", [kind])
        return Number(builder, builder.call(absolute, [self.value]))

    def none(self) -> Number:
        """Zero."""
        return Number(self.builder, self.value.type(0.0))

    def larger(self, other: Number) -> Number:
        """The other if it is larger, as `max` does."""
        builder = self.builder
        return Number(
            builder, builder.select(builder.fcmp_ordered(">", other.value, self.value), other.value, self.value)
        )


class Entries:
    """An array with two axes, of code that is being compiled."""

    def __init__(self, toolbox: Any, context: Any, builder: Any, kind: Any, value: Any) -> None:
        self.cgutils, self.context, self.builder, self.kind = toolbox.cgutils, context, builder, kind
        self.array = toolbox.make_array(kind)(context, builder, value)

    def address(self, place: tuple[Any, Any]) -> Any:
        from numba import types

        cgutils = self.cgutils
        number = self.context.get_value_type(types.intp)
        places = [number(each) if isinstance(each, int) else each for each in place]
        shape, strides = (
            cgutils.unpack_tuple(self.builder, each, 2) for each in (self.array.shape, self.array.strides)
        )
        return cgutils.get_item_pointer2(
            self.context, self.builder, self.array.data, shape, strides, self.kind.layout, places
        )

    def __getitem__(self, place: tuple[Any, Any]) -> Number:
        return Number(self.builder, self.builder.load(self.address(place)))

    def __setitem__(self, place: tuple[Any, Any], number: Number) -> None:
        self.builder.store(number.value, self.address(place))


def make(function: Any, toolbox: Any) -> Any:
    """Numba's intrinsic of a function below."""
    from numba import types as numba_types

    types: Any = numba_types
    cgutils = toolbox.cgutils
    result = {"Vector": None, "float": types.float64, "None": types.none}[function.__annotations__["return"]]

    def typed(*given: Any) -> Any:
        kinds = [each if isinstance(each, (types.Array, types.BaseTuple)) else None for each in given]
        wanted = function.__annotations__
        of_numbers = {"float": types.float64, "int": types.intp}
        taken = [
            kind or of_numbers[wanted[name]]
            for kind, name in zip(kinds, wanted, strict=False)  # `return` is the last
        ]
        back = result or next(each for each in given if isinstance(each, types.BaseTuple))

        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            operands: list[Any] = []
            for kind, value in zip(signature.args, arguments, strict=True):
                if isinstance(kind, types.Array):
                    operands.append(Entries(toolbox, context, builder, kind, value))
                elif isinstance(kind, types.BaseTuple):
                    operands.append([Number(builder, each) for each in cgutils.unpack_tuple(builder, value)])
                else:
                    operands.append(Number(builder, value) if kind == types.float64 else value)
            found = function(*operands)
            if found is None:
                return context.get_dummy_value()
            if isinstance(found, Number):
                return found.value
            return context.make_tuple(builder, signature.return_type, [each.value for each in found])

        return back(*taken), lower

    names = ", ".join(name for name in function.__annotations__ if name != "return")
    scope: dict[str, Any] = {"typed": typed}
    exec(f"def {function.__name__}(typing, {names}):\n    return typed({names})", scope)
    return toolbox.intrinsic(scope[function.__name__])


F = TypeVar("F")


def of_vectors(function: F) -> F:
    """A function that kernels call; run as it is written, it takes and returns tuples."""

    def written(*given: Any) -> Any:
        found = function(*given)  # type: ignore[operator]
        if not isinstance(found, list):
            return found
        like: Any = next(each for each in given if isinstance(each, tuple))
        return like._make(found)

    return built(partial(make, function), written)  # type: ignore[no-any-return]


class Table(Protocol):
    """An array with two axes."""

    def __getitem__(self, place: tuple[Any, Any]) -> Any: ...

    def __setitem__(self, place: tuple[Any, Any], number: Any) -> None: ...


def larger(x: Any, y: Any) -> Any:
    return x.larger(y) if isinstance(x, Number) else max(x, y)


def none(x: Any) -> Any:
    return x.none() if isinstance(x, Number) else 0.0


PARTS = {"slide": (1, 2), "spin": (3,), "roll": (4, 5)}  # places of the tangents


def part_of(a: int) -> str:
    """The part, sliding, spin or rolling, to which the tangent at a place belongs."""
    return next(name for name, places in PARTS.items() if a in places)


def part_dot(places: tuple[int, ...], a: Any, b: Any) -> Any:
    """The scalar product of one part; zero if there is none."""
    total = none(a[0])
    for k in places:
        if k < len(a):
            total = total + a[k] * b[k]
    return total


@of_vectors
def at(array: Table, i: int, like: Vector) -> Vector:
    """Row i of an array."""
    return [array[i, k] for k in range(len(like))]


@of_vectors
def column(array: Table, j: int, like: Vector) -> Vector:
    """Column j of an array."""
    return [array[k, j] for k in range(len(like))]


@of_vectors
def put(array: Table, i: int, v: Vector) -> None:
    """Row i of an array = v."""
    for k, x in enumerate(v):
        array[i, k] = x


@of_vectors
def put_column(array: Table, j: int, v: Vector) -> None:
    """Column j of an array = v."""
    for k, x in enumerate(v):
        array[k, j] = x


@of_vectors
def plus(a: Vector, b: Vector) -> Vector:
    return [x + y for x, y in zip(a, b, strict=True)]


@of_vectors
def minus(a: Vector, b: Vector) -> Vector:
    return [x - y for x, y in zip(a, b, strict=True)]


@of_vectors
def negative(a: Vector) -> Vector:
    return [-x for x in a]


@of_vectors
def times(factor: float, a: Vector) -> Vector:
    return [factor * x for x in a]


@of_vectors
def over(a: Vector, divisor: float) -> Vector:
    return [x / divisor for x in a]


@of_vectors
def add_multiple(a: Vector, factor: float, b: Vector) -> Vector:
    """a + factor b."""
    return [x + factor * y for x, y in zip(a, b, strict=True)]


@of_vectors
def with_normal(normal: float, a: Vector) -> Vector:
    """a with another first number."""
    return [normal, *a[1:]]


@of_vectors
def inner(a: Vector, b: Vector) -> float:
    """The scalar product."""
    total = a[0] * b[0]
    for x, y in zip(a[1:], b[1:], strict=True):
        total = total + x * y
    return total  # type: ignore[no-any-return]


@of_vectors
def across(a: Vector, b: Vector) -> float:
    """The scalar product of all but the first numbers."""
    total = a[1] * b[1]
    for x, y in zip(a[2:], b[2:], strict=True):
        total = total + x * y
    return total  # type: ignore[no-any-return]


@of_vectors
def largest(a: Vector) -> float:
    """Of the absolute values."""
    most = abs(a[0])
    for x in a[1:]:
        most = larger(most, abs(x))
    return most  # type: ignore[no-any-return]


@of_vectors
def total_size(a: Vector) -> float:
    """The sum of the absolute values; NaN stays."""
    total = abs(a[0])
    for x in a[1:]:
        total = total + abs(x)
    return total  # type: ignore[no-any-return]


@of_vectors
def times_each(a: Vector, b: Vector) -> Vector:
    return [x * y for x, y in zip(a, b, strict=True)]


@of_vectors
def by_parts(like: Vector, slide: float, spin: float, roll: float) -> Vector:
    """A number for each part of the tangents; zero for the normal."""
    numbers = {"slide": slide, "spin": spin, "roll": roll}
    return [none(like[0]), *(numbers[part_of(k)] for k in range(1, len(like)))]


@of_vectors
def slide_dot(a: Vector, b: Vector) -> float:
    """The scalar product along the two tangents."""
    return part_dot(PARTS["slide"], a, b)  # type: ignore[no-any-return]


@of_vectors
def spin_dot(a: Vector, b: Vector) -> float:
    """The same of the turn about the normal."""
    return part_dot(PARTS["spin"], a, b)  # type: ignore[no-any-return]


@of_vectors
def roll_dot(a: Vector, b: Vector) -> float:
    """The same of the turns about the tangents."""
    return part_dot(PARTS["roll"], a, b)  # type: ignore[no-any-return]
