"""Workspaces by declaration: their sizes and the arrays in them come from the same annotations.

A record of arrays is a NamedTuple whose annotations give the type of each array and the lengths of its axes (`Array` is
`typing.Annotated`):

    class Tableau(NamedTuple):
        columns: Array[Floats, "n", "n"]  # column j of the matrix in row j
        state: Array[Ints, "n"]

    sizes, views = layout(Tableau, "n")

`sizes(n)` returns how many floats and ints it takes; `views(n, floats, ints)`, in kernels and in Python, returns the
record, cut from the front of two flat buffers. Lengths are expressions in the names passed to `layout` and in derived
ones: `layout(Pressing, "n", "m", most="min(n, m) + 1")`. A field that is itself such a record is laid out in place,
with lengths of the same names; `...` is the rest of a buffer; every other field, also of nested records, is an argument
of `views`, in order, between the lengths and the buffers.
"""

from __future__ import annotations

import ast
import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stiction.arrays.compiled import built, is_compiled, shared

# The elements of an array; in an annotation its axes follow.
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def make_cut(toolbox: Any) -> Any:
    """Numba's intrinsic of `cut`: a slice and its reshaping take a hundred times as many instructions to compile."""
    from numba import types

    cgutils, make_array, populate_array = toolbox.cgutils, toolbox.make_array, toolbox.populate_array

    @toolbox.intrinsic  # type: ignore[untyped-decorator]
    def cut(typing: Any, buffer: Any, start: Any, shape: Any) -> Any:
        part = types.Array(buffer.dtype, len(shape), "C", readonly=not buffer.mutable)

        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            number = context.get_value_type(types.intp)
            whole = make_array(buffer)(context, builder, arguments[0])
            begin = context.cast(builder, arguments[1], signature.args[1], types.intp)
            axes = [
                context.cast(builder, value, kind, types.intp)
                for value, kind in zip(cgutils.unpack_tuple(builder, arguments[2]), signature.args[2], strict=True)
            ]
            steps = [whole.itemsize]
            for length in reversed(axes):
                steps.insert(0, builder.mul(steps[0], length))
            if context.enable_boundscheck:
                end = builder.add(begin, builder.sdiv(steps[0], whole.itemsize))
                room = builder.add(whole.nitems, number(1))
                cgutils.do_boundscheck(context, builder, end, room)
            made = make_array(part)(context, builder)
            populate_array(
                made, builder.gep(whole.data, [begin]), axes, steps[1:], whole.itemsize, whole.meminfo, whole.parent
            )
            return made._getvalue()

        return part(buffer, start, shape), lower

    return cut


def cut_as_written(buffer: Any, start: int, shape: tuple[int, ...]) -> Any:
    if not isinstance(buffer, np.ndarray):  # of numba-cuda's simulator
        buffer = np.asarray(buffer).reshape(-1)
    return np.ndarray(shape, buffer.dtype, buffer, buffer.itemsize * start)


# Part of a contiguous buffer as an array of this shape, which is a tuple.
cut = built(make_cut, cut_as_written)


class Field(NamedTuple):
    """One array of a record: where it lies ("floats", "ints", "given" or "record") and the lengths of its axes."""

    name: str
    where: str
    axes: tuple[str, ...] = ()
    record: Any = None


_laid_out: dict[Any, Laid] = {}


class Laid(NamedTuple):
    """A record's fields, and the kernels that measure it and cut it."""

    lengths: tuple[str, ...]
    fields: list[Field]
    sizes: Any
    views: Any


def layout(record: Any, *lengths: str, **derived: str) -> tuple[Any, Any]:
    """The functions `sizes` and `views` of a record."""
    fields = [field_of(record, name, str(text)) for name, text in as_written(record).items()]
    defined = [f"    {name} = {value}" for name, value in derived.items()]
    source = "\n".join([*measuring(fields, lengths, defined), *cutting(fields, lengths, defined)])
    inner = {field.name: _laid_out[field.record] for field in fields if field.where == "record"}

    # As kernels see them: with the intrinsic, and calling each other as kernels.
    names = {"record": record, "cut": cut}
    for name, laid in inner.items():
        names |= {f"{name}_sizes": laid.sizes, f"{name}_views": laid.views}
    exec(source, names)
    made = Laid(lengths, fields, shared(described(names["sizes"], record)), shared(described(names["views"], record)))

    # As Python runs them: the same functions, calling each other directly.
    if is_compiled():
        names = {"record": record, "cut": cut_as_written}
        for name, laid in inner.items():
            names |= {f"{name}_sizes": laid.sizes.run, f"{name}_views": laid.views.run}
        exec(source, names)
        made.sizes.run, made.views.run = names["sizes"], names["views"]
    _laid_out[record] = made
    return made.sizes, made.views


