"""Textures on the wire: whoever skips frames still ends up with the whole picture; tables and particles travel too."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from session_fake_world import FakeWorld

from viscera.server import messages as m
from viscera.server.encode import dequantise, frame_message, read_message, scene_message
from viscera.server.tiles import SIDE, TextureStore
from viscera.session.snapshot import SharedSnapshot
from viscera.session.wire import pack


def paint(picture: np.ndarray, message: bytes) -> None:
    """What a browser does with a `Tiles` message."""
    tiles = msgspec.msgpack.decode(message, type=m.Tiles)
    for texture in tiles.arrays:
        places = np.frombuffer(texture.places, "<u2").reshape(-1, 2)
        sent = np.frombuffer(texture.data, np.uint8).reshape(-1, tiles.side, tiles.side, texture.channels)
        blocks = np.pad(sent, ((0, 0), (0, 0), (0, 0), (0, 4 - texture.channels)))
        for (column, row), block in zip(places.tolist(), blocks, strict=True):
            top, left = row * tiles.side, column * tiles.side
            picture[top : top + tiles.side, left : left + tiles.side] = block


def test_a_browser_that_skips_frames_has_the_same_picture() -> None:
    rng = np.random.default_rng(1)
    store, truth = TextureStore(1), np.zeros((128, 256, 4), np.uint8)
    every, seldom = np.zeros_like(truth), np.zeros_like(truth)
    has = {"every": 0, "seldom": 0}
    for frame in range(1, 31):
        row, column = rng.integers(0, 128), rng.integers(0, 256)
        truth[row, column] = rng.integers(0, 256, 4)
        if frame == 20:
            truth[:SIDE] = 0  # washed off: zeros have to travel too
        store.update(frame, {"film": truth.copy(), "points": np.zeros((3, 3), np.float32)})
        for name, picture, due in (("every", every, True), ("seldom", seldom, frame % 7 == 0)):
            if due:
                message = store.since(has[name])
                has[name] = frame
                if message:
                    paint(picture, message)
    paint(seldom, store.since(has["seldom"]))
    assert truth.any()
    np.testing.assert_array_equal(every, truth)
    np.testing.assert_array_equal(seldom, truth)


def test_only_what_changed_is_sent() -> None:
    store, picture = TextureStore(1), np.zeros((128, 128, 4), np.uint8)
    store.update(1, {"film": picture.copy()})
    assert store.since(0) == b""
    picture[100, 40, 2] = 1
    store.update(2, {"film": picture.copy()})
    tiles = msgspec.msgpack.decode(store.since(1), type=m.Tiles).arrays[0]
    assert np.frombuffer(tiles.places, "<u2").tolist() == [40 // SIDE, 100 // SIDE]
    assert len(tiles.data) == tiles.channels * SIDE * SIDE
    store.update(3, {"film": picture.copy()})
    assert store.since(2) == b""


def test_a_frame_holds_as_many_particles_as_there_are_and_no_texture() -> None:
    world = FakeWorld("fake", 0, {})
    world.step(7)
    arrays = world.snapshot().arrays
    told = world.frame()
    shown = SharedSnapshot(1, told, msgspec.msgpack.encode(told), arrays)
    message = msgspec.msgpack.encode(frame_message(1, 1, shown, world.array_specs()))
    frame = read_message(message)
    packed = {array.name: array for array in frame.arrays}
    assert set(packed) == {"points", "drops"}
    assert packed["drops"].count == 7
    np.testing.assert_allclose(dequantise(packed["drops"]), arrays["drops"][:7, :3], atol=1e-6)
    assert packed["drops"].shades == bytes([128] * 7)
    assert frame.state.tables == {"stages": ((1.0,), (2.0,))}
    assert frame.state.measures == told.measures
    scene = read_message(msgspec.msgpack.encode(scene_message(pack(world.scene()), 1, "fake"))).scene
    assert [texture.name for texture in scene.textures] == ["paint"]
    assert scene.tables[0].columns[0].maximum == 10.0
    assert len(scene.surfaces[0].triangles) == world.scene().surfaces[0].triangles.nbytes
    assert scene.instruments[0].effects[0].kind == "pushes"
    assert not hasattr(scene.instruments[0], "solid")


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_channels_that_are_empty_are_not_sent(channels: int) -> None:
    """A volume of smoke has one, blood in saline two: 64³ cells of it that all change, twenty times a second, are 5.2
    and 10.5 MB/s."""
    store = TextureStore(session=1)
    volume = np.zeros((64 * 64, 64, 4), dtype=np.uint8)
    volume[..., :channels] = np.random.default_rng(0).integers(1, 256, (64 * 64, 64, channels))
    store.update(1, {"smoke": volume})
    message = store.since(0)
    sent = msgspec.msgpack.decode(message, type=m.Tiles).arrays[0]
    assert sent.channels == channels
    assert len(message) < 1.01 * channels * 64**3
    data = np.frombuffer(sent.data, np.uint8).reshape(64 * 64 // SIDE, 64 // SIDE, SIDE, SIDE, channels)
    assert np.array_equal(data.swapaxes(1, 2).reshape(64 * 64, 64, channels), volume[..., :channels])
