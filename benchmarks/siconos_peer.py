"""Siconos, which lives in an interpreter of its own (Debian's python3-siconos): asked through pipes, timed there.

The interpreter is `SICONOS_PYTHON`, or one of the usual ones that can import it.
"""

from __future__ import annotations

import io
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from measure import Contestant, Timed

import stiction as st
from stiction.problems.pyramid import pyramid_lcp

WORKER = Path(__file__).with_name("siconos_worker.py")
ACCURACY = 1e-10
# Its methods on the cone, and how many iterations each may make: sweeps of nonsmooth Gauss–Seidel, Newton steps on
# Alart and Curnier's map, and steps of the alternating direction method of multipliers.
METHODS = {"NSGS": 20_000, "NSN_AC": 200, "ADMM": 20_000}


@cache
def worker() -> subprocess.Popen[bytes] | None:
    """The process that answers, or None if no interpreter has Siconos."""
    for python in (os.environ.get("SICONOS_PYTHON"), sys.executable, "/usr/bin/python3", "python3"):
        if python is None:
            continue
        try:
            found = subprocess.run([python, "-c", "import siconos.numerics"], capture_output=True, timeout=60)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if found.returncode == 0:
            process = subprocess.Popen(
                [python, str(WORKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            receive(process)
            return process
    return None


def version() -> str | None:
    process = worker()
    if process is None:
        return None
    code = "from importlib.metadata import version; print(version('siconos'))"
    found = subprocess.run([str(process.args[0]), "-c", code], capture_output=True, text=True)  # type: ignore[index]
    return found.stdout.strip() or "of unknown version"


def receive(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert process.stdout is not None
    size = process.stdout.read(8)
    if len(size) < 8:
        raise RuntimeError("Siconos has ended")
    with np.load(io.BytesIO(process.stdout.read(struct.unpack("<q", size)[0]))) as message:
        return {name: message[name] for name in message.files}


def ask(**arrays: Any) -> Timed | None:
    process = worker()
    assert process is not None
    assert process.stdin is not None
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    try:
        process.stdin.write(struct.pack("<q", packed.tell()) + packed.getvalue())
        process.stdin.flush()
        answer = receive(process)
    except (RuntimeError, BrokenPipeError):  # it died of this problem
        worker.cache_clear()
        return None
    return Timed(float(answer["seconds"]), answer["z"])


def lemke() -> Contestant:
    """Its lexicographic Lemke, of contact on the pyramid's assembled LCP."""

    def prepare(problem: Any) -> Callable[[], Any]:
        lcp = pyramid_lcp(problem) if isinstance(problem, st.ContactProblem) else problem
        M, q = np.asfortranarray(lcp.M), lcp.q
        return lambda: ask(kind="lcp", M=M, q=q)

    return Contestant("Siconos Lemke", prepare)


def on_the_cone(method: str) -> Contestant:
    """One of its methods on the cone, in Delassus form, whose assembly is not timed."""

    def prepare(problem: Any) -> Callable[[], Any]:
        W, q = delassus(problem)
        friction = problem.friction.copy()

        def solve() -> Any:
            found = ask(
                kind="cone", W=W, q=q, friction=friction, accuracy=ACCURACY, method=method, iterations=METHODS[method]
            )
            return found and Timed(found.seconds, found.answer.reshape(-1, 3))

        return solve

    return Contestant(f"Siconos {method}", prepare)


def delassus(problem: Any) -> tuple[Any, Any]:
    """W and q of u = W p + q, in SI units; joints projected out."""
    if problem.mass is None:
        return np.asfortranarray(problem.delassus), problem.offset.copy()
    n = problem.n
    free, unit = problem.respond(np.zeros((n, 3)))[0], np.eye(3 * n)
    rows = problem.dense_rows().reshape(3 * n, problem.m)
    bias = np.zeros((n, 3))
    bias[:, 0] = problem.gap_rate
    columns = [rows @ (problem.respond(unit[k].reshape(n, 3))[0] - free) for k in range(3 * n)]
    return np.asfortranarray(np.array(columns).T), rows @ free + bias.ravel()
