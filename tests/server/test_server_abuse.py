"""What was found by trying to break the server from outside: each thing once, as it was found."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from server_browser import SCENARIOS, Browser, get, health, running_server
from starlette.datastructures import Headers
from websockets.exceptions import ConnectionClosed

from viscera.server import client, doors, hub, running
from viscera.server import messages as m
from viscera.server.app import Server
from viscera.server.doors import MAX_CONNECTIONS, MAX_PER_ADDRESS, Doors
from viscera.server.guard import Policy
from viscera.server.hub import Hub
from viscera.session.process import SessionSpec

TOKEN = "a token that is long enough"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("recordings")) as found:
        with Browser(found) as browser:
            browser.wait(m.FrameMessage)
        yield found


@pytest.fixture
def complaints() -> Iterator[list[str]]:
    """What uvicorn has logged as an error."""
    found: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: found.append(record.getMessage())
    logging.getLogger("uvicorn.error").addHandler(handler)
    yield found
    logging.getLogger("uvicorn.error").removeHandler(handler)


def test_a_table_that_the_queue_cannot_take_is_refused_and_the_line_stays(server: Server) -> None:
    """Small whole numbers are a byte each on the wire and nine in the queue."""
    table = {"type": "set_table", "name": "stages", "rows": [[1] * 500, [2] * 500]}
    with Browser(server) as browser:
        browser.socket.send(msgspec.msgpack.encode(table))
        problem = browser.wait(m.Problem)
        assert (problem.code, bool(problem.hint)) == ("input", True)
        browser.wait(m.FrameMessage)


def test_one_browsers_refusals_leave_anothers_alone(server: Server) -> None:
    with Browser(server) as noisy, Browser(server) as quiet:
        for number in range(6):
            for sequence in range(30):
                noisy.move(sequence, tool=7)
            noisy.send(m.Hand(action="give", client=quiet.number))
            quiet.wait(m.SessionState, lambda state: state.holder == quiet.number)
            quiet.send(m.SetParameter(name=f"unknown {number}", value=1.0))
            quiet.wait(m.Problem, lambda found, number=number: f"unknown {number}" in found.message, 5.0)
            quiet.watch(0.12)  # one refusal every 0.1 s is told to each
            quiet.send(m.Hand(action="give", client=noisy.number))
            noisy.wait(m.SessionState, lambda state: state.holder == noisy.number)


def test_who_sent_too_much_still_gets_frames(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer to a frame was dropped with the rest of the flood, and no frame came any more."""
    monkeypatch.setattr(client, "RATE", 0.001)
    monkeypatch.setattr(client, "BURST", 5.0)
    with Browser(server, acknowledge=False) as browser:
        browser.wait(m.FrameMessage)
        newest = browser.wait(m.FrameMessage)
        for sequence in range(20):
            browser.move(sequence)
        browser.wait(m.Problem, lambda found: found.code == "flood")
        browser.send(m.FrameAck(number=newest.number))
        browser.wait(m.FrameMessage, seconds=5.0)


@pytest.mark.parametrize("foreign", ["a/b=1", "foo@bar", "=", "x=\x7f;;y", 'q="'])
def test_another_programs_cookie_does_not_lock_anybody_out(foreign: str) -> None:
    policy = Policy("0.0.0.0", 8420, TOKEN)
    assert policy.refuse(Headers({"host": "here", "cookie": f"{foreign}; {policy.cookie}={TOKEN}"}), "") is None
    refused = policy.refuse(Headers({"host": "here", "cookie": foreign}), "")
    assert refused is not None
    assert refused.status == 401


def raw_line(server: Server) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=10.0)


def test_silent_connections_make_room_and_end(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "REQUEST_S", 1.0)
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(raw_line(server)) for _ in range(2 * MAX_CONNECTIONS)]
        assert get(server, "/api/health")[0] == 200
        with Browser(server) as browser:
            browser.wait(m.FrameMessage)
        answers = []
        for line in silent[-10:]:
            with contextlib.suppress(ConnectionResetError):
                answers.append(line.recv(100)[:12])
        assert b"HTTP/1.1 408" in answers


def test_a_request_that_never_ends_is_ended(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doors, "REQUEST_S", 0.5)
    with raw_line(server) as line:
        start = time.monotonic()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\n" * 100:
                line.send(bytes([byte]))
                time.sleep(0.05)
                if time.monotonic() - start > 5.0:
                    break
        assert time.monotonic() - start < 5.0


def test_one_address_cannot_take_all_places() -> None:
    """Off loopback an address has its share. On loopback, where a proxy may stand, all places."""
    there: Any = object
    crowd = Doors()
    lines = [there() for _ in range(2 * MAX_CONNECTIONS)]
    assert [crowd.enter(line, there(), "192.0.2.7") for line in lines].count(True) == MAX_PER_ADDRESS
    assert crowd.enter(there(), there(), "192.0.2.8")
    crowd.leave(lines[0])
    assert crowd.enter(there(), there(), "192.0.2.7")
    local = Doors()
    for _ in range(MAX_CONNECTIONS):
        line = there()
        assert local.enter(line, there(), "127.0.0.1")
        local.heard(line)
    assert not local.enter(there(), there(), "127.0.0.1")  # all of them speak: nobody is sent away


