"""Where compiled kernels are kept between processes.

Numba has a cache of its own, with three faults that matter here: it does not notice a change of a kernel that is called
from another file, it mixes code with and without checked bounds, and when its folder cannot be written, is full or
damaged, the solve ends in an exception. So kernels are kept by this module instead, one file a kernel and signature:

    <base>/<hash of all sources that hold kernels>/<hash of versions and flags>/<kernel>-<hash of the signature>.kernel

The base is the first that can be written of `NUMBA_CACHE_DIR`, the package's own `__pycache__` and the user's cache
folder. A file holds a checksum, the key and the machine code; it appears whole or not at all. Whatever goes wrong here
costs a compilation and one `RuntimeWarning`, never an answer.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import re
import shutil
import sys
import tempfile
import uuid
import warnings
import zlib
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core import config

try:
    from numba.core.caching import NullCache
    from numba.core.compiler import CompileResult
    from numba.core.serialize import dumps
    from numba.misc.appdirs import AppDirs
except ImportError:  # a version of Numba with other internals keeps its kernels itself
    NullCache = CompileResult = None

from stiction.arrays.sources import PACKAGE, sources

FLAGS = ("BOUNDSCHECK", "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "ENABLE_AVX", "DEBUGINFO_DEFAULT", "FASTMATH")
KEPT = 3  # states of the sources whose kernels are kept; the others belong to older ones
STATE = re.compile(r"[0-9a-f]{16}")  # the name of the folder of one state
CHECKSUM = 4  # bytes


def keep(dispatcher: Any) -> Any:
    """Have what a dispatcher compiles kept on disk. Without compilation there is nothing to keep."""
    if config.DISABLE_JIT:
        return dispatcher
    if internals_are_known(dispatcher):
        dispatcher._cache = KernelCache(dispatcher.py_func)
        return dispatcher
    try:
        dispatcher.enable_caching()
    except RuntimeError as error:
        warn_once(f"compiled kernels are not kept, every process compiles them anew: {error}")
    return dispatcher


def internals_are_known(dispatcher: Any) -> bool:
    """Whether a dispatcher has the place for a cache that this module fills."""
    known = NullCache is not None and isinstance(getattr(dispatcher, "_cache", None), NullCache)
    return known and hasattr(CompileResult, "_reduce") and hasattr(CompileResult, "_rebuild")


class KernelCache:
    """The compiled signatures of one function: Numba asks here before it compiles, and hands in what it compiled."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.enabled = True

    @property
    def cache_path(self) -> str | None:
        folder = places().folder
        return None if folder is None else str(folder)

    def enable(self) -> None:
        self.enabled = True

    def disable(self) -> None:
        self.enabled = False

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compile result of an earlier process; None if there is none that can be read."""
        target_context.refresh()  # what is unpickled refers to types that this registers
        name, key = self.filed(sig, target_context.codegen())
        for folder in places().folders if name else ():
            path = folder / name
            try:
                found = path.read_bytes()
            except OSError:
                continue
            try:
                kept, payload = pickle.loads(checked(found))
                if kept == key:
                    return self.rebuilt(target_context, payload)
            except Exception as error:  # damage shows itself in every way that unpickling can fail
                warn_once(
                    f"a compiled kernel is damaged and is compiled anew: {path} ({type(error).__name__}: {error})"
                )
                with contextlib.suppress(OSError):
                    path.unlink()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        where = places()
        name, key = self.filed(sig, data.codegen)
        if where.folder is None or not name:
            return
        try:
            content = self.pickled(key, data)
            write_whole(where.folder / name, zlib.crc32(content).to_bytes(CHECKSUM, "big") + content)
        except Exception as error:  # a full disk, a folder that was removed, something that cannot be pickled
            if isinstance(error, OSError):
                where.folder = None  # do not try again for each of some hundred kernels
            warn_once(f"compiled kernels are not kept, the next process compiles them anew: {error}. {ADVICE}")

    def pickled(self, key: Any, data: Any) -> bytes:
        """What is written of a compile result."""
        if any(not each.can_cache for each in data.lifted) or data.library.has_dynamic_globals:
            raise ValueError(f"{self.function.__qualname__} uses lifted code or addresses of this process")
        return dumps((key, data._reduce()))  # type: ignore[no-any-return]

    def rebuilt(self, target_context: Any, payload: Any) -> Any:
        """The compile result that was written."""
        return CompileResult._rebuild(target_context, *payload)

    def flush(self) -> None:
        """Forget what was kept of this function."""
        folder = places().folder
        for path in folder.glob(f"{title(self.function)}-*.kernel") if folder else ():
            with contextlib.suppress(OSError):
                path.unlink()

    def filed(self, sig: Any, codegen: Any) -> tuple[str, Any]:
        """Name of the file and what must be found in it; no name for functions that come from no file."""
        code = self.function.__code__
        stamp = stamp_of(code.co_filename)
        if not self.enabled or stamp is None:
            return "", None
        closure = self.function.__closure__
        held = b"" if closure is None else dumps(tuple(cell.cell_contents for cell in closure))
        # The processor is in `magic_tuple`. The text of a signature need not be unique: the key itself is compared too.
        key = sig, codegen.magic_tuple(), hashlib.sha256(code.co_code + held).hexdigest()
        place = code.co_filename, code.co_firstlineno, stamp, str(sig), *key[1:]
        return f"{title(self.function)}-{hashlib.sha256(repr(place).encode()).hexdigest()[:24]}.kernel", key


def title(function: Any) -> str:
    """Readable, and fit to begin the name of a file."""
    words = re.sub(r"[^\w.]", "", f"{Path(function.__code__.co_filename).stem}.{function.__qualname__}")
    return f"{words[:60]}-{function.__code__.co_firstlineno}"


def checked(found: bytes) -> bytes:
    """The content of a file; machine code with a flipped bit would be run, so it is compared with its checksum."""
    content = found[CHECKSUM:]
    if not content or zlib.crc32(content).to_bytes(CHECKSUM, "big") != found[:CHECKSUM]:
        raise ValueError("the checksum does not match")
    return content


def write_whole(path: Path, content: bytes) -> None:
    """Beside and renamed: another process reads the old file or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{uuid.uuid4().hex[:16]}.part")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            beside.unlink()
        raise


