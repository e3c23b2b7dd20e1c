"""Compiles kernels before the package is installed: what `prebuilt` loads.

`python -m stiction.building FOLDER` uses every solver, law and stepper on small problems (`stiction warm`), notes which
kernels Python called with which kinds of arguments, and then, in a process for each kind of processor, compiles them
and links them into one shared library. It needs Numba, MuJoCo and a C compiler to link with; an installed package
needs none of them for this.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.arrays.prebuilt import ARRAYS, DATA, LEVELS, fields_of, kind, name_of
from stiction.arrays.sources import sources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

# What Numba's code calls in Numba's own library: here for contiguous arrays, and nothing else is reshaped.
HELPERS = """
#include <math.h>
#include <stdint.h>

double numba_frexp(double x, int *exponent) { return frexp(x, exponent); }
double numba_ldexp(double x, int exponent) { return ldexp(x, exponent); }

int numba_attempt_nocopy_reshape(intptr_t axes, const intptr_t *shape, const intptr_t *strides, intptr_t new_axes,
                                 const intptr_t *new_shape, intptr_t *new_strides, intptr_t size, int fortran) {
    intptr_t stride = size, empty = 0;
    for (intptr_t i = 0; i < axes; i++) empty |= shape[i] == 0;
    for (intptr_t i = axes - 1; i >= 0; i--) {
        if (!empty && shape[i] != 1 && strides[i] != stride) return 0;
        stride *= shape[i];
    }
    stride = size;
    for (intptr_t i = new_axes - 1; i >= 0; i--) {
        new_strides[i] = stride;
        stride *= new_shape[i];
    }
    return !fortran;
}
"""
SMALL = 40  # contacts of a problem that is quickly solved by kernels as they are written


def build(folder: Path) -> None:
    """Fill the folder with all that Python calls."""
    with tempfile.TemporaryDirectory() as scratch:
        notes = Path(scratch, "calls.json")
        run("note", str(notes))
        library_of([tuple(call) for call in json.loads(notes.read_text())], folder)


def library_of(calls: Iterable[tuple[str, str]], folder: Path) -> None:
    """Fill the folder with the table and the libraries of kernels as they are called."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as pool:
        notes = Path(scratch, "calls.json")
        notes.write_text(json.dumps(sorted(set(calls))))
        tables = list(pool.map(lambda level: for_level(level, notes, Path(scratch), folder), LEVELS))
    if any(table != tables[0] for table in tables):
        raise SystemExit("the libraries of two kinds of processors hold different kernels")
    (folder / "table.json").write_text(json.dumps({"sources": sources(), "kernels": tables[0]}, indent=0))


def run(*words: str, **environment: str) -> None:
    """Another process of this module."""
    surroundings = {**os.environ, "STICTION_PREBUILT": "0", **environment}
    subprocess.run([sys.executable, "-m", "stiction.building", *words], check=True, env=surroundings)


def for_level(level: str, notes: Path, scratch: Path, folder: Path) -> dict[str, Any]:
    """Compile for one kind of processor and link."""
    objects = scratch / level
    objects.mkdir()
    run("objects", str(notes), str(objects), level, NUMBA_CPU_NAME=level, NUMBA_CPU_FEATURES="")
    compiler = os.environ.get("CC", "cc")
    helpers = objects / "helpers.c"
    helpers.write_text(HELPERS)
    parts = [str(path) for path in sorted(objects.glob("*.o"))]
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-O2", "-s", "-o", str(folder / f"{level}.so"), str(helpers), *parts, "-lm"],
        check=True,
    )
    return json.loads((objects / "table.json").read_text())  # type: ignore[no-any-return]


def note(path: Path) -> None:
    """Which kernels Python calls, and how, as small problems of all kinds are solved; kernels run as they are written.

    Calls by other kernels do not count.
    """
    from stiction.arrays.compiled import Kernel
    from stiction.cli.warm import TASKS
    from stiction.errors import StictionError

    calls: dict[tuple[str, str], None] = {}
    within: list[Kernel] = []  # kernels that run just now

    def noted(kernel: Kernel, *given: Any) -> Any:
        if not within:
            calls[name_of(kernel), ",".join(map(kind, given))] = None
        within.append(kernel)
        try:
            return kernel.py_func(*given)
        finally:
            within.pop()

    def for_arguments(kernel: Kernel, *given: Any) -> Any:
        return partial(noted, kernel)

    Kernel.first, Kernel.for_arguments = noted, for_arguments  # type: ignore[assignment, method-assign]
    for task in (*(task for tasks in TASKS.values() for _, task in tasks()), *families(), *scenes()):
        with suppress(StictionError), np.errstate(all="ignore"):  # solvers may fail; their calls are noted
            task()
    for name, kinds in calls:
        if "-" in kinds:
            print(f"not built: {name} ({kinds})", file=sys.stderr)
    path.write_text(json.dumps([call for call in calls if "-" not in call[1]]))


