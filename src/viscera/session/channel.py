"""One-way message channels between the server and a session: a pipe that never blocks its writer.

Messages are MessagePack behind a 4-byte length. `Sender.offer` writes a message of at most `PIPE_BUF` bytes whole or
not at all (POSIX promises that), so the kernel's pipe buffer (64 KiB on Linux) is the bounded queue: no thread, no
lock, one system call. `Receiver.take` drains what is there in one call. A closed end is how each side learns that the
other one is gone.
"""

from __future__ import annotations

import multiprocessing
import os
import select
import struct
from multiprocessing.connection import Connection
from typing import Any, Generic, TypeVar

import msgspec

from viscera.errors import SessionError

Message = TypeVar("Message")

PIPE_BUF = select.PIPE_BUF
"""Largest message that `offer` takes, its length included [bytes]."""

MAX_MESSAGE = 256 * 2**20
"""A longer message is a broken channel, not a big scene [bytes]."""

_LENGTH = struct.Struct("<I")
_READ = 2**16


class ChannelClosed(Exception):
    """The other side is gone."""


class TooLarge(SessionError):
    """A message does not fit into the queue."""


class Sender:
    """The writing end. It can be handed to a process that is being spawned."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._encoder = msgspec.msgpack.Encoder()
        _prepare(connection)

    def __reduce__(self) -> tuple[Any, ...]:
        return Sender, (self._connection,)

    def offer(self, message: object) -> bool:
        """Sends at once, or gives up and returns False when the queue is full. Never blocks."""
        data = self._pack(message)
        if len(data) > PIPE_BUF:
            raise TooLarge(f"a message of {len(data)} bytes is too large for a queue that takes {PIPE_BUF} bytes.")
        try:
            os.write(self._connection.fileno(), data)
        except BlockingIOError:
            return False
        except (BrokenPipeError, OSError) as error:
            raise ChannelClosed from error
        return True

    def send(self, message: object) -> None:
        """Sends a message of any size and waits until the other side has taken enough of it."""
        data = memoryview(self._pack(message))
        while data:
            try:
                data = data[os.write(self._connection.fileno(), data) :]
            except BlockingIOError:
                select.select([], [self._connection.fileno()], [])
            except (BrokenPipeError, OSError) as error:
                raise ChannelClosed from error

    def close(self) -> None:
        if not self._connection.closed:
            self._connection.close()

    def _pack(self, message: object) -> bytes:
        body = self._encoder.encode(message)
        return _LENGTH.pack(len(body)) + body


class Receiver(Generic[Message]):
    """The reading end, for messages of one union type. It can be handed to a process that is being spawned."""

    def __init__(self, connection: Connection, kind: Any) -> None:
        self._connection = connection
        self._kind = kind
        self._decoder = msgspec.msgpack.Decoder(kind)
        self._rest = bytearray()
        _prepare(connection)

    def __reduce__(self) -> tuple[Any, ...]:
        return Receiver, (self._connection, self._kind)

    def fileno(self) -> int:
        return self._connection.fileno()

    def take(self) -> list[Message]:
        """Everything that has arrived, in order; raises `ChannelClosed` once nothing is left and nothing can come."""
        try:
            data = os.read(self._connection.fileno(), _READ)
        except BlockingIOError:
            return []
        if not data:
            raise ChannelClosed
        self._rest += data
        found: list[Message] = []
        start = 0
        while len(self._rest) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._rest, start)
            if length > MAX_MESSAGE:
                raise ChannelClosed
            end = start + _LENGTH.size + length
            if len(self._rest) < end:
                break
            found.append(self._decoder.decode(self._rest[start + _LENGTH.size : end]))
            start = end
        del self._rest[:start]
        return found

    def wait(self, seconds: float) -> None:
        """Sleeps until something arrives, at most that long."""
        select.select([self._connection.fileno()], [], [], seconds)

    def close(self) -> None:
        if not self._connection.closed:
            self._connection.close()


def _prepare(connection: Connection) -> None:
    os.set_blocking(connection.fileno(), False)
    # Spawning hands a descriptor on as inheritable; a compiler that keeps it open would hide that we are gone.
    os.set_inheritable(connection.fileno(), False)


def open_channel(kind: Any) -> tuple[Sender, Receiver[Any]]:
    """A channel for messages of the union `kind`. POSIX only: it leans on atomic writes to pipes."""
    reader, writer = multiprocessing.Pipe(duplex=False)
    return Sender(writer), Receiver(reader, kind)