def as_written(record: Any) -> dict[str, Any]:
    """The annotations of a record, as text."""
    return {name: getattr(text, "__forward_arg__", text) for name, text in record.__annotations__.items()}


def field_of(record: Any, name: str, text: str) -> Field:
    """The field that an annotation declares."""
    tree = ast.parse(text, mode="eval").body
    if isinstance(tree, ast.Name):
        other = vars(sys.modules[record.__module__]).get(tree.id)
        return Field(name, "record", record=other) if other in _laid_out else Field(name, "given")
    if not (isinstance(tree, ast.Subscript) and isinstance(tree.slice, ast.Tuple)):
        raise TypeError(f"{record.__name__}.{name}: {text} is no array, record or argument")
    kind, *axes = tree.slice.elts
    where = {"Floats": "floats", "Ints": "ints"}[ast.unparse(kind)]
    values = [each.value for each in axes if isinstance(each, ast.Constant)]
    return Field(name, where, tuple(f"({value})" if isinstance(value, str) else str(value) for value in values))


def measuring(fields: list[Field], lengths: tuple[str, ...], defined: list[str]) -> list[str]:
    """The source of `sizes`."""
    lines = [f"def sizes({', '.join(lengths)}):", *defined, "    total_floats, total_ints = 0, 0"]
    for field in fields:
        if field.where == "record":
            inner = ", ".join(_laid_out[field.record].lengths)
            lines.append(f"    more_floats, more_ints = {field.name}_sizes({inner})")
            lines.append("    total_floats, total_ints = total_floats + more_floats, total_ints + more_ints")
        elif field.where != "given" and "Ellipsis" not in field.axes:
            lines.append(f"    total_{field.where} += {' * '.join(field.axes)}")
    return [*lines, "    return total_floats, total_ints"]


def cutting(fields: list[Field], lengths: tuple[str, ...], defined: list[str]) -> list[str]:
    """The source of `views`; the place where a buffer goes on has a new name after each array."""
    lines = [f"def views({', '.join([*lengths, *given(fields), 'floats', 'ints'])}):", *defined]
    place = {"floats": "0", "ints": "0"}
    values = []
    for number, field in enumerate(fields):
        if field.where == "given":
            values.append(f"given_{field.name}")
        elif field.where == "record":
            inner = ", ".join(_laid_out[field.record].lengths)
            rest = ", ".join([*given([field]), left("floats", place), left("ints", place)])
            lines.append(f"    of_{field.name} = {field.name}_views({inner}, {rest})")
            lines.append(f"    more_floats{number}, more_ints{number} = {field.name}_sizes({inner})")
            for where in place:
                lines.append(f"    {where}{number} = {place[where]} + more_{where}{number}")
                place[where] = f"{where}{number}"
            values.append(f"of_{field.name}")
        elif "Ellipsis" in field.axes:
            values.append(left(field.where, place))
        else:
            end = f"{field.where}{number}"
            lines.append(f"    {end} = {place[field.where]} + {' * '.join(field.axes)}")
            values.append(f"cut({field.where}, {place[field.where]}, ({', '.join(field.axes)},))")
            place[field.where] = end
    return [*lines, f"    return record({', '.join(values)})"]


def left(where: str, place: dict[str, str]) -> str:
    """All of a buffer from here on."""
    return f"cut({where}, {place[where]}, (len({where}) - {place[where]},))"


def given(fields: list[Field]) -> list[str]:
    """Arguments of `views` for records with these fields, by names that no length has."""
    found = []
    for field in fields:
        if field.where == "given":
            found.append(f"given_{field.name}")
        elif field.where == "record":
            found += [f"{field.name}_{name}" for name in given(_laid_out[field.record].fields)]
    return found


def described(function: Any, record: Any) -> Any:
    """Name a generated function after its record, for messages."""
    function.__module__, function.__qualname__ = record.__module__, f"{record.__name__}.{function.__name__}"
    return function
