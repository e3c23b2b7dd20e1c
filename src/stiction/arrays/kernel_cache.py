"""Where compiled kernels are kept between processes, and how they are loaded: with LLVM, without Numba.

There is one file a kernel and kinds of arguments:

    <base>/<hash of all sources that hold kernels>/<hash of versions and processor>/<kernel>-<hash of the kinds>.kernel

The base is the first that can be written of `NUMBA_CACHE_DIR`, the package's own `__pycache__` and the user's cache
folder. A file holds a checksum, a line that describes it, and the machine code as a compiler writes it (an object
file); it appears whole or not at all. Whatever goes wrong here costs a compilation and one `RuntimeWarning`, never an
answer.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import threading
import uuid
import warnings
import zlib
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from stiction.arrays.calls import Code, named
from stiction.arrays.sources import PACKAGE, sources, unchanged

if TYPE_CHECKING:
    from collections.abc import Callable

    from stiction.arrays.compiled import Kernel

KEPT = 3  # states of the sources whose kernels are kept; the others belong to older ones
STATE = re.compile(r"[0-9a-f]{16}")  # the name of the folder of one state
CHECKSUM = 4  # bytes
PROVIDED = {"numba_frexp": "frexp", "numba_ldexp": "ldexp"}  # what kernels call of Numba's own, and what it is in C


class Made(NamedTuple):
    """A compiled kernel."""

    entry: str  # symbol of what is called with a block of words
    kernel: str  # symbol of the kernel itself
    results: str  # their kind
    machine_code: bytes  # as an object file
    needs: tuple[tuple[str, str], ...] = ()  # names and kinds of the `@alone` kernels that it calls


def kept(name: str, key: str) -> Code | None:
    """Load the code that an earlier process compiled; None if there is none that can be read."""

    def understood(content: bytes) -> Code | None:
        head, machine_code = content.split(b"\n", 1)
        written, entry, symbol, results, needs = json.loads(head)
        if written != key:
            return None
        for needed, its_kinds in needs:
            provide(named(needed), its_kinds)
        return loaded(Made(entry, symbol, results, machine_code))

    return read(name, understood) if name and unchanged() else None


def read(name: str, understood: Callable[[bytes], Any]) -> Any:
    """Read the first file of this name that `understood` accepts; None if there is none. Damaged ones are removed."""
    for folder in places().folders:
        path = folder / name
        try:
            content = path.read_bytes()
        except OSError:
            continue
        try:
            found = understood(checked(content))
        except Exception as error:  # damage shows itself in every way that reading can fail
            warn_once(f"a compiled kernel is damaged and is compiled anew: {path} ({type(error).__name__}: {error})")
            with contextlib.suppress(OSError):
                path.unlink()
            continue
        if found is not None:
            return found
    return None


def keep(name: str, key: str, made: Made) -> None:
    """Write a compiled kernel to disk for later processes."""
    where = places() if name and unchanged() else None
    if where is None or where.folder is None:
        return
    try:
        write_whole(where.folder / name, json.dumps([key, *made[:3], made.needs]).encode() + b"\n" + made.machine_code)
    except OSError as error:  # a full disk, a folder that was removed
        where.folder = None  # do not try again for each of some hundred kernels
        warn_once(f"compiled kernels are not kept, the next process compiles them anew: {error}. {ADVICE}")


def is_kept(kernel: Kernel, kinds: str) -> bool:
    """Whether a kernel for these kinds is on disk."""
    name = filed(kernel, kinds)[0]
    return bool(name) and unchanged() and any((folder / name).is_file() for folder in places().folders)


def provide(kernel: Kernel, kinds: str) -> Code:
    """Load an `@alone` kernel and register its symbol, so that machine code which calls it can be loaded."""
    import llvmlite.binding as llvm

    code = kernel.code(kinds)
    if code is None:
        raise ValueError(f"{kernel!r} is not compiled")
    llvm.add_symbol(symbol_alone(kernel, kinds), code.kernel)
    return code


def symbol_alone(kernel: Kernel, kinds: str) -> str:
    """The name by which other kernels call it."""
    return f"{filed(kernel, kinds)[2]}_kernel"


def filed(kernel: Kernel, kinds: str) -> tuple[str, str, str]:
    """Name of the file, what must be found in it, and a symbol for the machine code that no other has.

    No name for functions that come from no file.
    """
    code = kernel.py_func.__code__
    stamp = stamp_of(code.co_filename)
    if stamp is None or kernel.py_func.__closure__:  # what a function within another holds cannot be compared
        return "", "", f"stiction_{uuid.uuid4().hex}"
    options = sorted((name, repr(value)) for name, value in kernel.targetoptions.items() if name != "fastmath")
    fast = sorted(kernel.targetoptions["fastmath"])
    place = code.co_filename, code.co_firstlineno, kernel.__qualname__, stamp, kinds, options, fast
    key = hashlib.sha256(repr(place).encode()).hexdigest()
    return f"{title(kernel.py_func)}-{key[:24]}.kernel", key, f"stiction_{key[:24]}"


def title(function: Any) -> str:
    """A readable beginning for the name of a kernel's file."""
    code = function.__code__
    words = re.sub(r"[^\w.]", "", f"{Path(code.co_filename).stem}.{function.__qualname__}")
    return f"{words[:60]}-{code.co_firstlineno}"


