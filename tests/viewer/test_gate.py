"""Other sites cannot use the page, and what is no message ends a connection without a word on the terminal."""

from __future__ import annotations

import base64
import os
import socket
import time

import pytest
import viser

import stiction as st
from stiction.cli.main import main
from stiction.viewer.gate import Gate
from stiction.viewer.server import close_server, open_server

VERSION = f"viser-v{viser.__version__}"


@pytest.fixture(scope="module")
def server():
    opened = open_server("127.0.0.1", 0, "a page", allow_origins=["https://hub.example:8443"])
    yield opened
    close_server(opened)


def send(server, request: bytes, wait: float = 20.0) -> bytes:
    """All that comes back to these bytes until the server closes, or has answered."""
    with socket.create_connection(("127.0.0.1", server.get_port()), timeout=wait) as connection:
        connection.sendall(request)
        answer = b""
        try:
            while b"\r\n\r\n" not in answer:
                more = connection.recv(65536)
                if not more:
                    break
                answer += more
        except (ConnectionError, TimeoutError):
            pass
        return answer


def asked(path: str = "/", upgrade: bool = False, protocol: str = VERSION, **headers: str) -> bytes:
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    if upgrade:
        key = base64.b64encode(os.urandom(16)).decode()
        lines += ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}"]
        lines += [f"Sec-WebSocket-Protocol: {protocol}"]
    return "\r\n".join([*lines, "", ""]).encode()


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


@pytest.mark.parametrize("upgrade", [False, True], ids=["page", "socket"])
def test_names_of_this_machine_are_let_in(server, upgrade):
    port = server.get_port()
    welcome = 101 if upgrade else 200
    for name in ("localhost", "127.0.0.1", "[::1]", "LOCALHOST"):
        assert status(send(server, asked(upgrade=upgrade, Host=f"{name}:{port}"))) == welcome
        assert (
            status(send(server, asked(upgrade=upgrade, Host=f"{name}:{port}", Origin=f"http://{name}:{port}")))
            == welcome
        )
    # Through a tunnel the port is another, and through a proxy that was allowed the name.
    for origin in ("http://localhost:9", "https://hub.example:8443"):
        host = origin.partition("://")[2]
        assert status(send(server, asked(upgrade=upgrade, Host=host, Origin=origin))) == welcome


@pytest.mark.parametrize("upgrade", [False, True], ids=["page", "socket"])
def test_other_sites_are_refused(server, upgrade):
    own = f"localhost:{server.get_port()}"
    for origin in ("http://evil.example", "https://evil.example:8443", "null", "http://localhost:3000", "file://", ""):
        answer = send(server, asked(upgrade=upgrade, Host=own, Origin=origin))
        assert status(answer) == 403
        assert b"cannot be used by" in answer or b"expected" in answer
    for host in ("evil.example", f"evil.example:{server.get_port()}", "localhost.evil.example", "10.0.0.1", ""):
        answer = send(server, asked(upgrade=upgrade, Host=host, Origin=f"http://{host}"))
        assert status(answer) == 403
        assert b"does not answer to the name" in answer


def test_headers_given_twice_or_not_at_all(server):
    own = f"localhost:{server.get_port()}".encode()
    for request in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: %b\r\nHost: evil.example\r\n\r\n" % own,
        b"GET / HTTP/1.1\r\nHost: %b\r\nOrigin: http://%b\r\nOrigin: http://evil.example\r\n\r\n" % (own, own),
    ):
        assert status(send(server, request)) == 403


GARBAGE = [
    b"\x00\xff" * 500,
    b"GET\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\n" + b"a" * 100_000 + b"\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(300),  # TLS
    b"\r\n\r\n",
]


def frame(content: bytes, kind: int = 2) -> bytes:
    """A masked frame, as clients send them; the mask is zero."""
    size = bytes([0x80 | len(content)]) if len(content) < 126 else b"\xfe" + len(content).to_bytes(2, "big")
    return bytes([0x80 | kind]) + size + bytes(4) + content


def test_garbage_prints_nothing(server, capfd):
    for garbage in GARBAGE:
        send(server, garbage, wait=1.0)
    own = f"localhost:{server.get_port()}"
    messages = [
        b"\xff\xff\xff\xff",  # no frame
        frame(b"no message at all"),
        frame(b"text", kind=1),
        frame(b"\x81\xa4type\xa9NoSuchOne"),
        frame(b"\x83\xa4type\xb0GuiUpdateMessage\xa4uuid\x01\xa7updates\x90"),
        frame(b"\x82\xa4type\xb0GuiUpdateMessage\xa4uuid\xa1x"),
        frame(os.urandom(100)),
    ]
    for message in messages:
        with socket.create_connection(("127.0.0.1", server.get_port()), timeout=5.0) as connection:
            connection.sendall(asked(upgrade=True, Host=own))
            assert b" 101 " in connection.recv(65536)
            connection.sendall(message)
            time.sleep(0.1)
    # Another version of the page, or something else that speaks websockets.
    for protocol in ("viser-v0.0.1", "chat"):
        send(server, asked(upgrade=True, Host=own, protocol=protocol))
    time.sleep(0.3)
    assert capfd.readouterr() == ("", "")
    assert status(send(server, asked(Host=own))) == 200  # and it still answers


@pytest.mark.parametrize(
    ("bound", "host", "let_in"),
    [
        ("127.0.0.1", "192.168.1.5:8080", False),
        ("0.0.0.0", "192.168.1.5:8080", True),
        ("0.0.0.0", f"{socket.gethostname()}:8080", True),
        ("0.0.0.0", "evil.example:8080", False),
        ("0.0.0.0", "[fe80::1]:8080", True),
        ("::", "[::1]", True),
        ("::1", "[::1]:8080", True),
        ("localhost", "localhost:8080", True),
    ],
)
def test_what_is_bound_decides_which_names_are_known(bound, host, let_in):
    gate = Gate(bound, port=8080)
    assert (gate.refusal([host], []) is None) is let_in
    assert (gate.refusal([host], [f"http://{host}"]) is None) is let_in
    assert gate.refusal([host], ["http://evil.example"]) is not None


@pytest.mark.parametrize("origin", ["evil", "*", "https://a/b", "ftp://a", "", 3])
def test_an_origin_to_allow_is_an_origin(origin):
    with pytest.raises(st.InvalidScene, match="an origin to allow is like 'https://name:port'"):
        open_server("127.0.0.1", 0, "a page", allow_origins=[origin])


def test_a_viser_that_serves_in_another_way_is_not_used(monkeypatch):
    import contextlib

    @contextlib.contextmanager
    def unused(gate):
        yield []

    monkeypatch.setattr("stiction.viewer.server.guarding", unused)
    with pytest.raises(st.InvalidScene, match="cannot be kept from answering other sites"):
        open_server("127.0.0.1", 0, "a page")


def test_the_command_line_allows_origins(monkeypatch):
    asked = {}
    monkeypatch.setattr("stiction.viewer.browser.view", lambda simulation, **options: asked.update(options))
    words = ["view", "sliding-ball", "--allow-origin", "https://a.example", "--allow-origin", "http://b.example:1"]
    assert main(words) == 0
    assert asked["allow_origins"] == ("https://a.example", "http://b.example:1")


def test_the_command_line_refuses_what_is_no_origin(capsys):
    assert main(["view", "sliding-ball", "--port", "18080", "--allow-origin", "nonsense"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
