"""The drill of cautery: a line drawn on an organ, to be coagulated without charring and without straying."""

from __future__ import annotations

import itertools
import math

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Stage
from viscera.heat.burn import Burn, burnt_areas
from viscera.heat.sums import FAN, finish_sum, make_sum
from viscera.scenarios._organ import MARGIN, Top
from viscera.skin import Skin, gutter
from viscera.units import SQUARE_MILLIMETRE
from viscera.view import Measure
from viscera.world.organ import Body, Organ
from viscera.world.system import Moment, System, Watch
from viscera.world.systems.ink import Ink

LINE_HALF_WIDTH = 0.8e-3
"""Of the ink [m]."""
NEAR = 3.0e-3
"""Burns further than this from the line are astray [m]."""
LINE_SPAN = 0.36
"""The line goes so far to either side of the middle, as a share of the organ's length."""

DONE = Measure("line_done", "Line done", "%", "Share of the drawn line that is coagulated.", digits=0)
ASTRAY = Measure("astray", "Astray", "mm²", "Coagulated further than 3 mm from the drawn line.", digits=0, grows=True)


def burn_drill(organ: Organ, burn: Burn, ink: Ink, line: NDArray[np.bool_], near: NDArray[np.bool_]) -> System:
    """`line` and `near` say of every texel of the skin whether it is on the line, and whether near enough to it."""
    skin = organ.need_skin()
    device = skin.device
    covered = skin.texels.numpy()
    subsets = [wp.array(covered[which[covered]], dtype=wp.int32, device=device.warp) for which in (line, near)]
    sums = [make_sum(len(subset), device) for subset in subsets]
    areas = [device.port(1, wp.vec2d) for _ in subsets]
    whole = float(skin.rest_area.numpy()[covered[line[covered]]].sum())
    ink.draw(_drawn(skin, line))
    burnt = Watch(organ.read_field("burn_level"))

    def record(stage: Stage) -> None:
        for subset, total, port in zip(subsets, sums, areas, strict=True):
            maps = [subset, skin.rest_area, burn.rates, burn.damage, burn.charring, total.levels[0]]
            stage.launch(burnt_areas, -(-len(subset) // FAN), maps)
            finish_sum(stage, total)
            stage.once(lambda port=port, total=total: wp.copy(port.array, total.total))
            stage.download(port)

    program = device.record(record, work=sum(len(subset) for subset in subsets))

    def count() -> None:
        program.run()
        device.synchronize()

    def frame(now: Moment) -> None:
        if burnt.changed():
            count()

    def measures() -> list[tuple[Measure, float]]:
        on_line, around = (float(port.host[0][0]) for port in areas)
        everywhere = float(burn.area.host[0][0])
        return [
            (DONE, 100.0 * on_line / whole if whole > 0.0 else 0.0),
            (ASTRAY, max(0.0, everywhere - around) / SQUARE_MILLIMETRE),
        ]

    return System(
        name="drill",
        frame=frame,
        reads=(f"{organ.name}.burn_level",),
        load=lambda saved: count(),
        measures=measures,
    )


def _drawn(skin: Skin, line: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The line in ink, with a gutter so that no seam shows."""
    outside, repeated = gutter(skin, 1)
    drawn = line.copy()
    drawn[outside] = line[repeated]
    picture = np.zeros((skin.height, skin.width, 4))
    picture.reshape(-1, 4)[drawn, 3] = 1.0
    return picture


def line_points(body: Body, seed: int, top: Top | None = None, count: int = 80) -> NDArray[np.float64]:
    """The line's way over the table, shape (count, 2) [m]: a wave whose place the seed chooses. On our own pad (no
    `top`) from left to right; on a user's organ where there is room for it."""
    rng = np.random.default_rng(seed)
    height, phase, level = rng.uniform(0.06, 0.12), rng.uniform(0.0, 2.0 * math.pi), rng.uniform(-0.12, 0.12)
    share = np.linspace(-LINE_SPAN, LINE_SPAN, count)
    wave = np.sin(2.0 * math.pi * share / LINE_SPAN + phase)
    if top is not None:
        start, end = top.longest_line
        way = end - start
        length = float(np.linalg.norm(way))
        # Half as wide a wave as on our pad: there may be room for no more.
        aside = min(0.5 * height * length, MARGIN) * np.array([-way[1], way[0]]) / max(length, 1e-9)
        return 0.5 * (start + end) + share[:, None] * way + wave[:, None] * aside
    low, high = body.mesh.bounds
    size = high - low
    x = 0.5 * (low[0] + high[0]) + share * size[0]
    y = 0.5 * (low[1] + high[1]) + (level + height * wave) * size[1]
    return np.stack([x, y], axis=1)


def marked(skin: Skin, points: NDArray[np.float64], top: Top | None = None) -> tuple[NDArray[np.bool_], ...]:
    """Of every texel: whether it is on the line through these points, and whether near it; on the upper side only."""
    texels = skin.texels.numpy()
    position = skin.position.numpy()[texels]
    up = skin.faces_up()[texels]
    if top is not None:
        up &= np.isin(skin.face.numpy()[texels], top.triangles)
    box = (position[:, :2] >= points.min(axis=0) - NEAR) & (position[:, :2] <= points.max(axis=0) + NEAR)
    close = np.flatnonzero(up & box.all(axis=1))
    there = position[close, :2]
    distance = np.full(len(texels), np.inf)
    for start, end in itertools.pairwise(points):
        # Few texels are near any one piece of the line.
        low, high = np.minimum(start, end) - NEAR, np.maximum(start, end) + NEAR
        here = np.flatnonzero(((there >= low) & (there <= high)).all(axis=1))
        way = end - start
        from_start = there[here] - start
        along = np.clip(from_start @ way / (way @ way), 0.0, 1.0)
        off = np.hypot(*(from_start - along[:, None] * way).T)
        distance[close[here]] = np.minimum(distance[close[here]], off)
    found = []
    for reach in (LINE_HALF_WIDTH, NEAR):
        chosen = np.zeros(skin.width * skin.height, dtype=np.bool_)
        chosen[texels[up & (distance <= reach)]] = True
        found.append(chosen)
    return found[0], found[1]
