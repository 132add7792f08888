"""From what a world shows to bytes: MessagePack as browsers read it, made once by the session.

Arrays become little-endian bytes of their own type; a field that is marked `OFF_THE_WIRE` is left out.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import msgspec
import numpy as np

from viscera.instruments.instrument import OFF_THE_WIRE

PROTOCOL = 9
"""Raised whenever what browsers get or send changes its meaning. Both sides refuse another one, and stored pictures of
another one are not shown."""

_encode = msgspec.msgpack.Encoder().encode


def pack(shown: object) -> bytes:
    """Of a dataclass of `viscera.view`, however deep."""
    return _encode(plain(shown))


def plain(value: Any) -> Any:
    """Dictionaries, lists, numbers, strings and bytes."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        sent = [field.name for field in dataclasses.fields(value) if not field.metadata.get(OFF_THE_WIRE)]
        return {name: plain(getattr(value, name)) for name in sent}
    if isinstance(value, np.ndarray):
        return np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<")).tobytes()
    if isinstance(value, dict):
        return {key: plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry) for entry in value]
    return value.item() if isinstance(value, np.generic) else value
