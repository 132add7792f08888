"""The worlds of `tests/scenarios/shown`, one for each thing to show: they change as they should, come back bit for bit
from a saved state, from a recording, and over a real server as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from server_browser import Browser, health, running_server

import viscera
from viscera.server import messages as m
from viscera.server.app import Server
from viscera.session.replay import replay
from viscera.view import Snapshot
from viscera.world import World

FOLDER = Path(__file__).parent / "shown"
OTHERS = ("haze", "stitches", "gaze")
NAMES = ("cut", "xray", *OTHERS)
CHANGES = {
    "cut": ["sheet", "sheet/triangles", "sheet/rest"],
    "haze": ["smoke", "saline"],
    "stitches": ["suture", "wire", "clips"],
    "xray": ["xray"],
    "gaze": ["gaze", "trail"],
}
"""Arrays that differ after the script's hand has worked for a while."""
STAYS = {"cut": ["sheet.ink"], "haze": ["sheet"], "stitches": ["pins", "sheet"], "xray": ["sheet"], "gaze": ["sheet"]}
WHILE = 800
"""Ticks."""


def made(name: str) -> World:
    return viscera.make(str(FOLDER / f"{name}.py"), device="cpu")


def worked(world: World, ticks: int) -> Snapshot:
    """After the scenario's own hand has worked for so long."""
    for _ in range(ticks):
        for one in world.script(world.tick):
            world.apply(one)
        world.step()
    return world.snapshot()


@pytest.fixture(params=NAMES)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    one = made(request.param)
    yield one
    one.close()


def test_arrays_change_as_the_hand_works(world: World) -> None:
    before, after = worked(world, 16), worked(world, WHILE)
    for name in CHANGES[world.scenario]:
        assert not np.array_equal(before.arrays[name], after.arrays[name]), name
    for name in STAYS[world.scenario]:
        assert np.array_equal(before.arrays[name], after.arrays[name]), name


def test_a_saved_state_goes_on_bit_for_bit(world: World) -> None:
    worked(world, 400)
    saved = world.save_state()
    shown = world.snapshot()
    worked(world, 400)
    other = made(world.scenario)
    other.load_state(saved)
    again = other.snapshot()
    assert {name: array.tobytes() for name, array in again.arrays.items()} == {
        name: array.tobytes() for name, array in shown.arrays.items()
    }
    assert (again.counts, again.versions) == (shown.counts, shown.versions)
    worked(other, 400)
    assert other.state_hash() == world.state_hash()
    other.close()


def test_a_cut_makes_lips_and_keeps_what_is_drawn_on_the_tissue() -> None:
    world = made("cut")
    before, after = worked(world, 16), worked(world, 1200)
    lips = after.counts["sheet"] - before.counts["sheet"]
    assert lips > 0
    assert lips % 2 == 0
    assert after.versions["sheet"] > before.versions["sheet"]
    for shown in (before, after):
        count = shown.counts["sheet/triangles"]
        triangles = shown.arrays["sheet/triangles"][:count]
        assert triangles.max() < shown.counts["sheet"] == shown.counts["sheet/rest"]
        assert shown.counts["sheet/uv"] == count
    # Triangles that were there are there still, at the same place of the texture; only their corners may be lips now.
    old = before.counts["sheet/triangles"]
    assert np.array_equal(before.arrays["sheet/uv"][:old], after.arrays["sheet/uv"][:old])
    assert np.array_equal(
        before.arrays["sheet/rest"][before.arrays["sheet/triangles"][:old]],
        after.arrays["sheet/rest"][after.arrays["sheet/triangles"][:old]],
    )
    assert _boundary(after) == _boundary(before)
    world.close()


def _boundary(shown: Snapshot) -> int:
    """Edges with one triangle only: a cut with its walls leaves no hole."""
    triangles = shown.arrays["sheet/triangles"][: shown.counts["sheet/triangles"]]
    edges = np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]]), axis=1)
    _, uses = np.unique(edges, axis=0, return_counts=True)
    assert uses.max() <= 2
    return int((uses == 1).sum())


