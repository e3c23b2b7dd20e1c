"""Docstrings name their fields as `name: meaning`, a line each; on the site they become a list."""

from __future__ import annotations

import re
from typing import Any

import griffe

FIELD = re.compile(r"^(\w+(?:, \w+)*): (?=\S)")


class Fields(griffe.Extension):
    """Rewrites every paragraph that starts with a field."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = "\n\n".join(map(as_list, obj.docstring.value.split("\n\n")))


def as_list(paragraph: str) -> str:
    if not FIELD.match(paragraph):
        return paragraph
    return "\n".join(
        FIELD.sub(lambda m: f"- **{m[1]}**: ", line) if FIELD.match(line) else f"    {line.strip()}"
        for line in paragraph.splitlines()
    )
