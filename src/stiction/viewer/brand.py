"""Our name and icon on the pages that viser makes, live or as files."""

from __future__ import annotations

import atexit
import contextlib
import re
import shutil
import tempfile
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from stiction.optional import viser
from stiction.viewer import keys, shine

if TYPE_CHECKING:
    from collections.abc import Iterator

# A block at rest on a friction cone, in the colours of the arrows.
ICON = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">
<rect width="32" height="32" rx="7" fill="#eef3f8"/><path d="M16 27 6 12h20z" fill="#e69f00"/>
<path d="M16 27V8" stroke="#1a1a1a" stroke-width="2.4"/><path d="m16 3 4 7h-8z" fill="#005ca8"/></svg>"""

# viser's page is dark if its address asks for it; ours follows the browser's preference.
DARK = """<script>if (matchMedia("(prefers-color-scheme: dark)").matches && !location.search.includes("darkMode"))
  history.replaceState(null, "", location.pathname + (location.search ? location.search + "&" : "?") + "darkMode=true");
</script>"""


def branded(page: str, title: str) -> str:
    """A page of viser's under our title, with our icon, on which contact forces are seen through bodies."""
    named = f"<title>{escape(title_words(title))}</title>"
    icon = f'<link rel="icon" type="image/svg+xml" href="data:image/svg+xml,{quote(ICON)}">'
    page = re.sub(r"<link\b[^>]*\brel=[\"']?(?:shortcut )?icon\b[^>]*>", "", page, count=3)
    return re.sub(r"<title>.*?</title>", lambda _: named + icon + shine.SCRIPT, page, count=1, flags=re.DOTALL)


def title_words(title: str) -> str:
    """The title of a tab: the scene first, since tabs are narrow."""
    scene = title.strip().rstrip(".")
    return f"{scene} – stiction" if scene else "stiction"


@cache
def page_folder(title: str) -> Path:
    """A folder with viser's page under our title, for as long as this process lives."""
    given = Path(str(viser().__file__)).parent / "client" / "build"
    folder = Path(tempfile.mkdtemp(prefix="stiction-page-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for path in given.iterdir():
        if path.is_dir():
            shutil.copytree(path, folder / path.name)
        elif path.name != "index.html":
            shutil.copy(path, folder)
    page = (given / "index.html").read_text(encoding="utf-8")
    page = branded(page, title).replace("</title>", f"</title>{DARK}{keys.SCRIPT}", 1)
    (folder / "index.html").write_text(page, encoding="utf-8")
    return folder


@contextlib.contextmanager
def own_page(title: str) -> Iterator[None]:
    """Servers of viser made within serve the page of `page_folder`; viser has no option for that."""
    kind: Any = viser().infra.WebsockServer
    given = kind.__init__

    def init(self: Any, *arguments: Any, **options: Any) -> None:
        given(self, *arguments, **(options | {"http_server_root": page_folder(title)}))

    kind.__init__ = init
    try:
        yield
    finally:
        kind.__init__ = given
