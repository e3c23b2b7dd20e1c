"""How kernels that call each other become one piece of machine code.

Numba compiles every function as if Python called it: it adds a wrapper that unpacks Python's arguments, optimizes the
function together with all functions that it calls, and emits machine code. A function five calls down is therefore
optimized five times, although nearly all kernels are called only by other kernels.

Here a kernel is compiled in one of two ways. For other kernels it is a `Part`: typed and lowered, no more. For Python
it is an object file: linked with all parts below it, each once, and with an entry that takes a block of words
(`calls`), then optimized once, and kept on disk (`kernel_cache`) or shipped (`prebuilt`). A kernel marked `@alone` is
an object file for other kernels too, which call it by its symbol. Kernels that cannot be called by a block of words,
and code with checked bounds, become a `Whole`: linked alike, but called in Numba's own way, and not kept. A first solve
takes a third of the time that Numba alone would need, and code that is optimized together runs no slower.

This uses extension points of Numba (a pipeline's class, a dispatcher's class) and some internals (code libraries); if
those are not as expected, kernels are compiled and cached as Numba does.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from contextlib import contextmanager, nullcontext, suppress
from itertools import count
from typing import TYPE_CHECKING, Any

from llvmlite import binding as llvm
from llvmlite import ir
from numba import from_dtype, njit, types
from numba.core import cgutils, event
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from stiction.arrays.aggregates import credit_words, forbid_inlining, pass_tuples_whole
from stiction.arrays.ahead import awaited
from stiction.arrays.calls import ARRAYS, DATA, NUMBERS, dtype_of, fields_of, name_of, named, split, words_of
from stiction.arrays.compiled import Target
from stiction.arrays.kernel_cache import PROVIDED, Made, provide, symbol_alone
from stiction.arrays.prebuilt import GATEWAY
from stiction.arrays.sources import unusual

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from stiction.arrays.compiled import Kernel

try:
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import Compiler, Flags, compile_result
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.funcdesc import ExternalFunctionDescriptor
    from numba.core.registry import CPUDispatcher
    from numba.core.sigutils import normalize_signature

    from stiction.arrays.remembered import remembered

    USED = (
        "_ensure_finalized", "_finalize_dynamic_globals", "_get_module_for_linking", "_optimize_final_module",
        "_optimize_functions", "_raise_if_finalized", "_verify_declare_only_symbols", "finalize",
        "get_pointer_to_function",
    )  # fmt: skip
    KNOWN = all(hasattr(JITCodeLibrary, name) for name in USED)
except ImportError:
    KNOWN, remembered = False, nullcontext  # type: ignore[assignment]

PATIENCE = 2.0  # s that compiling may take unannounced
ANEW = 5.0  # s without compiling after which more of it is announced again: a fallback in the middle of a run
ALONE: dict[str, tuple[str, str]] = {}  # names and kinds of `@alone` kernels that others call, by symbol
# Passes of Numba for what kernels do not hold: closures, `with`, `raise`, array expressions, literal types, parfors,
# references to be counted.
IDLE = {
    "with_lifting", "inline_closure_likes", "Rewrite dynamic raises", "make_function_op_code_to_jit_function",
    "find_literally", "literal_unroll", "LiteralPropagation", "inline_overloads", "nopython_rewrites",
    "dump_parfor_diagnostics", "ir_legalization",
}  # fmt: skip
_numbers = count()


def whole(kernel: Kernel) -> Any:
    """The dispatcher that Python calls."""
    if not KNOWN:
        return kernel.part
    return Whole(kernel.py_func, targetoptions=dict(kernel.targetoptions), pipeline_class=ForPython)


def part(kernel: Kernel, alone: bool | None = None) -> Any:
    """The dispatcher that kernels call; alone: whether in an object file of its own, by default as declared."""
    if not KNOWN:
        options = {name: value for name, value in kernel.targetoptions.items() if name != "nopython"}
        cached = njit(**options)(kernel.py_func)
        with suppress(RuntimeError):  # no place for a cache
            cached.enable_caching()
        return cached
    options = {**kernel.targetoptions, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    kind = Alone if (kernel.alone if alone is None else alone) else Part
    made = kind(kernel.py_func, targetoptions=options, pipeline_class=ForOnce if kernel.once else ForKernels)
    made.whose = kernel
    return made


class Toolbox:
    """The parts of Numba that `built` passes to the makers of intrinsics."""

    intrinsic, cgutils = staticmethod(intrinsic), cgutils
    make_array, populate_array = staticmethod(make_array), staticmethod(populate_array)


def type_of_built(built: Any) -> Any:
    """Numba's type of an intrinsic that was made after compiling began."""
    target = njit(lambda: None).targetdescr
    target.typing_context.refresh()
    target.target_context.refresh()
    return target.typing_context.resolve_value_type(built)


