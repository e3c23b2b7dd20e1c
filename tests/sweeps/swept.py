"""Functions that the tests of sweeps call in workers, which must find them in a module."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path


def square(k, bad=False):
    if bad:
        raise ValueError(f"no square\nof {k}")
    return {"square": k * k}


def once(k, folder, bad=False):
    """Leaves a line for each call, so that calls can be counted."""
    with (Path(folder) / f"calls-{os.getpid()}").open("a") as file:
        file.write(f"{k}\n")
    return square(k, bad)


def killed_once(k, folder, bad=False, deadly=False):
    """Ends its worker, without a word, the first time it is called with `deadly`."""
    mark = Path(folder) / f"killed-{k}"
    if deadly and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return square(k, bad)


def deadly(k, at):
    if k == at:
        os._exit(3)
    return k


def slow(k, seconds):
    time.sleep(seconds)
    return k


def odd_kinds(k):
    return {"value": "a word" if k == 2 else 0.5 * k}


def kinds_by_chunk(k):
    return {"value": "a word" if k >= 4 else 1.0}


def unfit(k):
    return {0: object(), 1: {"k": 3}, 2: {"x": {"deep": 1}}, 3: 1 << 80, 4: [1, "a"]}.get(k, {"x": [1.0, 2.0]})


def ends(k):
    if k == 1:
        sys.exit("enough")
    return k


def recorded(k):
    import numpy as np

    return {"vector": np.arange(k + 1.0), "flag": np.bool_(k > 1), "count": np.int32(k), "nothing": None}
