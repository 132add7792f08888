"""Pictures as tiles: what changed since a browser last got some.

A browser skips frames, each its own ones, so every tile remembers the frame in which it last changed. What a browser is
owed are the tiles that changed after the frame it has; browsers that have the same frame get the same bytes, packed
once.
"""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from viscera.server import messages as m
from viscera.server.encode import topology_messages
from viscera.session.snapshot import SharedSnapshot
from viscera.view import AnyArray

SIDE = 32
"""Of a tile [texels]; textures are powers of two from 64 on."""

_encode = msgspec.msgpack.Encoder().encode


class TopologyStore:
    """The newest triangles of surfaces that change, encoded, and when each changed."""

    def __init__(self, session: int) -> None:
        self._session = session
        self._versions: dict[str, int] = {}
        self._packed: dict[str, tuple[int, bytes]] = {}

    def update(self, frame: int, shown: SharedSnapshot) -> None:
        if shown.frame.versions == self._versions:
            return
        for surface, message in topology_messages(self._session, shown).items():
            if self._versions.get(surface) != message.version:
                self._packed[surface] = (frame, _encode(message))
        self._versions = dict(shown.frame.versions)

    def since(self, frame: int) -> list[bytes]:
        """`Topology` messages of the surfaces that changed after this frame (0: of all)."""
        return [packed for changed, packed in self._packed.values() if changed > frame]


class TextureStore:
    """The newest pictures of bytes of one session, and when each of their tiles changed."""

    def __init__(self, session: int) -> None:
        self._session = session
        self._newest: dict[str, NDArray[np.uint32]] = {}
        self._changed: dict[str, NDArray[np.int64]] = {}
        self._packed: dict[int, bytes] = {}

    def update(self, frame: int, arrays: dict[str, AnyArray]) -> None:
        """Takes the textures among a snapshot's arrays as those of this frame. It keeps them: hand over copies."""
        self._packed.clear()
        for name, array in arrays.items():
            if array.dtype != np.uint8:
                continue
            texels = np.ascontiguousarray(array).view(np.uint32)[:, :, 0]
            old = self._newest.get(name)
            if old is None:
                old = np.zeros_like(texels)
                self._changed[name] = np.zeros((texels.shape[0] // SIDE, texels.shape[1] // SIDE), dtype=np.int64)
            different = _tiled(texels != old).any(axis=(2, 3))
            self._changed[name][different] = frame
            self._newest[name] = texels

    def since(self, frame: int) -> bytes:
        """A `Tiles` message with what changed after this frame (0: everything that is not zero); empty if nothing."""
        if frame not in self._packed:
            changes = []
            for name, changed in self._changed.items():
                rows, columns = np.nonzero(changed > frame)
                if len(rows) == 0:
                    continue
                data, channels = _used(_tiled(self._newest[name])[rows, columns])
                places = np.stack([columns, rows], axis=1).astype("<u2").tobytes()
                changes.append(m.ArrayTiles(name=name, places=places, data=data, channels=channels))
            message = m.Tiles(session=self._session, side=SIDE, arrays=changes)
            self._packed[frame] = _encode(message) if changes else b""
        return self._packed[frame]


def _used(tiles: NDArray[np.uint32]) -> tuple[bytes, int]:
    """The tiles without the channels at their end that are 0 in all of them, and how many are left: a volume of smoke
    has one."""
    seen = int(np.bitwise_or.reduce(tiles, axis=None))
    channels = max(1, (seen.bit_length() + 7) // 8)
    if channels == 4:
        return tiles.tobytes(), 4
    return tiles.view(np.uint8).reshape(*tiles.shape, 4)[..., :channels].tobytes(), channels


def _tiled(texels: AnyArray) -> AnyArray:
    """As shape (tile rows, tile columns, side, side); a view."""
    height, width = texels.shape
    return texels.reshape(height // SIDE, SIDE, width // SIDE, SIDE).swapaxes(1, 2)
