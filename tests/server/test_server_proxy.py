"""Behind a proxy that adds TLS: who is let in, and the example configuration with a real nginx."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from server_browser import Browser, get, running_server
from starlette.datastructures import Headers
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from viscera.errors import InputError
from viscera.server import messages as m
from viscera.server.app import Server
from viscera.server.encode import read_message
from viscera.server.guard import Policy, check_public, choose_token

TOKEN = "a token that is long enough"
EXAMPLE = Path(__file__).parents[2] / "docs" / "proxy" / "nginx.conf"
NGINX = os.environ.get("VISCERA_NGINX") or shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


def test_a_public_server_wants_its_token_also_on_loopback(tmp_path: Path) -> None:
    assert choose_token("127.0.0.1", None, "https://theatre.example") != ""
    with running_server(tmp_path, token=TOKEN, public="https://Theatre.example") as server:
        assert server.url == f"https://theatre.example/?token={quote(TOKEN)}"
        here = {"Host": "theatre.example"}
        assert get(server, "/api/health", **here)[0] == 401
        assert get(server, "/api/health", **here, Authorization=f"Bearer {TOKEN}")[0] == 200
        status, headers, _ = get(server, f"/?token={quote(TOKEN)}", **here)
        assert status == 303
        assert "Secure" in headers["Set-Cookie"]
        assert get(server, "/api/health", Host="other.example", Authorization=f"Bearer {TOKEN}")[0] == 403
        with pytest.raises(InvalidStatus):
            Browser(server, origin="https://other.example", additional_headers={"Authorization": f"Bearer {TOKEN}"})


def test_origins_of_a_public_server() -> None:
    policy = Policy("127.0.0.1", 8420, TOKEN, "https://theatre.example")
    for origin, allowed in {
        "https://theatre.example": True,
        "http://theatre.example.evil.example": False,
        "https://theatre.example:444": False,
        "http://127.0.0.1:8420": True,
        "null": False,
    }.items():
        headers = {"host": "theatre.example", "origin": origin, "authorization": f"Bearer {TOKEN}"}
        assert (policy.refuse(Headers(headers), "") is None) == allowed, origin


@pytest.mark.parametrize(
    "address",
    ["theatre.example", "ftp://x", "https://", "https://x/path", "https://x:y", "https://u@x", "https://x?a=b"],
)
def test_addresses_that_no_proxy_has(address: str) -> None:
    with pytest.raises(InputError, match="https://"):
        check_public(address)


@pytest.fixture
def proxied(tmp_path: Path) -> Iterator[tuple[Server, int, ssl.SSLContext]]:
    """A server behind nginx with the example configuration, its port there, and what trusts its certificate."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = int(free.getsockname()[1])
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    name = ["-subj", "/CN=theatre.example", "-addext", "subjectAltName=DNS:theatre.example"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", str(key)]
    subprocess.run([*command, "-out", str(certificate), *name], check=True, capture_output=True)
    public = f"https://theatre.example:{port}"
    with running_server(tmp_path, token=TOKEN, public=public) as server:
        text = EXAMPLE.read_text()
        for ours, here in (
            ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
            ("/etc/ssl/theatre.example.pem", str(certificate)),
            ("/etc/ssl/theatre.example.key", str(key)),
            ("http://127.0.0.1:8420", f"http://127.0.0.1:{server.port}"),
        ):
            assert text.count(ours) == 1
            text = text.replace(ours, here)
        (tmp_path / "site.conf").write_text(text)
        temporary = "".join(
            f"{kind}_temp_path {tmp_path}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (tmp_path / "nginx.conf").write_text(
            f"daemon off; master_process off; pid {tmp_path}/pid; error_log {tmp_path}/error.log;\n"
            f"events {{}}\nhttp {{ {temporary} include {tmp_path}/site.conf; }}\n"
        )
        nginx = subprocess.Popen([str(NGINX), "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")])
        try:
            _wait_for(port)
            yield server, port, ssl.create_default_context(cafile=str(certificate))
        finally:
            nginx.terminate()
            nginx.wait(10.0)


def _wait_for(port: int) -> None:
    end = time.monotonic() + 10.0
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0):
            return
        time.sleep(0.05)
    raise AssertionError("nginx does not listen")


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed; VISCERA_NGINX may name it")
def test_the_example_configuration_carries_page_and_socket_over_tls(
    proxied: tuple[Server, int, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, port, trust = proxied
    lookup = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda host, *rest, **more: lookup("127.0.0.1" if host else host, *rest, **more)
    )
    address = f"https://theatre.example:{port}"

    def ask(path: str, **headers: str) -> tuple[int, Any]:
        request = urllib.request.Request(f"{address}{path}", headers=headers)
        opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=trust), _Stay())
        try:
            with opener.open(request, timeout=10.0) as answer:
                return answer.status, answer.headers
        except urllib.error.HTTPError as error:
            return error.code, error.headers

    assert ask("/api/health")[0] == 401
    status, headers = ask(f"/?token={quote(TOKEN)}")
    assert status == 303
    cookie = headers["Set-Cookie"].split(";")[0]
    assert ask("/api/health", Cookie=cookie)[0] == 200
    assert "max-age" in headers["Strict-Transport-Security"]
    options: dict[str, Any] = {"ssl": trust, "additional_headers": {"Cookie": cookie}, "max_size": None}
    kinds = asyncio.run(_visit(f"wss://theatre.example:{port}/ws", address, options))
    assert {m.Welcome, m.FrameMessage} <= kinds


async def _visit(line: str, address: str, options: dict[str, Any]) -> set[type]:
    """Kinds of messages up to the first frame; and that no other page gets a line.

    One thread for reading and writing: two at once on a TLS socket, as in `websockets.sync`, hang one time in a hundred
    here."""
    kinds: set[type] = set()
    async with connect(line, origin=Origin(address), **options) as browser:
        await browser.send(msgspec.msgpack.encode(m.Hello(protocol=m.PROTOCOL)))
        for _ in range(100):  # states come first, while the session starts
            data: Any = await asyncio.wait_for(browser.recv(), 60.0)
            kinds.add(type(read_message(data)))
            if m.FrameMessage in kinds:
                break
    for origin in ("https://evil.example", "null"):
        with pytest.raises(InvalidStatus):
            await connect(line, origin=Origin(origin), **options)
    return kinds


class _Stay(urllib.request.HTTPRedirectHandler):
    """Redirects are answers here."""

    def redirect_request(self, *anything: Any, **more: Any) -> None:
        return None
