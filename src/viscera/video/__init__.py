"""`viscera video`: a recording as a film, with the measures on it, drawn without a browser.

The world is made again from its inputs and steps from picture to picture. Beside it pictures are drawn
(`viscera.render`), each by one of a few painters in threads of their own, and compressed in their order (PyAV: `pip
install 'viscera[video]'`), so every core is busy whichever of the two takes longer.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from viscera import render
from viscera.errors import InputError
from viscera.session.archive import read_recording
from viscera.session.playing import Player
from viscera.session.replay import DEFAULT_FACTORY, make_world
from viscera.timing import TICK, TICKS_PER_SECOND
from viscera.video.captions import Captions, lines_of
from viscera.view import AnyArray, Camera, Frame, Scene
from viscera.xray.files import CODECS, require

Progress = Callable[[str, float], None]

OPTIONS = {".mp4": {"crf": "21", "preset": "veryfast"}, ".webm": {"crf": "32", "deadline": "realtime", "cpu-used": "8"}}
"""Of the codecs: little is lost that is seen, and two cores keep up."""
PAINTERS = 2
"""Pictures that are drawn at the same time."""
WAITING = 2
"""Pictures that may wait to be drawn."""


@dataclass(frozen=True)
class Filmed:
    """What came out."""

    file: str
    pictures: int
    seconds: float
    """Of the film [s]."""
    took: float
    """Wall time, the world's making and kernels left out [s]."""
    drawing: float
    """What drawing and compressing took beside the world, in all threads together [s]."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Film:
    """What to film: a part of a recording, how large and how often."""

    width: int = 1280
    height: int = 720
    rate: float = 30.0
    """Pictures per second."""
    begin: float = 0.0
    """[s]"""
    end: float | None = None
    """[s]; None: to the end."""
    camera: Camera | None = None
    """None: the scenario's own."""

    def __post_init__(self) -> None:
        if self.width % 2 or self.height % 2 or not (64 <= self.width <= 4096 and 64 <= self.height <= 4096):
            raise InputError(
                f"a film of {self.width} × {self.height} pixels is not possible.", "Both sides: even, 64 to 4096."
            )
        if not 1.0 <= self.rate <= 120.0:
            raise InputError(f"{self.rate:g} pictures per second are not possible.", "Allowed are 1 to 120.")
        if not self.begin >= 0.0 or (self.end is not None and not self.end > self.begin):
            raise InputError(f"a film from {self.begin:g} s to {self.end} s is empty.", "Begin before the end.")


def film(
    recording: str | Path,
    out: str | Path,
    what: Film | None = None,
    *,
    device: str | None = None,
    factory: str = DEFAULT_FACTORY,
    progress: Progress | None = None,
) -> Filmed:
    """Writes the film of a recording to `out` (.mp4 or .webm), which is there only once it is whole."""
    what, out = what or Film(), Path(out)
    if out.suffix.lower() not in CODECS:
        raise InputError(f"{out} is no video.", f"Give a name that ends in {' or '.join(CODECS)}.")
    require("av", "video")
    found = read_recording(recording)
    ticks = picture_ticks(what, found.tick)
    world = make_world(found, device=device, factory=factory, progress=progress)
    partial = out.with_name(f".{out.stem}.{os.getpid()}{out.suffix}")
    player = Player(world, found, keep_most=0)
    player.load_before(ticks[0])
    player.advance(ticks[0])
    start = time.perf_counter()
    easel = Easel(partial, what, world)
    try:
        for number, tick in enumerate(ticks):
            player.advance(tick)
            easel.show(world)
            if progress is not None and number % 15 == 0:
                progress(f"{tick * TICK:.1f} s filmed", number / len(ticks))
        easel.close()
        os.replace(partial, out)
    finally:
        easel.abandon()
        partial.unlink(missing_ok=True)
        world.close()
    return Filmed(str(out), len(ticks), len(ticks) / what.rate, time.perf_counter() - start, easel.busy)


def picture_ticks(what: Film, last: int) -> list[int]:
    """The ticks at which pictures are taken: each at its time, to the nearest millisecond."""
    first = round(TICKS_PER_SECOND * what.begin)
    end = last if what.end is None else min(last, round(TICKS_PER_SECOND * what.end))
    if first >= end:
        raise InputError(
            f"the recording ends at {last * TICK:.2f} s, before {what.begin:g} s.", "Begin earlier (--from)."
        )
    step = TICKS_PER_SECOND / what.rate
    return [first + round(k * step) for k in range(int((end - first) / step) + 1)]


