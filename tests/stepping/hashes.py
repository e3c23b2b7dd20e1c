"""The state of every named scene after 200 steps, as a hash: what changes a bit of a step is seen.

`python tests/stepping/hashes.py` compares with the table in the tree, `--write` renews it, `--print` prints the hashes
of this run as JSON; scenes may be named. Bits depend on the processor and on the versions below, so the table says what
it was made on. A change of it belongs into the commit that changes what a step computes, with the reason.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import sys
import time
from importlib.metadata import version
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
from numba import config

import stiction as st
from stiction.scenes import SCENES

TABLE = Path(__file__).with_name("hashes.json")
STEPS = 200
PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "mujoco")


def kind() -> dict[str, str]:
    """What bits may depend on besides the sources: processor, its features, and who computes."""
    features = ",".join(sorted(name for name, there in llvm.get_host_cpu_features().items() if there))
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": llvm.get_host_cpu_name(),
        "features": hashlib.sha256(features.encode()).hexdigest()[:16],
        "blas": os.environ.get("OPENBLAS_CORETYPE", "chosen by the processor"),  # turns the bodies of some scenes
        "compiled": "no" if config.DISABLE_JIT else "with bounds checked" if config.BOUNDSCHECK else "yes",
        **{package: version(package) for package in PACKAGES},
    }


def state_hash(name: str) -> str:
    """SHA-256 of positions, velocities, activations and time after the steps."""
    simulation = st.Simulation(st.Scene.named(name))
    for _ in range(STEPS):
        simulation.step()
    data = simulation.data
    digest = hashlib.sha256()
    for field in (data.qpos, data.qvel, data.act, np.array([data.time])):
        digest.update(np.ascontiguousarray(field, np.float64).tobytes() + b"|")
    return digest.hexdigest()


def table() -> dict[str, dict[str, str]]:
    """What is in the tree: `kind` and `hashes`."""
    return json.loads(TABLE.read_text(encoding="utf-8"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scene", nargs="*", help="all if none is named")
    parser.add_argument("--write", action="store_true", help=f"renew {TABLE.name}")
    parser.add_argument("--print", action="store_true", help="print the hashes as JSON")
    options = parser.parse_args()
    if options.write and options.scene:
        parser.error("a table holds all scenes: name none with --write")
    found = {}
    for name in options.scene or SCENES:
        begin = time.perf_counter()
        found[name] = state_hash(name)
        print(f"{found[name][:16]}  {time.perf_counter() - begin:6.2f} s  {name}", file=sys.stderr, flush=True)
    if options.print:
        print(json.dumps(found))
        return 0
    if options.write:
        TABLE.write_text(json.dumps({"kind": kind(), "hashes": found}, indent=1) + "\n", encoding="utf-8")
        return 0
    kept = table()
    if kept["kind"] != kind():
        print(f"the table is of another kind: {kept['kind']}, not {kind()}", file=sys.stderr)
        return 2
    differ = [name for name, each in found.items() if kept["hashes"].get(name) != each]
    print("differ: " + ", ".join(differ) if differ else f"all {len(found)} as in the table", file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
