"""Who gets in: ports, tokens, hosts, headers, the page that is not built."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from server_browser import SCENARIOS, Browser, get, health, running_server
from websockets.exceptions import InvalidStatus

from viscera.errors import InputError, SessionError
from viscera.server.app import Server, serve
from viscera.server.guard import Policy, choose_token, is_loopback
from viscera.server.options import ServerOptions
from viscera.server.typescript import DEFAULT_PATH, generate, main
from viscera.session.process import SessionSpec

TOKEN = "a token that is long enough"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that is bound to every address, so it wants its token."""
    with running_server(tmp_path_factory.mktemp("recordings"), host="0.0.0.0", token=TOKEN) as server:
        yield server


def test_without_the_token_nothing_is_answered_off_loopback(guarded: Server) -> None:
    for path in ("/", "/api/health", "/api/snapshot", "/?token=wrong", "/assets/x.js"):
        assert get(guarded, path)[0] == 401
    assert get(guarded, "/api/health", Authorization="Bearer wrong")[0] == 401
    with pytest.raises(InvalidStatus) as caught:
        Browser(guarded)
    assert caught.value.response.status_code == 401


def test_the_token_opens_by_address_by_header_and_then_by_cookie(guarded: Server) -> None:
    assert get(guarded, "/api/health", Authorization=f"Bearer {TOKEN}")[0] == 200
    status, headers, _ = get(guarded, f"/?token={quote(TOKEN)}&view=2")
    assert (status, headers["Location"]) == (303, "/?view=2")
    assert "HttpOnly" in headers["Set-Cookie"]
    assert "SameSite=strict" in headers["Set-Cookie"]
    cookie = headers["Set-Cookie"].split(";")[0]
    assert get(guarded, "/api/health", Cookie=cookie)[0] == 200
    Browser(guarded, additional_headers={"Cookie": cookie}).close()
    Browser(guarded, additional_headers={"Authorization": f"Bearer {TOKEN}"}).close()


def test_a_token_is_made_where_one_is_needed() -> None:
    assert choose_token("127.0.0.1", None) == ""
    assert len(choose_token("0.0.0.0", None)) >= 24
    assert choose_token("0.0.0.0", None) != choose_token("0.0.0.0", None)
    with pytest.raises(InputError, match="at least 16"):
        choose_token("0.0.0.0", "")
    for host in ("localhost", "127.0.0.1", "127.0.0.5", "::1", "[::1]"):
        assert is_loopback(host)
    for host in ("0.0.0.0", "::", "192.168.1.4", "example.com", "localhost.example.com", ""):
        assert not is_loopback(host)


def test_the_printed_address_carries_the_token(guarded: Server) -> None:
    assert guarded.url.endswith(f":{guarded.port}/?token={quote(TOKEN)}")


def test_a_port_in_use_is_named_with_what_to_do(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SessionError, match=f"port {port} on 127.0.0.1 is in use") as caught:
            Server(SessionSpec("fake"), SCENARIOS, ServerOptions(port=port))
    assert "--port" in caught.value.hint


@pytest.mark.parametrize(
    ("arguments", "names"),
    [({"port": 70000}, "70000"), ({"port": -1}, "-1"), ({"host": "no such host."}, "no such host")],
)
def test_addresses_that_cannot_be(arguments: dict, names: str) -> None:
    with pytest.raises(InputError, match=names):
        Server(SessionSpec("fake"), SCENARIOS, ServerOptions(**arguments))


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(SessionError, match=r"192\.0\.2\.1"):
        Server(SessionSpec("fake"), SCENARIOS, ServerOptions(host="192.0.2.1", port=0))


def test_serve_refuses_an_unknown_scenario_before_it_binds() -> None:
    with pytest.raises(InputError, match="no-such-scenario"):
        serve(SessionSpec("no-such-scenario"))


def test_the_page_or_how_to_get_it(tmp_path: Path) -> None:
    with running_server(tmp_path, static=tmp_path / "nothing") as server:
        status, headers, body = get(server, "/")
        assert status == 503
        assert b"make web" in body
        assert "default-src 'self'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff"
        # A foreign name that was pointed at this machine (DNS rebinding), and a foreign page.
        assert get(server, "/", Host="example.com")[0] == 403
        assert get(server, "/api/health", Origin="https://example.com")[0] == 403
        assert health(server)["status"] == "ok"
    (tmp_path / "built" / "assets").mkdir(parents=True)
    (tmp_path / "built" / "index.html").write_text("<!doctype html><title>page</title>")
    (tmp_path / "built" / "assets" / "index-1234.js").write_text("1")
    with running_server(tmp_path, static=tmp_path / "built") as server:
        status, headers, body = get(server, "/")
        assert (status, headers["Cache-Control"]) == (200, "no-cache")
        assert b"<title>page" in body
        assert "immutable" in get(server, "/assets/index-1234.js")[1]["Cache-Control"]
        for path in ("/../pyproject.toml", "/%2e%2e/index.html", "/assets/none.js"):
            assert get(server, path)[0] == 404


def test_origins() -> None:
    from starlette.datastructures import Headers

    policy = Policy("0.0.0.0", 8420)
    for origin, allowed in {
        "http://theatre.local:8420": True,
        "http://localhost:5173": True,
        "http://[::1]:8420": True,
        "https://theatre.local": False,
        "http://[": False,
        "null": False,
    }.items():
        found = policy.refuse(Headers({"host": "theatre.local:8420", "origin": origin}), "")
        assert (found is None) == allowed, origin


def test_the_generated_protocol_is_current(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert DEFAULT_PATH.read_text() == generate()
    old = tmp_path / "protocol.ts"
    old.write_text("// old\n")
    assert main(["--check", str(old)]) == 1
    assert "not current" in capsys.readouterr().err
    assert main([str(old)]) == 0
    assert main(["--check", str(old)]) == 0