def families() -> Iterator[Callable[[], Any]]:
    """Problems of every form: bodies, trees, bilateral rows, planes, Delassus matrices, files."""
    import stiction as st
    from stiction.problems.zoo.contact_classics import contact_classics
    from stiction.problems.zoo.contact_families import CONTACT_FAMILIES

    def solved(problem: Any) -> None:
        solution = st.solve(problem, throw=False)
        st.certify(problem, solution)

    for make in CONTACT_FAMILIES.values():
        problem = make(0)
        if problem.n <= SMALL:
            yield partial(solved, problem)
    for problem in contact_classics().values():
        if problem.n <= SMALL:
            yield partial(solved, problem)


def scenes() -> Iterator[Callable[[], Any]]:
    """Every named scene for two steps of both steppers, with and without restitution."""
    import stiction as st
    from stiction.scenes import SCENES

    def stepped(name: str, stepper: Any) -> None:
        simulation = st.Simulation(st.Scene.named(name), stepper=stepper)
        simulation.step()
        simulation.step()
        _ = simulation.contacts

    for name in SCENES:
        for stepper in (st.TimeStepping(), st.EventDriven(), st.TimeStepping(restitution=0.5)):
            yield partial(stepped, name, stepper)


def write_objects(notes: Path, folder: Path, level: str) -> None:
    """Machine code of all noted calls, and the table of their symbols."""
    import llvmlite.binding as llvm

    from stiction.arrays.linking import KNOWN

    if not KNOWN:
        raise SystemExit("this version of Numba has other internals than `stiction.arrays.linking` knows")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_default_triple())
    machine = target.create_target_machine(cpu=level, features="", opt=3, reloc="pic", codemodel="default")
    table: dict[str, dict[str, list[Any]]] = {}
    for number, (name, kinds) in enumerate(json.loads(notes.read_text())):
        module, symbol, results = compiled_call(name, kinds)
        code = llvm.parse_bitcode(module.as_bitcode())
        code.get_function(symbol).name = f"stiction_{number}"
        (folder / f"{number:04d}.o").write_bytes(machine.emit_object(code))
        table.setdefault(name, {})[kinds] = [f"stiction_{number}", results]
    (folder / "table.json").write_text(json.dumps(table))


def compiled_call(name: str, kinds: str) -> tuple[Any, str, Any]:
    """The module, symbol and results of one kernel called with a block of words."""
    from numba import types

    from stiction.arrays.linking import ForObject, Whole

    kernel = named(name)
    given = [type_of(each) for each in kinds.split(",")] if kinds else []
    kernel.part.compile(tuple(given))
    results = letters(kernel.part.overloads[tuple(given)].signature.return_type)
    adaptor = adaptor_of(kernel, kinds.split(",") if kinds else [], given, results)
    options = {**kernel.targetoptions, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    options.pop("inline", None)
    whole = Whole(adaptor, targetoptions=options, pipeline_class=ForObject)
    arguments = (types.CPointer(types.int64),)
    whole.compile(arguments)
    built = whole.overloads[arguments]
    return built.library._final_module, built.fndesc.mangled_name, results


def type_of(kind: str) -> Any:
    """Numba's type of an argument."""
    from numba import from_dtype, types

    if kind in "dq?":
        return {"d": types.float64, "q": types.int64, "?": types.boolean}[kind]
    if kind[0] == "<":
        name, fields = fields_of(kind)
        return types.NamedTuple([type_of(each) for each in fields], named(name))
    if kind[0] == "R":
        return types.Array(from_dtype(structs()[kind[1:].split(".")[0]]), int(kind[-1]), "C")
    dtype = next(each for each, letter in ARRAYS.items() if letter == kind[0])
    return types.Array(from_dtype(dtype), int(kind[1:]), "C")


def named(name: str) -> Any:
    """What `module:attribute` names."""
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)


