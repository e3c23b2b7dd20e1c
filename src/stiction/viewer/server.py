"""A viser server without viser's messages: what is said on the terminal is the caller's."""

from __future__ import annotations

import contextlib
import io
import socket
from typing import Any

from stiction.errors import InvalidScene
from stiction.optional import viser
from stiction.viewer.brand import own_page


def open_server(host: str, port: int, label: str) -> Any:
    """Reachable from this machine only, unless the host says otherwise; port 0 is any that is free."""
    check_host(host)
    with contextlib.redirect_stdout(io.StringIO()), own_page(label):
        server = viser().ViserServer(host=host, port=port, label=label, verbose=False)
    # Sharing would send the page through a machine of others.
    server.gui.configure_theme(show_logo=False, show_share_button=False, control_width="large")
    return server


def check_host(host: str) -> None:
    """viser would try for ever to listen at an address that is not this machine's."""
    try:
        family, *_, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind(address)
    except (OSError, UnicodeError) as error:
        raise InvalidScene(f"cannot listen at {host!r}: it is no address of this machine ({error})") from None


def close_server(server: Any) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()
