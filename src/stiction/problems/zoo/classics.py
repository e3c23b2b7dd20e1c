"""Problems of the textbooks and of other people's test suites, with what is known about their solutions.

`classics()` are linear complementarity problems: cycling, exponentially long, infeasible, with several solutions;
`box_classics()` are mixed and bounded ones (circuits with diodes, relays). Their numbers lie in `data/`, with their
origin and licence. `murty_exponential` and `fathi` give the two exponential examples in any size. `lloyd_blocks()` are
blocks in the plane and in space, pushed over each other, with friction between constant limits: one pass of
[Lacoursiere2003, eq. 8].
"""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from stiction.errors import InvalidProblem
from stiction.problems.lcp import LCP, BoxLCP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

BOX_SOURCE = "Siconos numerics tests, MLCP and relay data (Apache-2.0)"
BOX_NOTES = {
    "BuckFirstStep": "buck converter, first step; the matrix is singular",
    "PD": "mixed; named so by its source, but its free block is singular",
    "PDSym": "mixed, symmetric positive definite",
    "RLCD": "oscillator of resistor, inductor, capacitor and diode",
    "diodeBridge": "rectifier with four diodes; the free block and the matrix are singular",
    "m2n1": "two inequalities, one free variable",
    "relay1": "relays with bounds of 0.1",
    "relay_2x2": "two relays",
    "step_4x4": "four variables between 0.1 and 1",
}


@dataclass(frozen=True, eq=False)
class Classic:
    """A published problem.

    source: where it comes from
    note: what is known about it
    basic_solutions: all basic solutions z; none: there is no solution; None: not enumerated (n > 12)
    """

    name: str
    problem: BoxLCP
    source: str
    note: str
    basic_solutions: tuple[NDArray[np.float64], ...] | None


@dataclass(frozen=True, eq=False)
class Block:
    """One of Lloyd's blocks: rows at which forces z act, M v = force + rowsᵀ z after 1 s from rest, w = rows v.

    problem: the box LCP of z, normal forces (n of them) first, then friction between its limits
    velocity: (m,) the velocity that he expects; unique, as z is not
    normal, friction: the forces that he expects, where he gives them
    """

    name: str
    problem: BoxLCP
    mass: NDArray[np.float64]
    rows: NDArray[np.float64]
    force: NDArray[np.float64]
    velocity: NDArray[np.float64]
    normal: NDArray[np.float64] | None
    friction: NDArray[np.float64] | None


@cache
def classics() -> Mapping[str, Classic]:
    """The sixteen linear complementarity problems, by name."""
    return MappingProxyType({entry["name"]: _from_json(entry) for entry in json.loads(_data("lcp-classics.json"))})


@cache
def box_classics() -> Mapping[str, Classic]:
    """The nine mixed and box problems, by name."""
    return MappingProxyType({name: _from_npz(name, note) for name, note in BOX_NOTES.items()})


def classic(name: str) -> Classic:
    """One of `classics()` or `box_classics()`."""
    known = {**classics(), **box_classics()}
    if name not in known:
        raise InvalidProblem(f"there is no classic named {name!r}; known are {', '.join(sorted(known))}")
    return known[name]


@cache
def lloyd_blocks() -> Mapping[str, Block]:
    """Lloyd's twelve blocks with constant friction limits and what he expects of them, by name."""
    text = re.sub(r"#.*", "", _data("contact", "MLCPtest.txt").decode())
    given: dict[str, NDArray[np.float64] | None] = {}
    blocks = {}
    for name, body in re.findall(r'name\s*=\s*"([^"\n]*)"?\n(.*?)(?=name\s*=|\Z)', text, re.DOTALL):
        entries = dict(re.findall(r"(\w+)\s*=\s*(null|\[[^=]*\])", body))
        # Matrices and limits stay until they are given anew; what he expects is meant for one block only.
        given = {key: value for key, value in given.items() if key in ("M", "NT", "DT", "flim")}
        given |= {key: None if value == "null" else _numbers(key, value) for key, value in entries.items()}
        blocks[name] = _lloyd_block(name, given)
    return MappingProxyType(blocks)


def murty_exponential(n: int) -> LCP:
    """Murty (1978): M upper triangular with 1 on the diagonal and 2 above, q = -1.

    A P matrix; the solution is the last unit vector (Floudas et al. 1999, problem 10.2.1). Murty's method, least index
    first and from z = 0, takes 2^n - 1 pivots.
    """
    return LCP(np.eye(n) + 2.0 * np.triu(np.ones((n, n)), 1), -np.ones(n))


def fathi(n: int) -> LCP:
    """Fathi (1979): the symmetric positive definite L Lᵀ, L lower triangular as `murty_exponential` is upper; q = -1.

    The solution is the first unit vector. Murty's method takes 2^n - 1 pivots if the largest index goes first.
    """
    L = np.eye(n) + 2.0 * np.tril(np.ones((n, n)), -1)
    return LCP(L @ L.T, -np.ones(n))


def _data(*path: str) -> bytes:
    return files("stiction.problems.zoo").joinpath("data", *path).read_bytes()


def _from_json(entry: dict[str, Any]) -> Classic:
    basic = entry["basic_solutions"]
    solutions = None if basic is None else tuple(_read_only(np.array(z, dtype=np.float64)) for z in basic)
    return Classic(entry["name"], LCP(entry["M"], entry["q"]), entry["source"], entry["note"], solutions)


def _from_npz(name: str, note: str) -> Classic:
    with np.load(io.BytesIO(_data("box", f"{name}.npz")), allow_pickle=False) as data:
        problem = BoxLCP(data["H"], data["q"], data["lo"], data["hi"])
    return Classic(name, problem, BOX_SOURCE, note, None)


def _read_only(z: NDArray[np.float64]) -> NDArray[np.float64]:
    z.flags.writeable = False
    return z


def _lloyd_block(name: str, given: Mapping[str, NDArray[np.float64] | None]) -> Block:
    mass, normal, tangent = given["M"], given["NT"], given.get("DT")
    force, velocity = given["bf"], given["vel"]
    assert mass is not None
    assert normal is not None
    assert force is not None
    assert velocity is not None
    limit, rows = given.get("flim"), normal.T
    if tangent is None or limit is None:
        limit = np.zeros(0)
    else:
        rows = np.vstack([rows, tangent.T])
    n = normal.shape[1]
    lo, hi = np.concatenate([np.zeros(n), -limit]), np.concatenate([np.full(n, np.inf), limit])
    H, q = rows @ np.linalg.solve(mass, rows.T), rows @ np.linalg.solve(mass, force)
    problem = BoxLCP(0.5 * (H + H.T), q, lo, hi)
    return Block(name, problem, mass, rows, force, velocity, given.get("the"), given.get("phi"))


def _numbers(key: str, text: str) -> NDArray[np.float64]:
    """A vector, or for M, NT and DT a matrix: row sizes, column sizes, and its blocks, each led by its place."""
    lists = [np.array(part.split(), np.float64) for part in re.findall(r"\[([^][]*)\]", text)]
    if key not in ("M", "NT", "DT"):
        return _read_only(lists[0])
    heights, widths = (sizes.astype(int) for sizes in lists[:2])
    top, left = np.concatenate([[0], np.cumsum(heights)]), np.concatenate([[0], np.cumsum(widths)])
    matrix = np.zeros((top[-1], left[-1]))
    for block in lists[2:]:
        i, j = block[:2].astype(int)
        matrix[top[i] : top[i + 1], left[j] : left[j + 1]] = block[2:].reshape(heights[i], widths[j])
    return _read_only(matrix)
