"""A viser server without viser's messages: the terminal belongs to the caller."""

from __future__ import annotations

import contextlib
import io
import socket
from collections.abc import Sequence
from typing import Any

from stiction.errors import InvalidScene
from stiction.optional import viser
from stiction.viewer.brand import own_page
from stiction.viewer.gate import Gate, guarding


def open_server(host: str, port: int, label: str, allow_origins: Sequence[str] = ()) -> Any:
    """Reachable from this machine only, unless another host is given; port 0 is any that is free.

    allow_origins: pages of other sites that may use it, as "https://name:port"; others are refused
    """
    check_host(host)
    gate = Gate(host, allow_origins)
    with contextlib.redirect_stdout(io.StringIO()), own_page(label), guarding(gate) as guarded:
        server = viser().ViserServer(host=host, port=port, label=label, verbose=False)
    if not guarded:
        close_server(server)
        raise InvalidScene(f"viser {viser().__version__} cannot be kept from answering other sites: use viser 1.1")
    gate.port = server.get_port()
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


def update(handle: Any, **values: Any) -> None:
    """Set what has changed of something on the page: each assignment is a message to every browser."""
    for name, value in values.items():
        if getattr(handle, name) != value:
            setattr(handle, name, value)


def close_server(server: Any) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()
