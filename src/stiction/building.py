"""Compiles kernels before the package is installed: what `prebuilt` loads.

`python -m stiction.building FOLDER` uses every solver, law and stepper on small problems (`stiction warm`), notes which
kernels Python called with which kinds of arguments, and then, in a process for each kind of processor, compiles them
and links them into one shared library. It needs Numba, MuJoCo and a C compiler to link with; an installed package
needs none of them for this.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.arrays.calls import UNKNOWN, kind, kinds_of, name_of, named
from stiction.arrays.prebuilt import LEVELS
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
    from stiction.arrays.compiled import Kernel, Target
    from stiction.cli.warm import TASKS
    from stiction.errors import StictionError

    calls: dict[tuple[str, str], None] = {}
    within: list[Kernel] = []  # kernels that run just now

    def noted(kernel: Kernel, *given: Any) -> Any:
        if not within:
            calls[name_of(kernel), kinds_of(given)] = None
        # These call MuJoCo by addresses, which Python cannot: as if a step had not begun, as if all had been made.
        if kernel is one_call.whole_step:
            return one_call.NOT_LOOKED, one_call.RIGHT, one_call.LIKE_STEP
        if kernel is loop.run_steps:
            return given[3], 0, loop.ENDED, one_call.LIKE_STEP
        within.append(kernel)
        try:
            return kernel.py_func(*given)
        finally:
            within.pop()

    def for_arguments(kernel: Kernel, *given: Any) -> Any:
        return partial(noted, kernel)

    def code(kernel: Kernel, kinds: str) -> None:
        """Nothing is compiled yet."""

    def address_of(kernel: Kernel, given: Any, like: Any) -> int:
        """Some address: nothing is called by it."""
        return 1

    Target.one_piece = True
    Kernel.first, Kernel.for_arguments, Kernel.code = noted, for_arguments, code  # type: ignore[assignment, method-assign]
    one_call: Any = import_module("stiction.stepping.one_call")  # now: kernels are made at import
    loop: Any = import_module("stiction.stepping.loop")
    one_call.address_of = loop.address_of = address_of
    for task in (*(task for tasks in TASKS.values() for _, task in tasks()), *families(), *scenes()):
        with suppress(StictionError), np.errstate(all="ignore"):  # solvers may fail; their calls are noted
            task()
    for name, kinds in calls:
        if UNKNOWN in kinds:
            print(f"not built: {name} ({kinds})", file=sys.stderr)
    path.write_text(json.dumps([call for call in calls if UNKNOWN not in call[1]]))


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

    from stiction.arrays.compiled import Target
    from stiction.arrays.linking import KNOWN, compiled, compiled_gateway

    if not KNOWN:
        raise SystemExit("this version of Numba has other internals than `stiction.arrays.linking` knows")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_default_triple())
    machine = target.create_target_machine(cpu=level, features="", opt=3, reloc="pic", codemodel="default")
    see_structs()
    (folder / "gateway.o").write_bytes(compiled_gateway(machine).machine_code)
    Target.one_piece = True
    table: dict[str, dict[str, list[Any]]] = {}
    for number, (name, kinds) in enumerate(json.loads(notes.read_text())):
        made = compiled(named(name), kinds, f"stiction_{number}", machine)
        if made is None:
            raise SystemExit(f"{name} returns more than numbers")
        (folder / f"{number:04d}.o").write_bytes(made.machine_code)
        table.setdefault(name, {})[kinds] = list(made[:3])
    (folder / "table.json").write_text(json.dumps(table))


def see_structs() -> None:
    """Have the kinds of arrays of MuJoCo's structs known; where there is no MuJoCo, there are none of them."""
    with suppress(ImportError):
        from stiction.bodies.structs import layouts

        for each in layouts():
            if isinstance(each, np.dtype):
                kind(np.zeros(1, each))


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
