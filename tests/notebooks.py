"""Run a notebook's cells and keep their outputs: `python tests/notebooks.py examples/notebooks/*.ipynb` renews them.

A cell's text is compared with the stored one by `test_docs.py`. Figures are stored as SVG, tables as HTML; anything
larger than LARGEST is left out, and appears when the notebook is run.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

LARGEST = 90_000  # characters of one stored output


def execute(cells: list[dict[str, Any]], name: str) -> list[list[dict[str, Any]]]:
    """The outputs of all code cells, run in order and in one namespace."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    codes = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return [outputs_of(code, namespace, name) for code in codes]


def outputs_of(code: str, namespace: dict[str, object], name: str) -> list[dict[str, Any]]:
    """What a cell prints, and what its last expression shows."""
    body, last = ast.parse(code, name).body, None
    if body and isinstance(body[-1], ast.Expr):
        last = ast.Expression(body.pop().value)
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), name, "exec"), namespace)
        if last is not None:
            value = eval(compile(last, name, "eval"), namespace)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": lines(printed.getvalue())})
    shown = {} if value is None else {kind: lines(text) for kind, text in rich(value).items() if len(text) <= LARGEST}
    if shown:
        outputs.append({"output_type": "display_data", "metadata": {}, "data": shown})
    return outputs


def rich(value: Any) -> dict[str, str]:
    """A value as a notebook shows it, by MIME type."""
    if hasattr(value, "savefig"):
        import matplotlib as mpl

        drawn = io.StringIO()
        with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "stiction"}):
            value.savefig(drawn, format="svg", metadata={"Date": None})
        return {"image/svg+xml": drawn.getvalue()}
    if hasattr(value, "_repr_html_"):
        return {"text/html": value._repr_html_()}
    return {"text/plain": repr(value)}


def lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def texts(outputs: list[dict[str, Any]]) -> str:
    """What of outputs must repeat: everything but pictures and pages."""
    printed = ["".join(each["text"]) for each in outputs if each["output_type"] == "stream"]
    values = ["".join(each["data"].get("text/plain", [])) for each in outputs if "data" in each]
    return "".join([*printed, *values])


def renew(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for count, (cell, outputs) in enumerate(zip(cells, execute(notebook["cells"], path.name), strict=True), 1):
        cell["execution_count"], cell["outputs"] = count, outputs
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        renew(Path(argument))