@contextmanager
def compiling() -> Iterator[None]:
    """Remember Numba's answers, and switch the garbage collector off.

    Numba makes millions of objects that stay, and scanning them costs a tenth.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        with remembered():
            yield
    finally:
        if enabled:
            gc.enable()


class Notice(event.Listener):  # type: ignore[misc]
    """Explains on standard error why a first solve takes so long, and once more where a run stops for other kernels.

    `STICTION_NOTICE=0` keeps it quiet.
    """

    def __init__(self) -> None:
        self.timer: threading.Timer | None = None
        self.within = 0  # compilations: one begins others
        self.ended = 0.0  # when the last of them was over
        self.quiet = os.environ.get("STICTION_NOTICE", "1") == "0"
        self.said = False

    def on_start(self, event: Any) -> None:
        self.within += 1
        if self.within == 1 and time.monotonic() - self.ended > ANEW:
            self.said = False
        if self.timer is None and not self.said and not self.quiet:
            self.timer = threading.Timer(PATIENCE, self.say)
            self.timer.daemon = True
            self.timer.start()

    def on_end(self, event: Any) -> None:
        self.within -= 1
        if not self.within:
            self.ended = time.monotonic()
            if self.timer is not None:
                self.timer.cancel()
                self.timer = None

    def say(self) -> None:
        if not self.said:
            self.said = True
            print("stiction: compiling kernels (once; later runs load them from the cache) ...", file=sys.stderr)


event.register("numba:compile", Notice())


if KNOWN:
    pass_tuples_whole()

    class Part(CPUDispatcher):  # type: ignore[misc]
        """A kernel as kernels call it: compiled once for its argument types, not again for literal numbers."""

        def get_call_template(self, args: Any, kws: Any) -> Any:
            return super().get_call_template([types.unliteral(each) for each in args], kws)

        def compile(self, given: Any) -> Any:
            """As Numba does, but without its cache, and without its timers, which every call into LLVM notifies."""
            kinds, back = normalize_signature(given)
            if kinds not in self.overloads:
                timing = event.trigger_event("numba:compile", {"dispatcher": self, "args": kinds, "return_type": back})
                with global_compiler_lock, self._compiling_counter, timing:
                    self.add_overload(self._compiler.compile(kinds, back))
            return self.overloads[kinds].entry_point

    class Alone(Part):
        """A kernel that others call in an object file of its own, by its symbol and the kind of its results."""

        whose: Kernel

        def compile(self, given: Any) -> Any:
            letters = [exact_kind(each) for each in given] if isinstance(given, tuple) else [None]
            if None in letters or unusual() or Target.one_piece:
                return super().compile(given)
            if given not in self.overloads:
                kinds = ",".join(map(str, letters))
                awaited(self.whose, kinds)
                back = provide(self.whose, kinds).results
                name = symbol_alone(self.whose, kinds)
                ALONE[name] = name_of(self.whose), kinds
                signature = (type_of(back) if back else types.none)(*given)
                described = ExternalFunctionDescriptor(name, signature.return_type, given)
                made = compile_result(signature=signature, entry_point=object(), fndesc=described, objectmode=False)
                self.targetctx.insert_user_function(made.entry_point, described, [])
                self.overloads[given] = made
            return self.overloads[given].entry_point

    class Whole(CPUDispatcher):  # type: ignore[misc]
        """A kernel as Python calls it."""

        @compiling()
        def compile(self, given: Any) -> Any:
            return super().compile(given)

    class ForKernels(Compiler):  # type: ignore[misc]
        """Numba's compiler, with a library for a part."""

        def __init__(
            self, typing: Any, target: Any, library: Any, given: Any, back: Any, flags: Any, *rest: Any
        ) -> None:
            library = library or self.library(target.codegen(), f"stiction-{next(_numbers)}")
            super().__init__(typing, target, library, given, back, QuickFlags(flags), *rest)

        def define_pipelines(self) -> Any:
            pipelines = super().define_pipelines()
            for each in pipelines:
                each.passes = [step for step in each.passes if step[0].name() not in IDLE]
                each.finalize()
            return pipelines

        def library(self, codegen: Any, name: str) -> Any:
            return PartLibrary(codegen, name)

    class ForOnce(ForKernels):
        """The same, with a library that is never compiled into its callers."""

        def library(self, codegen: Any, name: str) -> Any:
            return OnceLibrary(codegen, name)

    class ForPython(ForKernels):
        """The same, with a library that gathers all parts."""

        def library(self, codegen: Any, name: str) -> Any:
            made = WholeLibrary(codegen, name)
            made.enable_object_caching()
            return made

    class ForObject(ForKernels):
        """The same, with a library whose code is written to a file."""

        apart = ""  # symbol of a function that is not to be compiled into its callers

        def library(self, codegen: Any, name: str) -> Any:
            made = ObjectLibrary(codegen, name)
            made.apart = self.apart
            return made

    class QuickFlags(Flags):  # type: ignore[misc]
        """Numba's flags with a fast comparison, by what is set: they are looked up tens of thousands of times."""

        __slots__ = ()

        def __hash__(self) -> int:
            return HASH

        def __eq__(self, other: object) -> bool:
            if not isinstance(other, Flags):
                return False
            mine, others = self._values, other._values
            return mine == others or all(
                mine.get(name, DEFAULTS[name]) == others.get(name, DEFAULTS[name]) for name in {*mine, *others}
            )

    HASH = hash(Flags())  # of the names of all flags, which is what Numba takes
    DEFAULTS = Flags().values()

    class WholeLibrary(JITCodeLibrary):  # type: ignore[misc]
        """Code with all that it calls, optimized at once."""

        def finalize(self) -> None:
            self._linking_libraries: Any = closure(self._linking_libraries)
            super().finalize()

        def _optimize_final_module(self) -> None:
            # Numba's own has a pass before this that brings counts of references together; there are none here.
            manager, builder = self._codegen._module_pass_manager()
            with self._recorded_timings.record("Module passes (full optimization)", builder):
                manager.run(self._final_module, builder)

    class ObjectLibrary(WholeLibrary):
        """A whole that is written to a file, not run."""

        apart = ""

        @property
        def codegen(self) -> Any:
            return NoEnvironment(self._codegen)

        def _optimize_final_module(self) -> None:
            if self.apart:
                self._final_module.get_function(self.apart).add_function_attribute("noinline")
            super()._optimize_final_module()

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._verify_declare_only_symbols()
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0

    class PartLibrary(JITCodeLibrary):  # type: ignore[misc]
        """Code that is only ever linked into a whole: neither optimized nor made into machine code by itself."""

        @property
        def codegen(self) -> Any:
            return NoEnvironment(self._codegen)

        def add_ir_module(self, module: Any) -> None:
            """As Numba does, but without having LLVM verify what is verified when it has been linked."""
            self._raise_if_finalized()
            self.prepare(module)
            parsed = llvm.parse_assembly(cgutils.normalize_ir_text(str(module)))
            parsed.name = module.name
            self.add_llvm_module(parsed)

        def prepare(self, module: Any) -> None:
            credit_words(module)

        def _optimize_functions(self, module: Any) -> None:
            module.data_layout = self._codegen._data_layout

        def finalize(self) -> None:
            self._raise_if_finalized()
            self._finalize_dynamic_globals()
            # Several wholes may hold it, and drop what they have inlined.
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage.name == "external":
                    function.linkage = "linkonce_odr"
            self._shared_module = self._final_module
            self._finalized = True

        def get_pointer_to_function(self, name: str) -> int:
            self._ensure_finalized()
            return 0

    class OnceLibrary(PartLibrary):
        """The same, never compiled into its callers."""

        def prepare(self, module: Any) -> None:
            forbid_inlining(module)

    class NoEnvironment:
        """Numba's code generator for parts, which have no environment in memory."""

        def __init__(self, codegen: Any) -> None:
            self.codegen = codegen

        def set_env(self, name: str, env: Any) -> None:
            pass

        def __getattr__(self, name: str) -> Any:
            return getattr(self.codegen, name)


