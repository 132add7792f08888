"""The socket: greetings, frames, several browsers, and everything a browser may do wrong."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
from server_browser import Browser, get, health, running_server
from websockets.client import ClientProtocol
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.protocol import State
from websockets.uri import parse_uri

from viscera.server import messages as m
from viscera.server.app import Server
from viscera.server.client import FLOOD_LIMIT, HARD_LIMIT, MALFORMED_LIMIT
from viscera.server.closing import LINGER_BYTES
from viscera.server.encode import dequantise


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with running_server(tmp_path_factory.mktemp("recordings")) as found:
        with Browser(found) as browser:
            browser.wait(m.FrameMessage)
        yield found


def closed_with(browser: Browser) -> int:
    """Reads until the server closes; the close code."""
    with contextlib.suppress(ConnectionClosed):
        while True:
            browser.receive(5.0)
    assert browser.socket.close_code is not None
    return browser.socket.close_code


def test_a_browser_gets_state_scene_and_frames_in_that_order(server: Server) -> None:
    with Browser(server) as browser:
        kinds = [type(browser.receive()) for _ in range(3)]
        assert kinds == [m.SessionState, m.SceneDescription, m.FrameMessage]


def test_vertices_equal_the_snapshot_within_quantisation(server: Server) -> None:
    with Browser(server) as browser:
        browser.send(m.Control(action="pause"))
        browser.wait_state("paused")
        # The last frame may have come before the news of the pause; no other follows it.
        while (frame := browser.newest) is None or frame.state.tick != health(server)["tick"]:
            browser.receive()
        exact = msgspec.msgpack.decode(get(server, "/api/snapshot")[2], type=m.ExactSnapshot)
        browser.send(m.Control(action="resume"))
        browser.wait_state("running")
    assert (exact.state.tick, exact.session) == (frame.state.tick, frame.session)
    truth = np.frombuffer(exact.arrays[0].data, "<f4").reshape(exact.arrays[0].count, 3)
    low, high = (np.array(corner) for corner in frame.arrays[0].box)
    # Half a step of the 16-bit grid, and the rounding of float32 on the way back.
    assert np.all(np.abs(dequantise(frame.arrays[0]) - truth) <= (high - low) / 65535 * 0.5 + 1e-8)
    assert np.all(truth >= low.astype(np.float32))
    assert np.all(truth <= high.astype(np.float32))


def test_an_input_is_echoed_and_felt(server: Server) -> None:
    with Browser(server) as browser:
        browser.move(7, position=(0.0, 0.0, 0.02))
        frame = browser.wait(m.FrameMessage, lambda found: (browser.number, 7) in found.state.applied)
        assert frame.state.tools[0].position == (0.0, 0.0, 0.02)
        browser.move(8, active=False)
        browser.wait(m.FrameMessage, lambda found: (browser.number, 8) in found.state.applied)


def test_pause_step_speed_and_resume(server: Server) -> None:
    with Browser(server) as browser:
        browser.wait(m.FrameMessage)
        browser.send(m.Control(action="pause"))
        browser.wait_state("paused")
        time.sleep(0.1)
        before = health(server)["tick"]
        browser.send(m.Control(action="step"))
        assert browser.wait(m.FrameMessage, lambda found: found.state.tick > before).state.tick == before + 16
        browser.send(m.Control(action="speed", value=0.25))
        assert browser.wait(m.SessionState, lambda found: found.speed == 0.25).state == "paused"
        browser.send(m.Control(action="resume"))
        browser.wait_state("running")
        factor = 0.0
        # The rate is that of the last second. A busy machine can only make it lower, and not for long.
        for _ in range(5):
            browser.watch(1.0)
            factor = health(server)["real_time_factor"]
            assert factor < 0.3
            if factor > 0.1:
                break
        assert factor > 0.1
        browser.send(m.Control(action="speed", value=1.0))
        browser.wait(m.SessionState, lambda found: found.speed == 1.0)


def test_reset_with_another_seed_sends_the_scene_again(server: Server) -> None:
    with Browser(server) as browser:
        browser.wait(m.SceneDescription)
        browser.send(m.Control(action="reset", value=42))
        assert browser.wait(m.SceneDescription).scene.seed == 42
        browser.wait(m.FrameMessage)


def test_ping_is_answered(server: Server) -> None:
    with Browser(server) as browser:
        browser.send(m.Ping(client_time=12.5))
        assert browser.wait(m.Pong).client_time == 12.5


def test_several_browsers_see_the_same_and_know_of_each_other(server: Server) -> None:
    with Browser(server) as first, Browser(server) as second:
        assert first.wait(m.SessionState, lambda found: found.viewers >= 2)
        first.send(m.SetParameter(name="pull", value=3.5))
        first.wait(m.FrameMessage, lambda found: found.state.parameters["pull"] == 3.5)
        second.wait(m.FrameMessage, lambda found: found.state.parameters["pull"] == 3.5)


@pytest.mark.parametrize(
    ("message", "code", "names"),
    [
        (m.SetParameter(name="pull", value=99.0), "input", "pull = 99.0"),
        (m.SetParameter(name="pull", value=float("nan")), "input", "pull = nan"),
        (m.SetParameter(name="colour", value=1.0), "input", "colour"),
        (m.SetParameter(name="x" * 3000, value=1.0), "input", "too long"),
        (m.Control(action="speed", value=7.0), "input", "speed = 7.0"),
        (m.Control(action="speed"), "input", "speed"),
        (m.Control(action="reset", value=1.5), "input", "seed = 1.5"),
        (m.Control(action="reset", value=float("inf")), "input", "seed = inf"),
        (m.Choose(scenario="heart"), "input", "heart"),
        (m.Restart(), "refused", "not stopped"),
        (m.Hello(protocol=m.PROTOCOL), "refused", "hello"),
    ],
)
def test_what_is_not_allowed_is_refused_by_name(
    server: Server, message: m.ClientMessage, code: str, names: str
) -> None:
    with Browser(server) as browser:
        time.sleep(0.11)  # the session tells refusals at most every 0.1 s
        browser.send(message)
        problem = browser.wait(m.Problem)
        assert problem.code == code
        assert names in problem.message
        assert problem.hint
        browser.wait(m.FrameMessage)


def test_a_tool_that_is_not_there_or_nowhere_is_refused(server: Server) -> None:
    with Browser(server) as browser:
        for bad in ({"tool": 3}, {"position": (0.0, float("nan"), 0.0)}):
            time.sleep(0.11)
            browser.move(1, **bad)
            assert browser.wait(m.Problem).code == "input"
        browser.wait(m.FrameMessage)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xc1",
        b"\x91" * 4000,
        msgspec.msgpack.encode({"type": "unknown"}),
        msgspec.msgpack.encode({"type": "tool", "tool": "zero"}),
        msgspec.msgpack.encode([1, 2, 3]),
        "text instead of bytes",
    ],
    ids=["empty", "reserved", "nested", "unknown type", "wrong field", "no map", "text"],
)
def test_malformed_messages_are_refused_then_end_the_connection(server: Server, data: bytes | str) -> None:
    with Browser(server) as browser:
        browser.socket.send(data)
        assert browser.wait(m.Problem).code == "malformed"
        browser.wait(m.FrameMessage)
        with contextlib.suppress(ConnectionClosed):
            for _ in range(MALFORMED_LIMIT - 1):
                browser.socket.send(data)
        assert closed_with(browser) == 1008


def test_oversized_messages(server: Server) -> None:
    with Browser(server) as browser:
        browser.socket.send(b"x" * (m.MAX_CLIENT_MESSAGE + 1))
        assert browser.wait(m.Problem).code == "too_large"
        assert closed_with(browser) == 1009
    with Browser(server) as browser:
        with contextlib.suppress(ConnectionClosed):
            browser.socket.send(b"x" * (4 * HARD_LIMIT))
        assert closed_with(browser) == 1009


def send_without_reading(server: Server, size: int) -> ClientProtocol:
    """A message of `size` bytes from a browser that reads nothing before it has sent it all, slowly."""
    browser = ClientProtocol(parse_uri(f"ws://127.0.0.1:{server.port}/ws"))
    browser.send_request(browser.connect())
    with socket.create_connection(("127.0.0.1", server.port), timeout=10.0) as raw:
        raw.sendall(b"".join(browser.data_to_send()))
        while browser.state is State.CONNECTING:
            browser.receive_data(raw.recv(4096))
        browser.send_binary(b"x" * size)
        data = b"".join(browser.data_to_send())
        for begin in range(0, len(data), 8192):
            raw.sendall(data[begin : begin + 8192])
            time.sleep(0.001)
        while found := raw.recv(4096):
            browser.receive_data(found)
    return browser


def test_a_browser_that_is_still_sending_is_told_why_it_ends(server: Server) -> None:
    """Nothing is refused on the way, so no reset can overtake the close frame."""
    browser = send_without_reading(server, 4 * HARD_LIMIT)
    assert browser.close_rcvd is not None
    assert browser.close_rcvd.code == 1009


def test_who_sends_without_end_is_cut_off(server: Server) -> None:
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        send_without_reading(server, 4 * LINGER_BYTES)


def test_a_flood_is_told_and_then_ends_the_connection_and_others_do_not_notice(server: Server) -> None:
    with Browser(server) as other, Browser(server) as browser:
        other.wait(m.FrameMessage)
        with contextlib.suppress(ConnectionClosed):
            for sequence in range(3 * FLOOD_LIMIT):
                browser.move(sequence)
        codes = []
        with contextlib.suppress(ConnectionClosed):
            while True:
                message = browser.receive(5.0)
                codes += [message.code] if isinstance(message, m.Problem) else []
        assert set(codes) == {"flood"}
        assert browser.socket.close_code == 1008
        for _ in range(10):
            other.wait(m.FrameMessage)


def test_another_protocol_is_refused(server: Server) -> None:
    with Browser(server, greet=False) as browser:
        browser.send(m.Hello(protocol=m.PROTOCOL + 1))
        problem = browser.wait(m.Problem)
        assert problem.code == "protocol"
        assert f"protocol {m.PROTOCOL + 1}" in problem.message
        assert closed_with(browser) == 1002


def test_whoever_does_not_greet_is_refused(server: Server) -> None:
    with Browser(server, greet=False) as browser:
        browser.send(m.Ping(client_time=0.0))
        assert browser.wait(m.Problem).code == "protocol"
        assert closed_with(browser) == 1002


def test_a_foreign_origin_is_refused(server: Server) -> None:
    for origin in ("https://example.com", "null", "http://localhost.example.com", f"file://127.0.0.1:{server.port}"):
        with pytest.raises(InvalidStatus) as caught:
            Browser(server, origin=origin)
        assert caught.value.response.status_code == 403
    for origin in (f"http://127.0.0.1:{server.port}", "http://localhost:5173"):
        Browser(server, origin=origin).close()


def test_frames_wait_for_answers_and_the_newest_wins(server: Server) -> None:
    with Browser(server, acknowledge=False) as browser:
        for _ in range(2):
            browser.wait(m.FrameMessage)
        browser.watch(0.6)  # many frames are made in this time, and none is sent
        assert browser.frames == 2
        tick = health(server)["tick"]
        browser.send(m.FrameAck(number=10**9))
        assert browser.wait(m.FrameMessage).state.tick >= tick
        assert browser.frames == 3


def test_frames_of_messages_are_not_compressed(server: Server) -> None:
    with Browser(server) as browser:
        assert not browser.socket.protocol.extensions
