"""`stiction bench`: the benchmarks of a checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

import stiction
from stiction.errors import InvalidProblem

SCRIPT = Path("benchmarks") / "run.py"


def bench(
    *suites: Annotated[
        str,
        Parameter(
            help="Suites and options of benchmarks/run.py, such as `pyramid --quick`.", allow_leading_hyphen=True
        ),
    ],
) -> int:
    """Measure time, residual and success rate of all solvers, and of other packages beside them.

    Benchmarks are part of the source, not of what pip installs, since they bring data and other packages of their own:
    run this in a checkout.

    **Examples**

        stiction bench
        stiction bench pyramid cone --quick
    """
    for folder in (Path(), Path(stiction.__file__).resolve().parents[2]):
        if (folder / SCRIPT).is_file() and (folder / "src" / "stiction").is_dir():
            return subprocess.run([sys.executable, str(folder / SCRIPT), *suites], check=False).returncode
    raise InvalidProblem(
        f"there is no {SCRIPT} here: benchmarks come with the source of stiction {stiction.__version__}, not with the "
        "installed package; run `stiction bench`, or `make bench`, in a checkout of it"
    )