def structs() -> dict[str, Any]:
    """MuJoCo's structs by their hash."""
    from stiction.arrays.prebuilt import layout_hash
    from stiction.bodies.structs import layouts

    shape = layouts()
    return {layout_hash(each): each for each in (shape.model, shape.data)}


def letters(kind: Any) -> Any:
    """The kinds of results, as `prebuilt` reads them."""
    from numba import types

    if isinstance(kind, types.NoneType):
        return None
    if isinstance(kind, types.BaseTuple):
        return [letters(each) for each in kind]
    if isinstance(kind, types.Boolean):
        return "?"
    if isinstance(kind, types.Integer):
        return "q"
    if isinstance(kind, types.Float):
        return "d"
    raise SystemExit(f"a kernel that Python calls returns {kind}")


def adaptor_of(kernel: Any, kinds: list[str], given: list[Any], results: Any) -> Any:
    """A function of a block of words that calls the kernel with the arguments in it, and writes results after them."""
    names: dict[str, Any] = {"kernel": kernel, "as_float": bits(True), "as_word": bits(False)}
    lines, word = ["def adaptor(words):"], 0

    def read(letter: str, numba_type: Any) -> str:
        """The expression of one argument, or of one field of a tuple, from the next word."""
        nonlocal word
        place = f"words[{word}]"
        word += 1
        if letter in "dq?":
            return {"d": f"as_float({place})", "q": place, "?": f"{place} != 0"}[letter]
        names[f"array{word}"] = array_at(numba_type)
        return f"array{word}({place})"

    for i, (letter, numba_type) in enumerate(zip(kinds, given, strict=True)):
        if letter[0] == "<":
            name, fields = fields_of(letter)
            names[f"record{i}"] = named(name)
            parts = [read(*each) for each in zip(fields, numba_type.types, strict=True)]
            lines.append(f"    given{i} = record{i}({', '.join(parts)})")
        else:
            lines.append(f"    given{i} = {read(letter, numba_type)}")
    lines.append(f"    result = kernel({', '.join(f'given{i}' for i in range(len(kinds)))})")
    for place, (path, letter) in enumerate(paths("result", results), word):
        value = f"as_word({path})" if letter == "d" else f"1 if {path} else 0" if letter == "?" else path
        lines.append(f"    words[{place}] = {value}")
    exec("\n".join(lines), names)
    return names["adaptor"]


def paths(name: str, results: Any) -> list[tuple[str, str]]:
    """How each number of the results is had from them, and its letter."""
    if results is None:
        return []
    if isinstance(results, str):
        return [(name, results)]
    return [each for k, part in enumerate(results) for each in paths(f"{name}[{k}]", part)]


def bits(to_float: bool) -> Any:
    """The same eight bytes as the other type."""
    from numba import types
    from numba.extending import intrinsic

    back, given = (types.float64, types.int64) if to_float else (types.int64, types.float64)

    @intrinsic  # type: ignore[untyped-decorator]
    def cast(typing: Any, value: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(back))

        return back(given), code

    return cast


def array_at(kind: Any) -> Any:
    """An array, of the object at an address."""
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic
    from numba.np.arrayobj import make_array, populate_array

    @intrinsic  # type: ignore[untyped-decorator]
    def array(typing: Any, address: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            word = ir.IntType(64)

            def at(address: Any, offset: int) -> Any:
                place = builder.add(address, ir.Constant(word, offset))
                return builder.load(builder.inttoptr(place, word.as_pointer()))

            (address,) = arguments
            shape, strides = at(address, DATA + 16), at(address, DATA + 24)
            made = make_array(kind)(context, builder)
            populate_array(
                made,
                data=builder.inttoptr(at(address, DATA), made.data.type),
                shape=cgutils.pack_array(builder, [at(shape, 8 * k) for k in range(kind.ndim)], word),
                strides=cgutils.pack_array(builder, [at(strides, 8 * k) for k in range(kind.ndim)], word),
                itemsize=ir.Constant(word, context.get_abi_sizeof(context.get_data_type(kind.dtype))),
                meminfo=None,
            )
            return made._getvalue()

        return kind(types.int64), code

    return array


def main() -> None:
    what, *rest = sys.argv[1:] or ["--help"]
    if what == "note":
        note(Path(rest[0]))
    elif what == "objects":
        write_objects(Path(rest[0]), Path(rest[1]), rest[2])
    elif what.startswith("-"):
        print(__doc__)
    else:
        build(Path(what))


if __name__ == "__main__":
    main()