@dataclass
class _Shot:
    """A moment to be drawn."""

    number: int
    scene: Scene
    frame: Frame
    arrays: dict[str, AnyArray]


class Easel:
    """Draws and compresses pictures in threads of its own, while the world goes on."""

    def __init__(self, path: Path, what: Film, world: Any) -> None:
        self.busy = 0.0
        self._what = what
        self._captions = Captions(what.height)
        self._free: queue.Queue[dict[str, AnyArray]] = queue.Queue()
        self._shots: queue.Queue[_Shot | None] = queue.Queue()
        self._taken = self._written = 0
        self._turn = threading.Condition()
        self._error: Exception | None = None
        self._adopt(world)
        av = require("av", "video")
        suffix = path.suffix.lower()
        self._file = av.open(str(path), "w", format=suffix[1:])
        rate = Fraction(what.rate).limit_denominator(1000)
        self._stream = self._file.add_stream(CODECS[suffix], rate=rate, options=OPTIONS[suffix])
        self._stream.width, self._stream.height, self._stream.pix_fmt = what.width, what.height, "yuv420p"
        self._picture = av.VideoFrame.from_ndarray
        self._threads = [
            threading.Thread(target=self._work, args=(painter,), name=f"viscera-film-{painter}", daemon=True)
            for painter in range(PAINTERS)
        ]
        for thread in self._threads:
            thread.start()

    def _adopt(self, world: Any) -> None:
        """What is in the world now; nothing may be drawn meanwhile."""
        self._seed, self._scene = world.seed, world.scene()
        width, height = self._what.width, self._what.height
        # One core each: the world and the other painters have the others.
        self._eyes = [
            render.make(self._scene, device=world.device.sibling(1), width=width, height=height, half=True)
            for _ in range(PAINTERS)
        ]
        self._free = queue.Queue()
        for _ in range(WAITING + PAINTERS):
            self._free.put({name: np.zeros_like(array) for name, array in self._eyes[0].arrays.items()})

    def show(self, world: Any) -> None:
        """The world as it is now is the next picture."""
        if world.seed != self._seed:
            self._shots.join()
            self._adopt(world)
        room = self._room()
        world.show_now()
        world.write_arrays(room)
        self._shots.put(_Shot(self._taken, self._scene, world.frame(), room))
        self._taken += 1

    def _room(self) -> dict[str, AnyArray]:
        while True:
            if self._error is not None:
                raise self._error
            try:
                return self._free.get(timeout=0.5)
            except queue.Empty:
                continue

    def close(self) -> None:
        """Waits for the last picture, and completes the file."""
        self._end()
        if self._error is not None:
            raise self._error
        self._file.mux(self._stream.encode())
        self._file.close()

    def abandon(self) -> None:
        """Ends the threads, if `close` has not."""
        self._end()

    def _end(self) -> None:
        for _ in self._threads:
            self._shots.put(None)
        for thread in self._threads:
            thread.join()
        self._threads = []

    def _work(self, painter: int) -> None:
        while (shot := self._shots.get()) is not None:
            if self._error is None:
                try:
                    self._draw(shot, self._eyes[painter])
                except Exception as error:
                    self._error = error
            with self._turn:  # after an error too, or the next one would wait for ever
                self._written = max(self._written, shot.number + 1)
                self._turn.notify_all()
            self._free.put(shot.arrays)
            self._shots.task_done()

    def _draw(self, shot: _Shot, eye: render.Renderer) -> None:
        start = time.perf_counter()
        for name, array in shot.arrays.items():
            np.copyto(eye.arrays[name], array)
        colour = eye.render(shot.frame, self._what.camera, copy=False).colour
        drawn = time.perf_counter()
        with self._turn:
            self._turn.wait_for(lambda: self._written >= shot.number)
            if self._error is not None:
                return
            begun = time.perf_counter()
            self._captions.put(colour, lines_of(shot.scene, shot.frame))
            self._file.mux(self._stream.encode(self._picture(colour, format="rgb24")))
            self.busy += drawn - start + time.perf_counter() - begun
            self._written = shot.number + 1
