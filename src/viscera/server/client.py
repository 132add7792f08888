"""One browser: what it may send, and what waits to be sent to it.

Nothing queues up for a browser that is slow or does not read. Of frames, states and scenes only the newest is ever
sent, at most two frames are on their way unacknowledged, and answers wait in a short queue that forgets its oldest.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.websockets import WebSocket, WebSocketDisconnect

from viscera.server import messages as m

if TYPE_CHECKING:
    from viscera.server.hub import Hub

RATE = 500.0
"""Messages per second a browser may send for long. A 240 Hz screen sends a pose and an answer per picture."""

BURST = 500.0
"""Messages it may send at once after a rest."""

FLOOD_LIMIT = 1000
"""Messages above the rate, in all, after which the connection ends."""

MALFORMED_LIMIT = 5
"""Messages that cannot be read, in all, after which the connection ends."""

IN_FLIGHT = 2
"""Frames on their way that were not acknowledged."""

HARD_LIMIT = 16 * m.MAX_CLIENT_MESSAGE
"""A message this long ends the connection while it arrives; a shorter one is refused with a reason [bytes]."""

LONGEST_ANSWER = 64
"""Of a `FrameAck` [bytes]."""

GREETING_S = 10.0
"""A connection that says nothing this long is closed [s]."""

REASON_BYTES = 120
"""Of the reason in a close frame; the protocol allows 123."""

CLOSING_S = 2.0
"""A browser has this long to take the last message [s]."""

POLICY, PROTOCOL_ERROR, TOO_LARGE, TRY_LATER = 1008, 1002, 1009, 1013
"""Close codes of RFC 6455."""

_decoder: msgspec.msgpack.Decoder[m.ClientMessage] = msgspec.msgpack.Decoder(m.ClientMessage)
_encode = msgspec.msgpack.Encoder().encode


class RateLimit:
    """A bucket that fills with `rate` per second up to `burst`; every message takes one out."""

    def __init__(self, rate: float, burst: float) -> None:
        self._rate, self._burst, self._level = rate, burst, burst
        self._filled = time.monotonic()

    def allows(self) -> bool:
        now = time.monotonic()
        self._level = min(self._burst, self._level + (now - self._filled) * self._rate)
        self._filled = now
        if self._level < 1.0:
            return False
        self._level -= 1.0
        return True


class Closing(Exception):
    """The connection ends, for this reason."""

    def __init__(self, code: int, problem: m.Problem | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.problem = problem


class Client:
    """A connected browser, from its greeting to its end."""

    def __init__(self, number: int, socket: WebSocket, hub: Hub) -> None:
        self.number = number
        self.visitor = hub.entrance.who(socket.cookies.get(hub.entrance.cookie))
        """Who looks at it: whose trials are kept, and whether it may take the instruments from whoever holds them."""
        self._socket = socket
        self._hub = hub
        self._wake = asyncio.Event()
        self._answers: deque[bytes] = deque(maxlen=32)
        self._send_state = self._send_scene = True
        self._frame_sent = 0
        self._textures_sent = 0
        """Up to this frame the browser has all changes of pictures and triangles; 0 after a scene, which begins
        without."""
        self._in_flight: deque[int] = deque()
        self._sending = False
        self._limit = RateLimit(RATE, BURST)
        self._over_limit = 0
        self._malformed = 0
        self._flood_told = 0.0

    # --- from the hub --------------------------------------------------------------------------------------------

    @property
    def wants_frame(self) -> bool:
        return len(self._in_flight) < IN_FLIGHT and not self._sending

    def state_changed(self) -> None:
        self._send_state = True
        self._wake.set()

    def scene_changed(self) -> None:
        """Another scene: frames that were on their way do not matter any more."""
        self._send_scene = True
        self._in_flight.clear()
        self._wake.set()

    def frame_changed(self) -> None:
        self._wake.set()

    def answer(self, message: m.ServerMessage) -> None:
        self._answers.append(_encode(message))
        self._wake.set()

    def problem(self, code: Any, message: str, hint: str) -> None:
        self.answer(m.Problem(code=code, message=message, hint=hint))

    # --- the connection ------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """The whole life of an accepted connection."""
        joined = False
        try:
            await self._greet()
            self._hub.join(self)
            joined = True
            await self._talk()
        except Closing as closing:
            await self._close(closing)
        except WebSocketDisconnect:
            pass
        finally:
            if joined:
                self._hub.leave(self)

    async def _greet(self) -> None:
        try:
            hello = self._read(await asyncio.wait_for(self._socket.receive(), GREETING_S))
        except TimeoutError:
            raise Closing(POLICY, _protocol_problem("nothing was said for too long.")) from None
        if not isinstance(hello, m.Hello):
            raise Closing(PROTOCOL_ERROR, _protocol_problem("the first message has to be hello."))
        if hello.protocol != m.PROTOCOL:
            text = f"the page speaks protocol {hello.protocol}, this server {m.PROTOCOL}."
            raise Closing(PROTOCOL_ERROR, _protocol_problem(text))
        await self._socket.send_bytes(_encode(self._hub.welcome(self)))

    async def _talk(self) -> None:
        """Sends and receives side by side until one of them ends; the other one ends with it."""
        tasks = [asyncio.create_task(self._send()), asyncio.create_task(self._receive())]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _receive(self) -> None:
        while True:
            message = self._read(await self._socket.receive())
            if isinstance(message, m.FrameAck):
                self._acknowledge(message.number)
            elif isinstance(message, m.Ping):
                self.answer(m.Pong(client_time=message.client_time))
            elif message is not None:
                self._hub.handle(self, message)

    async def _send(self) -> None:
        hub = self._hub
        while True:
            await self._wake.wait()
            self._wake.clear()
            self._sending = True
            if self._send_state:
                self._send_state = False
                await self._socket.send_bytes(hub.state_bytes)
            if self._send_scene and hub.scene_bytes:
                self._send_scene = False
                self._textures_sent = 0
                await self._socket.send_bytes(hub.scene_bytes)
            while self._answers:
                await self._socket.send_bytes(self._answers.popleft())
            if self._may_have_frame():
                self._frame_sent = hub.frames.number
                self._in_flight.append(hub.frames.number)
                frame, tiles = hub.frames.bytes, hub.frames.textures.since(self._textures_sent)
                topology = hub.frames.topology.since(self._textures_sent)
                self._textures_sent = hub.frames.number
                for message in topology:
                    await self._socket.send_bytes(message)
                await self._socket.send_bytes(frame)
                if tiles:
                    await self._socket.send_bytes(tiles)
            self._sending = False
            if not self._wake.is_set():
                hub.frames.pump()

    def _may_have_frame(self) -> bool:
        hub = self._hub
        unseen = bool(hub.frames.bytes) and hub.frames.number > self._frame_sent
        return unseen and not self._send_scene and len(self._in_flight) < IN_FLIGHT

    def _acknowledge(self, number: int) -> None:
        while self._in_flight and self._in_flight[0] <= number:
            self._in_flight.popleft()
        self._wake.set()

    def _read(self, event: Any) -> m.ClientMessage | None:
        """A message, or None where it is dropped; raises `Closing` where that has happened too often."""
        if event["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(event.get("code", 1005))
        data = event.get("bytes")
        if not self._limit.allows():
            self._complain_about_flood()
            return _answer_in(data)
        if data is None:
            return self._complain_about_form("text was sent where MessagePack is expected")
        if len(data) > m.MAX_CLIENT_MESSAGE:
            text = f"a message of {len(data)} bytes is too large; {m.MAX_CLIENT_MESSAGE} are allowed."
            raise Closing(TOO_LARGE, m.Problem(code="too_large", message=text, hint="Reload the page."))
        try:
            return _decoder.decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            return self._complain_about_form(str(error))

    def _complain_about_form(self, why: str) -> None:
        self._malformed += 1
        problem = m.Problem(code="malformed", message=f"a message cannot be read: {why}.", hint="Reload the page.")
        if self._malformed >= MALFORMED_LIMIT:
            raise Closing(POLICY, problem)
        self.answer(problem)

    def _complain_about_flood(self) -> None:
        self._over_limit += 1
        text = f"more than {RATE:.0f} messages per second arrived; the rest is dropped."
        problem = m.Problem(code="flood", message=text, hint="Send fewer; the newest pose is all that counts.")
        if self._over_limit >= FLOOD_LIMIT:
            raise Closing(POLICY, problem)
        now = time.monotonic()
        if now - self._flood_told > 1.0:
            self._flood_told = now
            self.answer(problem)

    async def _close(self, closing: Closing) -> None:
        with contextlib.suppress(TimeoutError, WebSocketDisconnect, RuntimeError):
            async with asyncio.timeout(CLOSING_S):
                if closing.problem is not None:
                    await self._socket.send_bytes(_encode(closing.problem))
                await self._socket.close(closing.code, _reason(closing.problem))


def _reason(problem: m.Problem | None) -> str:
    """As much of a message as a close frame holds: its bytes are counted, not its letters."""
    return "" if problem is None else problem.message.encode()[:REASON_BYTES].decode(errors="ignore")


def _answer_in(data: bytes | None) -> m.FrameAck | None:
    """The answer to a frame, if it is one. It counts also in a flood: without it no frame would follow, and so no other
    answer, for as long as the line stays."""
    if data is None or len(data) > LONGEST_ANSWER:
        return None
    with contextlib.suppress(msgspec.MsgspecError, ValueError, RecursionError):
        found = _decoder.decode(data)
        return found if isinstance(found, m.FrameAck) else None
    return None


def _protocol_problem(text: str) -> m.Problem:
    return m.Problem(code="protocol", message=text, hint="Reload the page; it may be older than the server.")