class Places:
    """Folders that kernels are read from, and the one that they are written to; None if there is none."""

    def __init__(self) -> None:
        self.folders: list[Path] = []
        self.folder: Path | None = None
        refused = []
        for base in bases():
            folder = base / sources() / surroundings()
            self.folders.append(folder)  # one that cannot be written may have been filled when the package was built
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
        elif refused and config.CACHE_DIR:
            warn_once(f"compiled kernels cannot be kept in {refused[0]}; they are kept in {self.folder}")


@cache
def places() -> Places:
    """Looked for at the first kernel that is called, not at import."""
    return Places()


def bases() -> list[Path]:
    """The folders to try, the user's own choice first."""
    checkout = f"stiction-{hashlib.sha256(str(PACKAGE).encode()).hexdigest()[:8]}"  # two of them share no folder
    user = AppDirs(appname="numba", appauthor=False).user_cache_dir
    chosen = [Path(config.CACHE_DIR).absolute() / checkout] if config.CACHE_DIR else []
    return [*chosen, PACKAGE / "__pycache__" / "kernels", Path(user) / checkout]


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
    """Hash of the versions and flags that machine code depends on, besides sources and processor."""
    versions = sys.implementation.cache_tag, sys.platform, numba.__version__, llvmlite.__version__
    flags = [(name, getattr(config, name, None)) for name in FLAGS]
    return hashlib.sha256(repr((versions, flags)).encode()).hexdigest()[:8]


@cache
def stamp_of(filename: str) -> str | None:
    """Hash of a source that need not be in the package; None if there is none, as at a prompt."""
    try:
        return hashlib.sha256(Path(filename).read_bytes()).hexdigest()
    except OSError:
        return None


ADVICE = "To keep them, set NUMBA_CACHE_DIR to a folder that can be written."
_warned = False


def warn_once(text: str) -> None:
    """One warning a process: that a cache does not work is one fact, however many kernels there are."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(f"stiction: {text}", RuntimeWarning, stacklevel=2)
