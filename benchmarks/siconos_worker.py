"""Siconos in the interpreter that has it: reads problems, writes answers with the seconds that its own call took.

Messages are .npz archives behind their length in eight bytes, since the two sides may have different versions of NumPy.
"""

from __future__ import annotations

import io
import struct
import sys
import time

import numpy as np
import siconos.numerics as sn


def lcp(M, q):
    """Lemke's method, lexicographic."""
    problem, n = sn.LCP(M, q), len(q)
    z, w, options = np.zeros(n), np.zeros(n), sn.SolverOptions(sn.SICONOS_LCP_LEMKE)
    begin = time.perf_counter()
    info = sn.linearComplementarity_driver(problem, z, w, options)
    return time.perf_counter() - begin, info, z


def cone(W, q, friction, accuracy, method, iterations):
    """On the circular cone: NSGS, NSN_AC or ADMM."""
    n = len(friction)
    problem = sn.FrictionContactProblem(3, n, W, q, friction)
    options = sn.SolverOptions(getattr(sn, f"SICONOS_FRICTION_3D_{method}"))
    options.dparam[sn.SICONOS_DPARAM_TOL] = float(accuracy)
    options.iparam[sn.SICONOS_IPARAM_MAX_ITER] = int(iterations)
    reaction, velocity = np.zeros(3 * n), np.zeros(3 * n)
    begin = time.perf_counter()
    info = sn.fc3d_driver(problem, reaction, velocity, options)
    return time.perf_counter() - begin, info, reaction


def receive(stream):
    size = stream.read(8)
    if len(size) < 8:
        return None
    with np.load(io.BytesIO(stream.read(struct.unpack("<q", size)[0]))) as message:
        return {name: message[name] for name in message.files}


def send(stream, **arrays):
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    stream.write(struct.pack("<q", packed.tell()) + packed.getvalue())
    stream.flush()


def main():
    answers = sys.stdout.buffer
    sys.stdout = sys.stderr
    send(answers, version=np.array(getattr(sn, "__version__", "")))
    while (message := receive(sys.stdin.buffer)) is not None:
        solve = {"lcp": lcp, "cone": cone}[str(message.pop("kind"))]
        seconds, info, z = solve(**message)
        send(answers, seconds=seconds, info=info, z=z)


if __name__ == "__main__":
    main()
