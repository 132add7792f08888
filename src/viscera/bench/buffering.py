"""Physics beside a viewer: one locked buffer against lock-free ones (Etheredge, Kunst and Sanders 2013, Table 1).

Physics makes one tick after the other and puts the positions of all masses where a viewer finds them. The viewer is a
process of its own. 60 times a second it takes the newest positions, turns them into the bytes of a frame (the server's
arithmetic: box, 16 bits per coordinate), sends them through a socket, and waits for the display's next refresh.

- single buffer, locked until the display has it: the viewer holds the lock from reading until the refresh, as DirectX
  did to the source; physics holds it while it computes and writes. Whoever asked first gets it next.
- single buffer, locked while it is read: the viewer lets go as soon as its bytes are made.
- three buffers, no lock: the newest wins (session/snapshot.py); the source had two that are flipped.

`document` is the source's rate on one device with a single or a double buffer; it drew on the GPU that computed, and
our viewer has a core of its own: on cpu physics has one core here.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import warp as wp

from viscera.bench._shapes import SHAPES
from viscera.bench._viewer import LOCK_FREE, LOCKED_FOR_THE_FRAME, LOCKED_WHILE_READ, SLOTS, Shared, View, look
from viscera.bench.registry import Row, benchmark, pick, timed
from viscera.bench.tissue import lattice
from viscera.device import Device, open_device
from viscera.tissue.tissue import Tissue

DOCUMENT = {
    146_476: (53, 183), 95_487: (72, 271), 67_477: (96, 362), 41_851: (128, 492), 21_276: (162, 694),
    17_000: (175, 771), 15_096: (184, 805), 11_726: (192, 943), 11_000: (195, 1_012), 10_248: (196, 1_025),
    8_876: (211, 1_043), 6_569: (220, 1_151), 4_688: (222, 1_164), 2_575: (223, 1_272), 1_210: (227, 1_348),
    307: (235, 1_382),
}  # fmt: skip
"""Masses: rate of the framework on a single device with single and with double buffering [Hz]."""

SIZES = (307, 2_575, 10_248, 21_276, 67_477, 146_476)
NOBODY = "nobody looks"
MODES = (NOBODY, LOCKED_FOR_THE_FRAME, LOCKED_WHILE_READ, LOCK_FREE)


def headline(device: Device) -> Row:
    return pick(_beside_viewer(device, (146_476,), (LOCK_FREE,), 0.5), LOCK_FREE)


@benchmark("buffering", title="Physics beside a viewer: locked against lock-free buffers", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    yield from _beside_viewer(device, (10_248, 146_476) if quick else SIZES, MODES, 0.5 if quick else 2.0)


def _beside_viewer(device: Device, sizes: Sequence[int], modes: Sequence[str], seconds: float) -> Iterator[Row]:
    physics = device if device.is_cuda else open_device("cpu", cores=1)
    bodies = [lattice(physics, SHAPES["box"](masses)) for masses in sizes]
    context = multiprocessing.get_context("spawn")
    shared = Shared(
        context.RawArray("f", SLOTS * 3 * max(body.layout.slots for body in bodies)),
        context.RawArray("Q", 1 + 2 * SLOTS),
        context.Lock(),
        context.Lock(),
    )
    ours, theirs = context.Pipe()
    viewer = context.Process(target=look, args=(shared, theirs), daemon=True)
    viewer.start()
    try:
        for body in bodies:
            for mode in modes:
                yield _measure(physics, body, shared, ours, mode, seconds)
    finally:
        ours.send(None)
        viewer.join(timeout=5.0)
        viewer.kill()


def _measure(device: Device, body: Tissue, shared: Shared, viewer: Connection, mode: str, seconds: float) -> Row:
    masses = len(body.params.nodes)
    single, double = DOCUMENT[masses]
    looked = mode != NOBODY
    writer = _Writer(body, shared)
    writer.tick_lock_free()
    if looked:
        rest = body.rest_positions().astype(np.float32)
        viewer.send(View(mode, body.layout.slots, body.layout.slot_of_node, rest))
        viewer.recv()
    tick = writer.tick_locked if looked and mode != LOCK_FREE else writer.tick_lock_free
    times = [time.perf_counter()]
    while times[-1] - times[0] < seconds:
        tick()
        times.append(time.perf_counter())
    frames = 0.0
    if looked:
        viewer.send("stop")
        frames = viewer.recv()
    gaps = 1e3 * np.diff(times)
    return timed(
        "buffering", mode, masses, device, 1e3 * (times[-1] - times[0]) / len(gaps),
        document={LOCKED_FOR_THE_FRAME: single, LOCK_FREE: double}.get(mode),
        extra={"median_ms": float(np.median(gaps)), "worst_ms": float(gaps.max()), "viewer_frames_per_s": frames},
    )  # fmt: skip


class _Writer:
    """Steps a lattice and puts its positions into shared memory."""

    def __init__(self, body: Tissue, shared: Shared) -> None:
        self._body = body
        self._shared = shared
        self._slots = shared.slots()[:, : 3 * body.layout.slots]
        self._counts = shared.counts()
        # On cpu the state is host memory already; on cuda it comes through a pinned copy.
        self._staging: Any = None
        if body.device.is_cuda:
            self._staging = wp.zeros(3 * body.layout.slots, dtype=wp.float32, device="cpu", pinned=True)
        self._host = [self._staging.numpy()] * 2 if body.device.is_cuda else [p.numpy() for p in body.state.position]

    def tick_locked(self) -> None:
        with self._shared.holding():
            self._body.step()
            self._put(0)

    def tick_lock_free(self) -> None:
        self._body.step()
        number = int(self._counts[0]) + 1
        slot = number % SLOTS
        self._counts[1 + slot] = number
        self._put(slot)
        self._counts[1 + SLOTS + slot] = number
        self._counts[0] = number

    def _put(self, slot: int) -> None:
        body = self._body
        if self._staging is not None:
            wp.copy(self._staging, body.state.position[body.current])
            body.device.synchronize()
        np.copyto(self._slots[slot], self._host[body.current])