@pytest.mark.parametrize(
    ("extra", "status"), [(b"X: " + b"y" * 9000, b"431"), (b"\r\n".join(b"X%d: y" % n for n in range(200)), b"431")]
)
def test_a_handshake_with_too_long_lines_is_answered(server: Server, extra: bytes, status: bytes) -> None:
    head = b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    key = b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"
    with raw_line(server) as line:
        line.sendall(head + key + extra + b"\r\n\r\n")
        assert line.recv(100).split()[1] == status


STARVED = """
import resource, sys
from pathlib import Path
from server_browser import SCENARIOS
from viscera.server.app import Server
from viscera.session.process import SessionSpec
import session_fake_world

if __name__ == "__main__":
    spec = SessionSpec("fake", recordings=Path(sys.argv[1]), factory=session_fake_world.FACTORY)
    server = Server(spec, SCENARIOS, port=0)
    resource.setrlimit(resource.RLIMIT_NOFILE, (60, 60))
    server.run(lambda url: print(server.port, flush=True))
"""


@pytest.mark.slow
def test_without_descriptors_the_log_stays_small_and_who_comes_later_is_served(tmp_path: Path) -> None:
    (tmp_path / "serve.py").write_text(STARVED)
    paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    with open(tmp_path / "log", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, str(tmp_path / "serve.py"), str(tmp_path)],
            stdout=subprocess.PIPE,
            stderr=log,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        try:
            assert process.stdout is not None
            starved: Any = type("Starved", (), {"port": int(process.stdout.readline())})
            with contextlib.ExitStack() as stack:
                for _ in range(100):
                    stack.enter_context(raw_line(starved))
                time.sleep(2.5)
                assert (tmp_path / "log").stat().st_size < 20_000
            assert health(starved)["status"] == "ok"
        finally:
            process.terminate()
            process.wait(30.0)


def test_a_session_that_finds_no_descriptor_is_told_and_can_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*anything: object) -> None:
        raise OSError(24, "Too many open files")

    async def begin() -> Hub:
        found = Hub(SessionSpec("fake"), SCENARIOS)
        await found.start()
        await found.stop()
        return found

    told: list[str | None] = []
    tell = Hub._tell
    monkeypatch.setattr(running, "LiveSession", fail)
    monkeypatch.setattr(Hub, "_tell", lambda self, *what: (told.append(what[0] if what else None), tell(self, *what)))
    asyncio.run(begin())
    assert told[:2] == ["starting", "crashed"]


def test_a_stopped_session_is_stalled_and_goes_on_or_is_restarted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "SILENCE_S", 1.0)
    monkeypatch.setattr(hub, "LOOK_S", 0.2)
    with running_server(tmp_path) as server, Browser(server) as browser:
        browser.wait(m.FrameMessage, lambda frame: frame.state.tick > 1200)
        pid = health(server)["session_pid"]
        os.kill(pid, signal.SIGSTOP)
        told = browser.wait_state("stalled")
        assert "Restart" in told.message
        assert health(server)["real_time_factor"] == 0.0
        os.kill(pid, signal.SIGCONT)
        browser.wait_state("running")
        browser.send(m.Control(action="pause"))
        browser.wait_state("paused")
        browser.watch(1.5)  # who is paused says that it is there
        assert health(server)["state"] == "paused"
        os.kill(pid, signal.SIGSTOP)
        browser.wait_state("stalled")
        browser.send(m.Restart())
        browser.wait_state("running")
        assert browser.wait(m.FrameMessage, lambda frame: frame.session == 2).state.tick > 500
        assert health(server)["session_pid"] != pid


def test_after_a_full_disk_nobody_is_promised_the_last_second(tmp_path: Path) -> None:
    with running_server(tmp_path, "full_disk") as server, Browser(server) as browser:
        browser.wait(m.FrameMessage)
        notice = ""
        for sequence in range(2000):
            browser.move(sequence)
            message = browser.receive()
            if isinstance(message, m.SessionState) and message.notice:
                notice = message.notice
                break
        browser.watch(0.5)
        os.kill(health(server)["session_pid"], signal.SIGKILL)
        told = browser.wait_state("crashed").message
    at = notice.split("stopped at ")[1].split(" s:")[0]
    assert f"ends at {at} s; what came after is lost" in told
    assert "last second" not in told


def test_who_leaves_at_a_bad_moment_leaves_nothing_in_the_log(server: Server, complaints: list[str]) -> None:
    head = b"GET /ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    key = b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n"
    for _ in range(60):
        with raw_line(server) as line:
            line.sendall(head + key)
        with raw_line(server) as line:
            line.sendall(head + b"Origin: https://example.com\r\n" + key)
    for _ in range(6):
        with Browser(server) as browser, contextlib.suppress(ConnectionClosed):
            browser.wait(m.FrameMessage)
            browser.socket.socket.sendall(b"\xff" * 64)  # no frame at all, while frames are on their way
            browser.watch(0.1)
    time.sleep(0.2)
    assert complaints == []


def test_who_writes_nonsense_in_long_letters_is_told_why_the_line_ends(server: Server, complaints: list[str]) -> None:
    """A close frame holds 123 bytes, and a letter may be several."""
    nonsense = msgspec.msgpack.encode({"type": "ä" * 50})
    with Browser(server) as browser:
        browser.wait(m.FrameMessage)
        for _ in range(client.MALFORMED_LIMIT):
            browser.socket.send(nonsense)
        with pytest.raises(ConnectionClosed) as ended:
            browser.wait(m.Welcome)
    assert ended.value.rcvd is not None
    assert ended.value.rcvd.code == client.POLICY
    assert "ää" in ended.value.rcvd.reason
    assert complaints == []