def checked(found: bytes) -> bytes:
    """The content of a file after its checksum, which is compared: machine code with a flipped bit would be run."""
    content = found[CHECKSUM:]
    if not content or zlib.crc32(content).to_bytes(CHECKSUM, "big") != found[:CHECKSUM]:
        raise ValueError("the checksum does not match")
    return content


def write_whole(path: Path, content: bytes) -> None:
    """Write with a checksum, under another name, then rename: other processes never read a partial file."""
    content = zlib.crc32(content).to_bytes(CHECKSUM, "big") + content
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{uuid.uuid4().hex[:16]}.part")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


_loading = threading.Lock()


def loaded(made: Made) -> Code:
    """Load machine code into memory, for good."""
    import llvmlite.binding as llvm

    with _loading:
        engine = memory()
        engine.add_object_file(llvm.ObjectFileRef.from_data(made.machine_code))
        engine.finalize_object()
        entry = engine.get_function_address(made.entry)
        kernel = engine.get_function_address(made.kernel) if made.kernel else 0
    if not entry:
        raise ValueError(f"it does not hold {made.entry}")
    return Code(entry, kernel, made.results)


@cache
def memory() -> Any:
    """LLVM's loader of machine code, with the C functions that kernels call."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    process = ctypes.CDLL("ucrtbase" if sys.platform == "win32" else None)
    for name, own in PROVIDED.items():
        llvm.add_symbol(name, ctypes.cast(getattr(process, own), ctypes.c_void_p).value)
    machine = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine()
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)


class Places:
    """Folders that kernels are read from, and the one that they are written to; None if there is none."""

    def __init__(self) -> None:
        self.folders: list[Path] = []
        self.folder: Path | None = None
        refused = []
        for base in bases():
            folder = base / sources() / surroundings()
            self.folders.append(folder)  # even if it cannot be written: it may have been filled when it was built
            try:
                prepare(folder)
            except OSError as error:
                refused.append(f"{base} ({error.strerror or error})")
                continue
            self.folder = folder
            prune(base)
            break
        if self.folder is None:
            warn_once(f"no folder to keep compiled kernels in: {', '.join(refused)}. Every process compiles. {ADVICE}")
        elif refused and os.environ.get("NUMBA_CACHE_DIR"):
            warn_once(f"compiled kernels cannot be kept in {refused[0]}; they are kept in {self.folder}")


@cache
def places() -> Places:
    """Found at the first call of a kernel, not at import."""
    return Places()


def bases() -> list[Path]:
    """The folders to try, the user's own choice first."""
    checkout = f"stiction-{hashlib.sha256(str(PACKAGE).encode()).hexdigest()[:8]}"  # two of them share no folder
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    mine = [Path(chosen).absolute() / checkout] if chosen else []
    return [*mine, PACKAGE / "__pycache__" / "kernels", user_cache() / "numba" / checkout]


def user_cache() -> Path:
    """The user's cache folder."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def prepare(folder: Path) -> None:
    """Make it, try to write to it, and mark its state of the sources as the last used."""
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()
    os.utime(folder.parent)


def prune(base: Path) -> None:
    """Remove what older sources were compiled to."""
    with contextlib.suppress(OSError):
        states = [path for path in base.iterdir() if STATE.fullmatch(path.name)]
        states.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for old in states[KEPT:]:
            shutil.rmtree(old, ignore_errors=True)


@cache
def surroundings() -> str:
    """Hash of the versions and the processor that machine code depends on, besides sources."""
    import llvmlite.binding as llvm

    try:
        compiler = version("numba")
    except PackageNotFoundError:
        compiler = ""
    features = llvm.get_host_cpu_features().flatten()
    parts = (
        sys.implementation.cache_tag,
        sys.platform,
        compiler,
        llvm.llvm_version_info,
        llvm.get_host_cpu_name(),
        features,
    )
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]


@cache
def stamp_of(filename: str) -> str | None:
    """Hash of a source file, of the package or not; None if there is no file, as at a prompt."""
    try:
        return hashlib.sha256(Path(filename).read_bytes()).hexdigest()
    except OSError:
        return None


ADVICE = "To keep them, set NUMBA_CACHE_DIR to a folder that can be written."
_warned = False


def warn_once(text: str) -> None:
    """Warn once in a process: a cache that does not work is one fact, however many kernels there are."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(f"stiction: {text}", RuntimeWarning, stacklevel=2)