class Served:
    """What a browser has of a world: pictures by tiles, triangles by messages, the newest frame."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.scene = browser.wait(m.SceneDescription, seconds=60.0).scene
        self.pictures = {
            one.name: np.zeros((one.height * getattr(one, "depth", 1), one.width, 4), dtype=np.uint8)
            for one in [*self.scene.textures, *self.scene.volumes, *self.scene.pictures]
        }
        self.triangles: dict[str, m.Topology] = {}
        self.frame: m.FrameMessage | None = None

    def take(self) -> Any:
        message = self.browser.receive()
        if isinstance(message, m.Tiles):
            for tiles in message.arrays:
                self._put(tiles, message.side)
        elif isinstance(message, m.Topology):
            self.triangles[message.surface] = message
        elif isinstance(message, m.FrameMessage):
            self.frame = message
            # They come before the frame that has them.
            for name, version in message.state.versions.items():
                assert self.triangles[name].version == version
        return message

    def _put(self, tiles: m.ArrayTiles, side: int) -> None:
        places = np.frombuffer(tiles.places, "<u2").reshape(-1, 2)
        sent = np.frombuffer(tiles.data, np.uint8).reshape(-1, side, side, tiles.channels)
        data = np.pad(sent, ((0, 0), (0, 0), (0, 0), (0, 4 - tiles.channels)))
        for (column, row), tile in zip(places.tolist(), data, strict=True):
            self.pictures[tiles.name][row * side : (row + 1) * side, column * side : (column + 1) * side] = tile

    def until(self, tick: int) -> m.Frame:
        """The state of the first frame from this tick on, with all that belongs to it."""
        while self.frame is None or self.frame.state.tick < tick:
            self.take()
        return self.frame.state

    def pause(self, server: Server) -> m.Frame:
        """Everything of the tick at which the world stands still."""
        self.browser.send(m.Control(action="pause"))
        self.take_until(lambda found: isinstance(found, m.SessionState) and found.state == "paused")
        state = self.until(health(server)["tick"])
        # A frame and its tiles go out together, so what is answered after the frame comes after its tiles.
        self.browser.send(m.Ping(client_time=1.0))
        self.take_until(lambda found: isinstance(found, m.Pong))
        return state

    def take_until(self, test: Callable[[Any], bool]) -> None:
        while not test(self.take()):
            pass


def numbers(array: m.ExactArray) -> NDArray[Any]:
    return np.frombuffer(array.data, f"<{array.kind}").reshape(array.count, array.components)


@pytest.mark.parametrize("name", ["cut", *(pytest.param(name, marks=pytest.mark.slow) for name in ("xray", *OTHERS))])
def test_a_browser_has_the_world_as_it_is(name: str, tmp_path: Path) -> None:
    file = str(FOLDER / f"{name}.py")
    with (
        running_server(tmp_path, file, factory="viscera.scenarios:make", device="cpu", cores=1) as server,
        Browser(server) as browser,
    ):
        served = Served(browser)
        served.until(160)
        browser.move(1, position=(-0.01, 0.0, 0.001), grip=1.0)
        served.until(640)
        state = served.pause(server)
        assert served.frame is not None
        values = {array.name: numbers(array) for array in served.frame.values}
    # The recording ends where the world stood still; replayed it is the same, or `replay` raises.
    [recording] = tmp_path.glob("*.h5")
    assert recording.name.startswith(f"{name}-")
    again = replay(recording, "cpu", cores=1)
    truth = again.snapshot()
    again.close()
    assert truth.tick == state.tick
    for one, pixels in served.pictures.items():
        assert np.array_equal(pixels, truth.arrays[one]), one
    assert any(pixels.any() for pixels in served.pictures.values()) == (name in ("cut", "haze", "xray"))
    for one, rows in values.items():
        assert np.array_equal(rows, truth.arrays[one][: truth.counts.get(one)]), one
    assert set(values) == {"stitches": {"pins", "clips", "suture", "wire"}, "gaze": {"gaze", "trail"}}.get(name, set())
    assert state.versions == truth.versions
    for surface, topology in served.triangles.items():
        assert topology.version > 1, "the blade has cut"
        for array in topology.arrays:
            assert np.array_equal(numbers(array), truth.arrays[array.name][: truth.counts[array.name]]), surface
