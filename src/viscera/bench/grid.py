"""Flows on a grid: what a step costs, from the document's 64² to 1024² and from 32³ to 384³.

A step carries velocity (MacCormack, the default; rows `plain` semi-Lagrangian as the document has it), finds the
pressure with four cycles of multigrid, and carries one conservative substance. A bar moves in it, and solids follow it
in every step, in the rows `stirred`, of which the goal of a large GPU is one; `gauss_seidel` are the document's 20
sweeps. `divergence` is the L2 norm after projection over that before.

`floor_ratio` is time over the time in which the state could be read and written once, at the bandwidth of a large
copy: 24 bytes of velocity, 8 of pressure, 8 of the substance and 12 of faces, 52 for each cell.

`step and picture` draws 512² pixels of the substance after each step, as the document draws its flow.

The document (Andersson §4.3) reports 60 frames per second at 64² with drawing, on a Pentium III with 933 MHz.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import warp as wp

from viscera import grid
from viscera.bench.registry import Row, benchmark, median_ms, timed
from viscera.device import Device, Port, Stage
from viscera.grid import Grid, GridParams, Substance
from viscera.grid.shape import GridShape

wp.set_module_options({"enable_backward": False})

NAME = "grid"
DOCUMENT = {(64, 64, 1): 60.0}
"""Steps per second."""
GOALS_CPU = {(64, 64, 1): 100.0, (128, 128, 1): 600.0, (256, 256, 1): 150.0, (64, 64, 64): 20.0}
GOALS_CUDA = {(256, 256, 256): 150.0}
"""Steps per second; two cores, or a large GPU."""
CYCLES = 4
"""Enough for a divergence of 1e-4 beside a bar."""
STEP_BYTES = 52
"""Per cell; see above."""
PICTURE = 512
"""Pixels along a side of the picture that is drawn of 64²."""
COPY_BYTES = 128 * 2**20
FLAT = (64, 128, 256, 512, 1024)
DEEP = {False: (32, 48, 64, 96, 128), True: (32, 64, 128, 192, 256, 384)}
"""Cells along a side, on cpu and on cuda."""


def headline(device: Device) -> Row:
    return _row(device, (64, 64, 64), "carried and pressed", copy_rate(device), repeats=5)


@benchmark(NAME, title="Flows on a grid: one step", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    rate = copy_rate(device)
    sizes = [(side, side, 1) for side in (FLAT[:3] if quick else FLAT)]
    sizes += [(128, 128, 4)]
    sizes += [(side, side, side) for side in (DEEP[device.is_cuda][:3] if quick else DEEP[device.is_cuda])]
    for cells in sizes:
        yield _row(device, cells, "carried and pressed", rate)
        yield _row(device, cells, "stirred", rate, stirred=True)
        if cells == (64, 64, 1):
            yield _row(device, cells, "step and picture", rate, transport="semi_lagrangian", pictured=True)
        if cells in ((64, 64, 1), (256, 256, 1), (64, 64, 64)):
            yield _row(device, cells, "plain", rate, transport="semi_lagrangian")
            yield _row(device, cells, "gauss_seidel", rate, solver="gauss_seidel")


def whirl(device: Device, cells: tuple[int, int, int], **numbers: Any) -> Grid:
    """A swirl about the middle of the box that takes a blob along, a cell and a half in a step where it is fastest."""
    side = cells[0]
    ink, numbers = (Substance("ink", unit=1e-9),), {"cycles": CYCLES} | numbers
    params = GridParams(cells, 1.0 / side, dt=1.5 / side, substances=ink, **numbers)
    flow = grid.make(params, device=device)
    x, y, z = cells
    face, middle = np.arange(side + 1) / side, (np.arange(side) + 0.5) / side
    u = np.sin(np.pi * face) * np.cos(np.pi * middle)[:, None]
    v = -np.cos(np.pi * middle) * np.sin(np.pi * face)[:, None]
    grid.set_velocity(flow, np.broadcast_to(u, (z, y, x + 1)), np.broadcast_to(v, (z, y + 1, x)))
    blob = np.exp(-(((middle - 0.3) / 0.1) ** 2) - ((middle[:, None] - 0.5) / 0.1) ** 2)
    grid.fill(flow, "ink", np.broadcast_to(np.rint(1e6 * blob).astype(np.int64), (z, y, x)))
    return flow


def _row(
    device: Device,
    cells: tuple[int, int, int],
    case: str,
    rate: float,
    *,
    stirred: bool = False,
    pictured: bool = False,
    repeats: int = 0,
    **numbers: Any,
) -> Row:
    flow = whirl(device, cells, **numbers)
    count = int(np.prod(cells))
    follow = device.record(lambda stage: grid.follow(stage, flow), work=grid.work(flow))
    step = device.record(lambda stage: grid.step(stage, flow), work=grid.work(flow))
    turn = np.zeros(1)
    picture = device.port(PICTURE * PICTURE, wp.uint8)
    draw = device.record(lambda stage: _draw(stage, flow, picture))

    def stir() -> None:
        if stirred:
            turn[0] += 0.02
            place = np.array([0.5 + 0.2 * np.cos(turn[0]), 0.5 + 0.2 * np.sin(turn[0]), 0.3 * cells[2] / cells[0]])
            speed = 0.2 * 0.02 / flow.params.dt * np.array([-np.sin(turn[0]), np.cos(turn[0]), 0.0])
            ends = [[place, place + np.array([0.0, 0.0, 2.0])]]
            grid.set_bars(flow, ends, [0.06], [[speed, speed]])
            follow.run()
        step.run()
        if pictured:
            draw.run()

    follow.run()
    repeats = repeats or int(np.clip(4e7 / count / (1 if not device.is_cuda else 0.02), 5, 60))
    ms = median_ms(stir, device, repeats)
    before, after = grid.divergence(flow)
    goal = (
        None
        if case not in (("stirred",) if device.is_cuda else ("carried and pressed", "step and picture"))
        else (GOALS_CUDA if device.is_cuda else GOALS_CPU).get(cells)
    )
    extra = {"divergence": after / before if before > 0.0 else 0.0, "missing": grid.missing(flow, "ink")}
    name = " × ".join(str(side) for side in cells)
    floor = count * STEP_BYTES / rate
    return timed(
        NAME, f"{name}, {case}", count, device, ms,
        document=DOCUMENT.get(cells) if case in ("plain", "step and picture") else None, goal=goal,
        floor_ratio=1e-3 * ms / floor,
        extra=extra,
    )  # fmt: skip


@wp.kernel
def draw_ink(
    first: int,
    # params
    shape: GridShape,
    side: int,
    full: float,
    # in
    value: wp.array[wp.float32],
    # out
    picture_out: wp.array[wp.uint8],
):
    """A substance as grey, smooth between the middles of cells, one layer, `side` pixels along each side."""
    pixel = first + wp.tid()
    x = wp.clamp((float(pixel % side) + 0.5) / float(side) * float(shape.nx) - 0.5, 0.0, float(shape.nx) - 1.001)
    y = wp.clamp((float(pixel // side) + 0.5) / float(side) * float(shape.ny) - 0.5, 0.0, float(shape.ny) - 1.001)
    c = shape.layer + (int(y) + 1) * shape.row + int(x) + 1
    fx = x - wp.floor(x)
    low = wp.lerp(value[c], value[c + 1], fx)
    high = wp.lerp(value[c + shape.row], value[c + shape.row + 1], fx)
    grey = 255.0 * wp.lerp(low, high, y - wp.floor(y)) / full
    picture_out[pixel] = wp.uint8(wp.clamp(grey, 0.0, 255.0))


def _draw(stage: Stage, flow: Grid, picture: Port) -> None:
    """The picture of a step, on the host."""
    full = 1e6 * flow.carried["ink"].substance.unit / flow.params.cell_volume
    args = [flow.levels[0].shape, PICTURE, full, flow.carried["ink"].value, picture.array]
    stage.launch(draw_ink, PICTURE * PICTURE, args)
    stage.download(picture)


def copy_rate(device: Device) -> float:
    """Bytes per second of a large copy, read and written."""
    a, b = (wp.zeros(COPY_BYTES // 4, dtype=wp.float32, device=device.warp) for _ in range(2))
    ms = median_ms(lambda: wp.copy(b, a), device, 7)
    return 2.0 * COPY_BYTES / (1e-3 * ms)