def closure(libraries: list[Any]) -> list[Any]:
    """These libraries and all parts that they call, each once, in the same order in every run."""
    found: dict[int, Any] = {}
    left = list(reversed(libraries))
    while left:
        library = left.pop()
        if id(library) not in found:
            found[id(library)] = library
            if isinstance(library, PartLibrary):
                left += reversed(library._linking_libraries)
    return list(found.values())


@compiling()
def compiled(kernel: Kernel, kinds: str, name: str, machine: Any = None) -> Made | None:
    """Compile a kernel for arguments of these kinds into an object file; None if a block of words cannot call it.

    name: of its entry; machine: LLVM's, for another processor than this
    """
    letters = split(kinds)
    given = tuple(map(type_of, letters))
    if not KNOWN:
        return None
    whose = part(kernel, alone=False) if kernel.alone else kernel.part
    whose.compile(given)
    itself = whose.overloads[given]
    results = kind_of(itself.signature.return_type)
    if results is None:
        return None
    # A kernel of its own beside its entry has an address by which other kernels can call it.
    apart = not (kernel.targetoptions.get("inline") or kernel.targetoptions["forceinline"])
    symbol = itself.fndesc.llvm_func_name if apart else ""
    options = {**kernel.targetoptions, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    options.pop("inline", None)
    pipeline = type("ForThis", (ForObject,), {"apart": symbol})
    entry = Whole(entry_of(whose, letters, given, results), targetoptions=options, pipeline_class=pipeline)
    arguments = (types.CPointer(types.int64),)
    entry.compile(arguments)
    library = entry.overloads[arguments].library
    module = llvm.parse_bitcode(library._final_module.as_bitcode())
    if any(function.is_declaration and is_foreign(function.name) for function in module.functions):
        return None
    symbols = {entry.overloads[arguments].fndesc.mangled_name: name, symbol: f"{name}_kernel"}
    show_only(module, symbols)
    machine = machine or library._codegen._tm
    needs = tuple(ALONE[each.name] for each in module.functions if each.name in ALONE)
    return Made(name, f"{name}_kernel" if apart else "", results, machine.emit_object(module), needs)


def show_only(module: Any, symbols: dict[str, str]) -> None:
    """Export these symbols under their new names, and hide all others."""
    for function in module.functions:
        if function.name in symbols:
            function.linkage, function.name = "external", symbols[function.name]
        elif not function.is_declaration:
            function.linkage = "internal"


def compiled_gateway(machine: Any = None) -> Made:
    """The gateway as an object file, with C's calling convention."""
    from stiction.arrays import gateway as source

    gateway: Any = source.gateway
    options = {**gateway.targetoptions, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    whole = Whole(gateway.py_func, targetoptions=options, pipeline_class=ForObject)
    given = (types.int64,) * 3
    whole.compile(given)
    itself = whole.overloads[given]
    # Numba's function returns its result through a pointer; this wraps it.
    word, outer = ir.IntType(64), ir.Module()
    inner = ir.Function(
        outer,
        ir.FunctionType(ir.IntType(32), [word.as_pointer(), word.as_pointer(), word, word, word]),
        itself.fndesc.llvm_func_name,
    )
    around = ir.Function(outer, ir.FunctionType(word, [word] * 3), GATEWAY)
    builder = ir.IRBuilder(around.append_basic_block())
    result, error = builder.alloca(word), builder.alloca(word)
    builder.call(inner, [result, error, *around.args])
    builder.ret(builder.load(result))
    module = llvm.parse_bitcode(itself.library._final_module.as_bitcode())
    module.link_in(llvm.parse_assembly(str(outer)))
    show_only(module, {GATEWAY: GATEWAY})
    machine = machine or itself.library._codegen._tm
    return Made(GATEWAY, "", "", machine.emit_object(module))


def is_foreign(symbol: str) -> bool:
    """Whether code that calls it needs Numba in its process."""
    return symbol not in PROVIDED and symbol.startswith(("numba_", "NRT_", "Py", "_Py"))


def type_of(kind: str) -> Any:
    """Numba's type of an argument."""
    if kind in NUMBERS:
        return {"d": types.float64, "q": types.int64, "?": types.boolean}[kind]
    if kind[0] == "<":
        name, fields = fields_of(kind)
        inner = [type_of(each) for each in fields]
        return types.BaseTuple.from_types(inner, named(name) if name else None)
    return types.Array(from_dtype(dtype_of(kind[:-1])), int(kind[-1]), "C")


def exact_kind(given: Any) -> str | None:
    """The kind that stands for exactly this type; None if there is none."""
    if isinstance(given, types.BaseTuple):
        return kind_of_tuple(given, exact_kind)
    if isinstance(given, types.Array):
        letter = next((each for dtype, each in ARRAYS.items() if from_dtype(dtype) == given.dtype), None)
        kind = f"{letter}{given.ndim}"
        return kind if letter and type_of(kind) == given else None
    return {types.float64: "d", types.int64: "q", types.boolean: "?"}.get(given)


def kind_of(result: Any) -> str | None:
    """The kind of results of this type; None if they are more than numbers."""
    if isinstance(result, types.NoneType):
        return ""
    if isinstance(result, types.BaseTuple):
        return kind_of_tuple(result, kind_of)
    if isinstance(result, types.Boolean):
        return "?"
    if isinstance(result, types.Integer):
        return "q"
    return "d" if isinstance(result, types.Float) else None


def kind_of_tuple(given: Any, kind: Callable[[Any], str | None]) -> str | None:
    """The kind of a tuple whose fields have these kinds; None if one of them has none."""
    whose = getattr(given, "instance_class", tuple)
    name = "" if whose is tuple else f"{whose.__module__}:{whose.__qualname__}"
    fields = [kind(each) for each in given]
    return None if None in fields else f"<{'|'.join([name, *map(str, fields)])}>"


def entry_of(kernel: Any, kinds: list[str], given: tuple[Any, ...], results: str) -> Any:
    """A function that reads arguments from a block of words, calls the kernel, and writes the results after them."""
    names: dict[str, Any] = {"kernel": kernel, "as_float": as_float, "as_word": as_word}
    lines, word = ["def entry(words):"], 0

    def read(kind: str, numba_type: Any) -> str:
        """The expression of one argument, from the next words."""
        nonlocal word
        if kind[0] == "<":
            name, fields = fields_of(kind)
            values = ", ".join(map(read, fields, numba_type))
            if not name:
                return f"({values},)"
            names[f"record{len(names)}"] = numba_type.instance_class
            return f"record{len(names) - 1}({values})"
        place = f"words[{word}]"
        word += 1
        if kind in NUMBERS:
            return {"d": f"as_float({place})", "q": place, "?": f"{place} != 0"}[kind]
        names[f"array{word}"] = array_at(numba_type)
        return f"array{word}({place})"

    values = ", ".join(map(read, kinds, given))
    lines.append(f"    result = kernel({values})")
    for place, (letter, path) in enumerate(words_of(results, "result") if results else (), word):
        value = f"as_word({path})" if letter == "d" else f"1 if {path} else 0" if letter == "?" else path
        lines.append(f"    words[{place}] = {value}")
    exec("\n".join(lines), names)
    return names["entry"]


def cast(back: Any, given: Any) -> Any:
    """The same eight bytes as another type."""

    @intrinsic  # type: ignore[untyped-decorator]
    def cast(typing: Any, value: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.bitcast(arguments[0], context.get_value_type(back))

        return back(given), code

    return cast


as_float, as_word = cast(types.float64, types.int64), cast(types.int64, types.float64)


def array_at(kind: Any) -> Any:
    """An array, of the object at an address."""

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
