"""How a connection ends that breaks the rules of its protocol: its close frame arrives.

TCP answers bytes that come to a closed socket with a reset, and a reset can overtake the close frame that says why. A
browser then sees code 1006 ("no reason") instead of 1009 ("too large"). So the connection is closed in two steps: our
half at once, after the close frame; the whole of it when the browser has closed its half, or after a bound. What still
arrives in between is read and thrown away.
"""

from __future__ import annotations

from typing import Any

from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

LINGER_S = 5.0
"""A browser has this long to read why its connection ends, and to stop sending [s]."""

LINGER_BYTES = 1 << 22
"""What it may send in that time; more ends the connection at once [bytes]."""


class LingeringProtocol(WebSocketsSansIOProtocol):
    """Uvicorn's protocol, which closes at once when the parser fails, with a lingering close instead."""

    _lingering = False
    _thrown_away = 0

    def data_received(self, data: bytes) -> None:
        if not self._lingering:
            super().data_received(data)
            return
        self._thrown_away += len(data)
        if self._thrown_away > LINGER_BYTES:
            self.transport.close()

    async def send(self, message: Any) -> None:
        """Uvicorn calls it a mistake of the application to send after the end. But the line may end at any moment, and
        an application that is just then sending cannot know: it is told that the browser has gone."""
        await self.writable.wait()
        if self.close_sent or self.transport.is_closing():
            raise ClientDisconnected
        await super().send(message)
        if self.close_sent:
            self.handshake_complete = True  # refused with an answer: that is an end too

    def handle_parser_exception(self) -> None:
        """Send the close frame and close our half. Called when a message is too large or is no message at all."""
        if self.transport.is_closing():
            return
        assert self.conn.close_sent is not None
        self._lingering = True
        closed = self.conn.close_sent
        self.queue.put_nowait({"type": "websocket.disconnect", "code": closed.code, "reason": closed.reason})
        self.transport.write(b"".join(self.conn.data_to_send()))
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.close_sent = True
        if self.read_paused:
            self.read_paused = False
            self.transport.resume_reading()
        if self.close_timer is not None:
            self.close_timer.cancel()
        # While there is a timer, uvicorn leaves the transport open when the application has returned.
        self.close_timer = self.loop.call_later(LINGER_S, self.transport.close)
