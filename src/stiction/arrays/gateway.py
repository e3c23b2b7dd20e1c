"""The one C function through which Python calls every kernel, written as a kernel itself.

To Python it is a function of an extension module (`METH_FASTCALL`): it gets an object of its own, the address of the
arguments, and their number. That object is a table of words (`calls.table_of`) with a program for the arguments: each
line checks one argument and puts its word into a block, or enters or leaves a tuple. If all arguments fit, the kernel's
entry is called with the block, and a second program turns the results into Python objects. If one does not fit, the
call is passed on to another callable, which handles more kinds of arguments.

It reads Python objects only where NumPy's binary interface fixes their layout, or where every CPython since 3.11 has
the same; everything else is done by Python's C functions, whose addresses stand in the table.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from stiction.arrays import calls
from stiction.arrays.compiled import kernel

WORD, HALF = ir.IntType(64), ir.IntType(32)
AT = calls.Table(*range(len(calls.Table._fields)))  # where in a table a word stands
PROGRAM = 8 * len(AT)  # bytes from a table to the first line of its program


@kernel
def gateway(own, given, count):
    """Call the table's kernel with the arguments at an address; returns the address of the result."""
    # Another number of arguments is for the callable behind this one.
    table = word(own + calls.DATA)
    if count != at(table, AT.count):
        return call(at(table, AT.PyObject_Vectorcall), at(table, AT.otherwise), given, count, 0)

    # Follow the program, line by line; `here` is the next argument, or the next field of a tuple.
    words = block()
    stack = words + 8 * calls.WORDS
    line, here, depth, size = table + PROGRAM, given, 0, 0
    while word(line) != calls.STOP:
        what = word(line)
        if what == calls.END:
            depth -= 1
            here = at(stack, depth)
        else:
            one, value = word(here), 0
            kind = word(one + calls.TYPE)
            here += 8

            # Whether the argument is of the kind that the program names, and its word.
            if what == calls.ARRAY:
                plain = half(one + calls.FLAGS) & calls.PLAIN == calls.PLAIN
                fits = kind == at(table, AT.array_type) and plain
                fits = fits and word(one + calls.DTYPE) == at(line, 1) and half(one + calls.AXES) == at(line, 2)
                value = one
            elif what == calls.FLOAT:
                fits = kind == at(table, AT.float_type) or kind == at(table, AT.float64_type)
                value = word(one + calls.NUMBER)
            elif what == calls.INT and kind == at(table, AT.int_type):
                value, fits = call(at(table, AT.PyLong_AsLongLong), one, 0, 0, 0), True
                if value == -1 and call(at(table, AT.PyErr_Occurred), 0, 0, 0, 0) != 0:
                    return 0
            elif what == calls.INT:
                fits = kind == at(table, AT.int64_type)
                value = word(one + calls.NUMBER)
            # A bool of Python's or of NumPy's; else a tuple, whose fields come next.
            elif what == calls.BOOL:
                value = 1 if one == at(table, AT.true) or one == at(table, AT.numpys_true) else 0
                fits = value == 1 or one == at(table, AT.false) or one == at(table, AT.numpys_false)
            else:
                fits = kind == at(line, 1) and word(one + calls.LENGTH) == at(line, 2)
                put(stack + 8 * depth, here)
                depth += 1
                here = one + calls.FIELDS

            # What does not fit is handed on, as it came.
            if not fits:
                return call(at(table, AT.PyObject_Vectorcall), at(table, AT.otherwise), given, count, 0)
            if what != calls.TUPLE:
                put(words + 8 * size, value)
                size += 1
        line += 8 * calls.LINE

    # Numba's functions return a value and an error at two addresses: there is neither.
    if at(table, AT.keeps_lock) != 0:
        call(at(table, AT.entry), stack, stack + 8, words, 0)
    else:
        thread = call(at(table, AT.PyEval_SaveThread), 0, 0, 0, 0)
        call(at(table, AT.entry), stack, stack + 8, words, 0)
        call(at(table, AT.PyEval_RestoreThread), thread, 0, 0, 0)
    return result(table, line + 8 * calls.LINE, words + 8 * size, stack)


