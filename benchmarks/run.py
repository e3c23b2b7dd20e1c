"""Time, residual and success rate of the solvers, each peer in the same run.

`python benchmarks/run.py` prints all tables, `run.py lemke contact` some of them; `--quick` shows that it runs,
`--markdown` prints Markdown, `--into docs/performance.md` renews the tables of that page, `--json FILE` keeps the
numbers.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from measure import Table

ROOT = Path(__file__).resolve().parent.parent
MARK = "<!-- tables -->\n"  # what follows it in a page is renewed by `--into`
PACKAGES = ("numpy", "numba", "quantecon", "quadprog", "daqp", "proxsuite")


def prepare_environment() -> None:
    """One thread for all, and kernels compiled for exactly these sources; before NumPy and Numba are imported."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    digest = hashlib.sha256(b"".join(f.read_bytes() for f in sorted((ROOT / "src").rglob("*.py"))))
    os.environ["NUMBA_CACHE_DIR"] = str(ROOT / ".cache" / "numba" / digest.hexdigest()[:16])


def main() -> None:
    prepare_environment()
    import contact
    import definite
    import overhead
    import warm_start

    suites = {
        "lemke": definite.against_quantecon,
        "contact": contact.against_lapack,
        "quadratic": contact.against_quadratic_programming,
        "block": definite.block_factorizations,
        "warm": warm_start.gains,
        "overhead": overhead.costs,
    }
    parser = argparse.ArgumentParser(description="Time, residual and success rate of the solvers and their peers.")
    parser.add_argument("suite", nargs="*", help=f"of {', '.join(suites)}; all if none is named")
    parser.add_argument("--quick", action="store_true", help="fewer problems: to see that it runs")
    parser.add_argument("--markdown", action="store_true", help="tables as Markdown")
    parser.add_argument("--into", type=Path, metavar="PAGE", help=f"replace what follows {MARK.strip()} in a page")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers behind the tables")
    options = parser.parse_args()
    if options.into and MARK not in options.into.read_text(encoding="utf-8"):
        parser.error(f"{options.into} has no line {MARK.strip()}")
    unknown = [name for name in options.suite if name not in suites]
    if unknown:
        parser.error(f"no suite {unknown[0]!r}; there are {', '.join(suites)}")

    print(machine(), end="\n\n")
    tables: list[tuple[str, Table]] = []
    for name in options.suite or suites:
        for table in suites[name](options.quick):
            print(table.markdown() if options.markdown else table.text(), flush=True)
            tables.append((name, table))
    if options.into:
        text = options.into.read_text(encoding="utf-8").partition(MARK)[0]
        pages = [text + MARK, machine() + ".\n", *(table.markdown().rstrip() + "\n" for _, table in tables)]
        options.into.write_text("\n".join(pages), encoding="utf-8")
    if options.json:
        numbers = [{"suite": name, "title": table.title, **table.numbers} for name, table in tables]
        options.json.write_text(json.dumps({"machine": machine(), "tables": numbers}, indent=1))


def machine() -> str:
    """What a reader needs to compare, and nothing that tells whose machine it is."""
    found = [f"{platform.machine()}, {os.cpu_count()} cores, one thread", f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} not installed")
    return "; ".join(found)


if __name__ == "__main__":
    main()
