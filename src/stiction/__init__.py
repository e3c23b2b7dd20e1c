"""Rigid-body contact with friction, solved exactly and fast, every answer with a certificate.

Names are loaded when they are first used: `import stiction` itself imports neither NumPy nor Numba. Which names there
are, and where, is listed in `__init__.pyi`, a line each.
"""

from importlib import import_module as _import_module
from pathlib import Path as _Path

__version__ = "0.1.0"

_WORDS = [line.split() for line in _Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8").splitlines()]
_HOME = {words[-1]: words[1] for words in _WORDS if words[:1] == ["from"]}  # from HOME import NAME as NAME

__all__ = ["__version__", *(name for name, home in _HOME.items() if home != "stiction")]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'stiction' has no attribute {name!r}")
    home = _HOME[name]
    value = _import_module(f"stiction.{name}") if home == "stiction" else getattr(_import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