@kernel
def result(table, line, words, stack):
    """Run the program from this line on, which makes a Python object of the numbers in these words."""
    if word(line) == calls.STOP:
        call(at(table, AT.Py_IncRef), at(table, AT.none), 0, 0, 0)
        return at(table, AT.none)
    made, depth = 0, 0
    while word(line) != calls.STOP:
        what = word(line)
        if what == calls.TUPLE:  # one more, with no field yet
            put(stack + 16 * depth, call(at(table, AT.PyTuple_New), at(line, 2), 0, 0, 0))
            put(stack + 16 * depth + 8, 0)
            depth += 1
        elif what == calls.END:  # it is whole
            depth -= 1
            made = word(stack + 16 * depth)
            if at(line, 1) != 0:
                plain, made = made, call(at(table, AT.PyObject_Call), at(line, 1), made, 0, 0)
                call(at(table, AT.Py_DecRef), plain, 0, 0, 0)
        # A number; an int or a bool have functions of one kind.
        elif what == calls.FLOAT:
            made = call_with_float(at(table, AT.PyFloat_FromDouble), word(words))
            words += 8
        else:
            make = at(table, AT.PyLong_FromLongLong if what == calls.INT else AT.PyBool_FromLong)
            made = call(make, word(words), 0, 0, 0)
            words += 8
        if what != calls.TUPLE and depth > 0:
            top = stack + 16 * depth - 16
            call(at(table, AT.PyTuple_SetItem), word(top), word(top + 8), made, 0)
            put(top + 8, word(top + 8) + 1)
        line += 8 * calls.LINE
    return made


@kernel
def at(table, place):
    """The word at this place."""
    return word(table + 8 * place)


@intrinsic  # type: ignore[untyped-decorator]
def word(typing: Any, address: Any) -> Any:
    """The eight bytes at an address."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.load(builder.inttoptr(given[0], WORD.as_pointer()))

    return types.int64(types.int64), code


@intrinsic  # type: ignore[untyped-decorator]
def half(typing: Any, address: Any) -> Any:
    """The four bytes at an address."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        return builder.zext(builder.load(builder.inttoptr(given[0], HALF.as_pointer())), WORD)

    return types.int64(types.int64), code


@intrinsic  # type: ignore[untyped-decorator]
def put(typing: Any, address: Any, value: Any) -> Any:
    """Write eight bytes to an address."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        builder.store(given[1], builder.inttoptr(given[0], WORD.as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), code


@intrinsic  # type: ignore[untyped-decorator]
def block(typing: Any) -> Any:
    """The address of memory on the stack: words for arguments and results, then a stack for tuples."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        with builder.goto_entry_block():
            memory = builder.alloca(ir.ArrayType(WORD, calls.WORDS + 2 * calls.DEPTH))
        return builder.ptrtoint(memory, WORD)

    return types.int64(), code


@intrinsic  # type: ignore[untyped-decorator]
def call(typing: Any, function: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    """Call the C function at an address; functions with fewer arguments ignore the rest."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = ir.FunctionType(WORD, [WORD] * 4)
        return builder.call(builder.inttoptr(given[0], kind.as_pointer()), given[1:])

    return types.int64(*[types.int64] * 5), code


@intrinsic  # type: ignore[untyped-decorator]
def call_with_float(typing: Any, function: Any, bits: Any) -> Any:
    """Call a function with one float, given by its eight bytes."""

    def code(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        kind = ir.FunctionType(WORD, [ir.DoubleType()])
        number = builder.bitcast(given[1], ir.DoubleType())
        return builder.call(builder.inttoptr(given[0], kind.as_pointer()), [number])

    return types.int64(types.int64, types.int64), code
