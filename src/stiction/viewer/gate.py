"""Who may speak to the page: browsers that opened it from this machine, not pages of others that run in them.

A page of another site can open a websocket to any address (its browser only names the site, in `Origin`), and a name
that its owner resolves to this machine makes it ours in the browser's eyes (then `Host` is that name: DNS rebinding).
So both headers are checked before anything is answered. viser offers no place for that; its server is made by
`websockets.asyncio.server.serve`, which is wrapped while viser calls it. Anything on the socket that is not a message
of viser's ends that connection, silently.
"""

from __future__ import annotations

import asyncio
import contextlib
import http
import importlib
import ipaddress
import logging
import re
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from stiction.errors import InvalidScene
from stiction.optional import viser

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
ORIGIN = re.compile(r"https?://[^/?#@\s]+", re.IGNORECASE)

# Refused requests are logged only for those who lower this logger's level.
log = logging.getLogger("stiction.viewer")
log.addHandler(logging.NullHandler())
log.setLevel(logging.CRITICAL)

_opening = threading.Lock()


@dataclass
class Gate:
    """The `Host` and `Origin` that a page bound to this host accepts.

    allow: further origins ("https://name:port") that are let in
    port: the port of the page, known once it listens
    """

    host: str
    allow: Sequence[str] = ()
    port: int = 0
    hosts: set[str] = field(init=False)  # in lower case, without port

    def __post_init__(self) -> None:
        for origin in self.allow:
            if not isinstance(origin, str) or not ORIGIN.fullmatch(origin):
                raise InvalidScene(f"an origin to allow is like 'https://name:port', got {origin!r}")
        self.allow = tuple(origin.lower() for origin in self.allow)
        self.hosts = {*LOOPBACK, bare(self.host)}
        if not self.is_local:
            own = socket.gethostname().lower()
            self.hosts |= {own, f"{own}.local", socket.getfqdn().lower()}

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the page at all."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host.lower() == "localhost"

    def refusal(self, host: Sequence[str], origin: Sequence[str]) -> str | None:
        """Why a request with these headers is refused; None if it is not."""
        if len(host) != 1 or len(origin) > 1:
            return "one Host and at most one Origin are expected"
        if not self.lets_host(host[0].lower()):
            return f"the page does not answer to the name {host[0]!r}"
        # Only browsers send an Origin, and they always do when a page opens a websocket.
        if origin and not self.lets_origin(origin[0].lower(), host[0].lower()):
            return f"the page cannot be used by {origin[0]!r}"
        return None

    def lets_host(self, host: str) -> bool:
        """A name of this machine. An address cannot be rebound: at a page for others, any that reaches it is right."""
        name = host.rpartition(":")[0] if re.search(r":\d+$", host) else host
        if name in self.hosts or any(origin.partition("://")[2] == host for origin in self.allow):
            return True
        return not self.is_local and is_address(name)

    def lets_origin(self, origin: str, host: str) -> bool:
        """The page itself, under the name it was asked for (a tunnel may have changed the port) or a local one."""
        if origin in self.allow or origin in (f"http://{host}", f"https://{host}"):
            return True
        return origin in {f"http://{name}:{self.port}" for name in LOOPBACK}


def bare(host: str) -> str:
    """A host as it stands in headers."""
    return f"[{host}]".lower() if ":" in host and not host.startswith("[") else host.lower()


def is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


@contextlib.contextmanager
def guarding(gate: Gate) -> Iterator[list[bool]]:
    """Put the gate before the server that viser makes meanwhile; yields an empty list if viser made it otherwise."""
    server: Any = importlib.import_module("websockets.asyncio.server")
    given = server.serve
    made: list[bool] = []

    def serve(handler: Any, *places: Any, process_request: Any = None, **options: Any) -> Any:
        made.append(True)
        return given(
            quiet(handler), *places, process_request=guarded(gate, process_request), **{**options, "logger": log}
        )

    with _opening:
        server.serve = serve
        try:
            yield made
        finally:
            server.serve = given


def guarded(gate: Gate, process_request: Any) -> Callable[[Any, Any], Any]:
    """viser's answers, for requests that the gate lets in."""

    def answer(connection: Any, request: Any) -> Any:
        reason = gate.refusal(request.headers.get_all("Host"), request.headers.get_all("Origin"))
        if reason is not None:
            log.info("refused: %s", reason)
            return connection.respond(http.HTTPStatus.FORBIDDEN, f"{reason[:200]}\n")
        return None if process_request is None else process_request(connection, request)

    return answer


def quiet(handler: Any) -> Callable[[Any], Any]:
    """viser's handler of a connection, which closes without a message on all but viser's page of this version."""

    async def handle(connection: Any) -> None:
        asyncio.get_running_loop().set_exception_handler(log_malformed)
        version = viser().__version__
        if connection.subprotocol != f"viser-v{version}":
            await connection.close(1002, f"Version mismatch. Server: {version}")
            return
        await handler(connection)

    return handle


def log_malformed(loop: Any, context: dict[str, Any]) -> None:
    """Log an error in a task: a message that is well-formed and makes no sense fails there."""
    log.debug("%s", context.get("message"), exc_info=context.get("exception"))
