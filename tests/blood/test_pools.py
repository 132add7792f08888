"""Pools: bowls of known shape fill to the level of their volume, overflow at the rim, follow tilt and tissue, are
sucked dry, and not a picolitre is lost."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warp as wp

from viscera import skin
from viscera.blood import film as films
from viscera.blood import picture, pools
from viscera.blood.drops.drops import Drops, make_drops, set_tools, step_drops
from viscera.blood.film.film import Film, make_film, step_film
from viscera.blood.film.params import FLUIDS, LITTLE, FilmParams
from viscera.blood.film.state import FATES, LEFT, POOLED
from viscera.blood.film.surface import refresh_surface
from viscera.blood.pools.pools import RUN_OFF, SUCKED, PoolParams
from viscera.blood.views import INTO_POOL, LANDED
from viscera.device import Device
from viscera.errors import InputError
from viscera.geometry.mesh import TriangleMesh
from viscera.timing import FRAME

MICROLITRE = 1e-9
Height = Callable[[np.ndarray, np.ndarray], np.ndarray]
CURVE = 0.02
"""z = r²/2·CURVE: volume up to h is π CURVE h² [m]."""


def bowl(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x**2 + y**2) / (2.0 * CURVE)


def two_bowls(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Middles 16 mm apart along x, a rim of 64/40 = 1.6 mm between them."""
    return np.minimum(bowl(x + 8e-3, y), bowl(x - 8e-3, y))


def field(height: Height, size: float = 0.04, count: int = 41) -> TriangleMesh:
    line = np.linspace(-0.5 * size, 0.5 * size, count)
    x, y = (axis.ravel() for axis in np.meshgrid(line, line, indexing="ij"))
    at = np.arange(count * count).reshape(count, count)
    a, b, c, d = (part.ravel() for part in (at[:-1, :-1], at[1:, :-1], at[1:, 1:], at[:-1, 1:]))
    triangles = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    return TriangleMesh(np.stack([x, y, height(x, y)], axis=1), triangles.astype(np.int32), "field")


class Scene:
    """A film, drops and pools over a field of heights."""

    def __init__(
        self, mesh: TriangleMesh | list[TriangleMesh], device: Device, capacity: int = 2000, **film: Any
    ) -> None:
        from viscera.blood.film.surface import make_surface

        self.device, params = device, FilmParams(**film)
        self.film: Film = make_film(make_surface(mesh, device), params, capacity)
        assert self.film.surface is not None
        self.drops: Drops = make_drops(self.film.surface, params, self.film.state, capacity=256)
        self.pools = pools.make(self.film, self.drops)
        self.steps = round(FRAME / params.dt)
        self.program = device.record(self.record, work=1)

    def record(self, stage: Any) -> None:
        assert self.film.surface is not None
        refresh_surface(stage, self.film.surface)
        step_drops(stage, self.drops)
        pools.step(stage, self.pools)
        for number in range(self.steps):
            step_film(stage, self.film, 0 if number else 4)

    def run(self, frames: int) -> Scene:
        self.program.run(frames)
        self.device.synchronize()
        pools.check(self.pools)
        return self

    @property
    def level(self) -> np.ndarray:
        """Of all columns, rows first; NaN where dry [m]."""
        view = self.pools.view
        found = view.level.numpy().reshape(view.rows, view.columns).astype(np.float64)
        return np.where(found > -1e3, found, np.nan)

    def deep(self, least: float = 0.3e-3) -> np.ndarray:
        """Levels of the columns that are deeper than that [m]."""
        view = self.pools.view
        ground = view.ground.numpy().reshape(view.rows, view.columns)
        level = self.level
        return level[np.nan_to_num(level - ground) > least]

    def middle(self) -> float:
        """x of the middle of what is deeper than 0.3 mm [m]: what clings to the ground elsewhere drains for minutes."""
        view = self.pools.view
        held = view.content.numpy().reshape(view.rows, view.columns, FLUIDS).sum(axis=2)
        held = np.where(held * LITTLE / view.side**2 > 0.3e-3, held, 0)
        x = view.left + view.side * (np.arange(view.columns) + 0.5)
        return float((held.sum(axis=0) @ x) / held.sum())

    def total(self) -> int:
        """Of film, queue, air, pool, and what has left [pL]."""
        state, n = self.film.state, films.count(self.film)
        queue = state.queue
        kept = int(state.volume.numpy()[:n].sum(dtype=np.int64))
        kept += int(queue.volume.numpy()[: int(queue.count.numpy()[0])].sum(dtype=np.int64))
        air = self.drops.state
        kept += int(air.volume.numpy()[: int(air.count.numpy()[0])].sum(dtype=np.int64))
        gone = self.drops.gone_volume.numpy()
        kept += int(gone.sum()) - int(gone[int(LANDED)]) - int(gone[int(INTO_POOL)])  # film and pool
        kept += int(self.pools.view.content.numpy().sum(dtype=np.int64)) + int(self.pools.gone.numpy().sum())
        # Let go is in the air, pooled in the pool; a particle about to go is still counted above.
        left = state.gone_volume.numpy()
        return kept + sum(int(left[k]) for k in range(FATES) if k not in (0, 4, int(POOLED)))


@pytest.mark.parametrize("microlitres", [100.0, 400.0])
def test_a_bowl_fills_to_the_level_of_its_volume(device: Device, microlitres: float) -> None:
    """h = √(V/π CURVE), 1.3 and 2.5 mm; columns are 1.5 mm wide, the bowl 14 and 20 mm: within 3 %. Level to 1 %."""
    scene = Scene(field(bowl), device)
    volume = microlitres * MICROLITRE
    for place in ((0.0, 0.0), (0.003, 0.004), (-0.002, 0.003), (0.004, -0.004)):
        pools.pour(scene.pools, place, 0.25 * volume)
    scene.run(180)
    want = math.sqrt(volume / (math.pi * CURVE))
    assert scene.deep().mean() == pytest.approx(want, rel=0.03)
    assert np.ptp(scene.deep()) < 0.01 * want
    assert pools.depth(scene.pools, [(0.0, 0.0)])[0] == pytest.approx(want, rel=0.05)


def test_two_bowls_overflow_at_their_rim(device: Device) -> None:
    """What is poured into one stands at the rim's 1.6 mm, and so much more as creeps over it, a layer of less than
    `PoolParams.thin` (a thin one takes minutes: its speed falls with its depth squared); the rest is in the other.
    A bowl holds π CURVE 1.6² mm³ = 161 µL; 220 are poured."""
    scene = Scene(field(two_bowls, count=61), device)
    pools.pour(scene.pools, (-0.008, 0.0), 220.0 * MICROLITRE)
    scene.run(400)
    view = scene.pools.view
    middle = view.left + view.side * (np.arange(view.columns) + 0.5)
    ground = view.ground.numpy().reshape(view.rows, view.columns)
    deep = np.nan_to_num(scene.level - ground) > 0.3e-3
    first = scene.level[:, middle < -0.003][deep[:, middle < -0.003]]
    other = scene.level[:, middle > 0.003][deep[:, middle > 0.003]]
    assert 1.6e-3 < first.mean() < 1.6e-3 + PoolParams().thin
    left = 220.0 - math.pi * CURVE * first.mean() ** 2 / MICROLITRE
    assert other.mean() == pytest.approx(math.sqrt(left * MICROLITRE / (math.pi * CURVE)), rel=0.1)
    assert other.mean() < 1.2e-3


def test_what_overflows_the_sheet_is_on_the_drape_and_counted(device: Device) -> None:
    """With a hill instead of a bowl nothing stays but what clings: no column may keep as much as makes a particle of
    the film, a quarter of its volume (22 µm deep), since there is no hollow. What is thinner drains as a layer does: on
    this hill √(3ν CURVE/4gt) = 40 µm are left after 3.2 s (H. Jeffreys, Math. Proc. Camb. Phil. Soc. 26 (1930) 204,
    for a slope that grows with the way), so the rest is still there, and no more than that."""
    scene = Scene(field(lambda x, y: -bowl(x, y)), device)
    pools.pour(scene.pools, (0.002, 0.001), 300.0 * MICROLITRE)
    before = scene.total()
    scene.run(200)
    assert scene.total() == before
    held = scene.pools.view.content.numpy().reshape(-1, FLUIDS).sum(axis=1)
    assert held.max() < scene.film.params.little_volume // 4
    clings = pools.volume(scene.pools) + films.volume(scene.film)
    gone = LITTLE * int(scene.pools.gone.numpy()[RUN_OFF])
    left = LITTLE * int(scene.film.state.gone_volume.numpy()[int(LEFT)])
    assert gone + left + clings > 299.0 * MICROLITRE  # the rest, if any, is in the air
    assert clings < np.count_nonzero(held) * LITTLE * (scene.film.params.little_volume // 4)


def test_film_runs_into_a_hollow_and_stands_there(device: Device) -> None:
    """600 particles of 0.2 µL on the walls of a bowl become 120 µL of pool: a film alone would lie 0.24 mm deep over
    500 mm². Its level is that of what has run in, and every picolitre is somewhere after every frame."""
    scene = Scene(field(bowl), device)
    rng = np.random.default_rng(1)
    turn, far = rng.uniform(0.0, 2.0 * math.pi, 600), 0.016 * np.sqrt(rng.uniform(0.0, 1.0, 600))
    x, y = far * np.cos(turn), far * np.sin(turn)
    films.add(scene.film, np.stack([x, y, bowl(x, y)], axis=1), "blood")
    before = scene.total()
    assert before == 600 * scene.film.params.little_volume
    for _ in range(10):
        scene.run(25)
        assert scene.total() == before
    stands = pools.volume(scene.pools)
    assert stands > 70.0 * MICROLITRE
    want = math.sqrt(stands / (math.pi * CURVE))
    assert want > 1.0e-3
    assert scene.deep().mean() == pytest.approx(want, rel=0.05)
    assert np.ptp(scene.deep()) < 0.05 * want


def test_a_pool_finds_the_new_lowest_place_when_it_is_tilted(device: Device) -> None:
    """Gravity turned by 8°: a bowl of curvature 1/CURVE has its lowest place CURVE tan 8° = 2.8 mm aside."""
    tilt = math.radians(8.0)
    gravity = (9.81 * math.sin(tilt), 0.0, -9.81 * math.cos(tilt))
    scene = Scene(field(bowl), device, gravity=gravity)
    pools.pour(scene.pools, (0.0, 0.0), 150.0 * MICROLITRE)
    scene.run(200)
    assert scene.middle() == pytest.approx(CURVE * math.tan(tilt), rel=0.03)
    view = scene.pools.view
    middle = view.left + view.side * (np.arange(view.columns) + 0.5)
    # Its surface stands square to gravity.
    ground = view.ground.numpy().reshape(view.rows, view.columns)
    deep = np.nan_to_num(scene.level - ground) > 0.3e-3
    columns = np.broadcast_to(middle, deep.shape)[deep]
    slope = np.polyfit(columns, scene.level[deep], 1)[0]
    assert slope == pytest.approx(math.tan(tilt), rel=0.03)


def test_a_pool_follows_tissue_that_is_pressed_in(device: Device) -> None:
    """The bowl's middle wanders 5 mm to the right while it is full: so does the pool."""
    scene = Scene(field(bowl), device)
    surface = scene.film.surface
    assert surface is not None
    pools.pour(scene.pools, (0.0, 0.0), 100.0 * MICROLITRE)
    scene.run(60)
    before = scene.total()
    at = surface.mesh(0).vertices.copy()
    for step in range(20):
        at[:, 2] = bowl(at[:, 0] - 0.25e-3 * (step + 1), at[:, 1])
        surface.vertices.assign(at)
        scene.run(4)
    scene.run(100)
    assert scene.middle() == pytest.approx(5.0e-3, abs=0.2e-3)
    assert scene.total() == before


def test_two_organs_share_a_pool_across_their_gap(device: Device) -> None:
    """Two slopes that meet in a gutter, each its own mesh: 0.5 mm apart and overlapping below. What is poured onto the
    left one stands on both, at one level."""
    left = field(lambda x, y: np.maximum(-0.5 * (x - 0.0005), 0.0) + 40.0 * y**2, 0.04)
    right = field(lambda x, y: np.maximum(0.5 * (x + 0.0005), 0.0) + 40.0 * y**2, 0.04)
    keep = [m.vertices[m.triangles].mean(axis=1)[:, 0] * side < 0.001 for m, side in ((left, 1.0), (right, -1.0))]
    parts = [TriangleMesh(m.vertices, m.triangles[k], m.name) for m, k in zip((left, right), keep, strict=True)]
    scene = Scene(parts, device)
    pools.pour(scene.pools, (-0.004, 0.0), 120.0 * MICROLITRE)
    scene.run(200)
    view = scene.pools.view
    middle = view.left + view.side * (np.arange(view.columns) + 0.5)
    ground = view.ground.numpy().reshape(view.rows, view.columns)
    deep = np.nan_to_num(scene.level - ground) > 0.3e-3
    sides = [scene.level[:, chosen][deep[:, chosen]] for chosen in (middle < -0.001, middle > 0.001)]
    assert min(len(side) for side in sides) > 5
    assert sides[0].mean() == pytest.approx(sides[1].mean(), rel=0.01)
    face = view.face.numpy().reshape(view.rows, view.columns)[deep]
    assert (face < len(parts[0].triangles)).any()
    assert (face >= len(parts[0].triangles)).any()


def test_suction_from_above_takes_a_pool_at_its_rate(device: Device) -> None:
    """200 µL, tip at the surface, 0.5 mL/s: in 0.16 s exactly 80 µL but for what a ring holds. Then all but what clings
    to the walls: a layer that drains is √(ν L/(g sin θ t)) thick after t, 60 µm after 2 s at 6 mm, where the slope is
    0.3 (H. Jeffreys, Math. Proc. Camb. Phil. Soc. 26 (1930) 204); the pool was 17 mm wide."""
    scene = Scene(field(bowl), device)
    pools.pour(scene.pools, (0.0, 0.0), 200.0 * MICROLITRE)
    scene.run(60)
    before = scene.total()
    level = float(np.nanmean(scene.deep()))
    set_tools(scene.drops, suction=(0.0, 0.0, level), reach=4e-3, suction_rate=0.5e-6)
    scene.run(10)
    taken = LITTLE * int(scene.pools.gone.numpy()[SUCKED])
    assert taken == pytest.approx(80.0 * MICROLITRE, abs=2.0 * MICROLITRE)
    assert scene.total() == before
    set_tools(scene.drops, suction=(0.0, 0.0, 1e-3), reach=4e-3, suction_rate=5e-6)
    scene.run(120)
    clings = math.sqrt(3.3e-6 * 6e-3 / (9.81 * 0.3 * 120 * FRAME))
    assert pools.volume(scene.pools) < clings * math.pi * 8.4e-3**2
    assert np.nanmax(pools.depth(scene.pools, [(0.0, 0.0), (0.003, 0.0), (0.0, -0.003)])) < 0.1e-3
    assert scene.total() == before


def throw(scene: Scene, position: Any, velocity: Any) -> int:
    """One drop of a particle's volume; its volume [pL]."""
    state, volume = scene.drops.state, scene.film.params.little_volume
    for array, value in ((state.position, position), (state.velocity, velocity)):
        full = np.zeros((state.capacity, 3), dtype=np.float32)
        full[0] = value
        array.assign(full)
    state.volume.fill_(volume)
    state.fluid.fill_(wp.vec4(*scene.film.params.pure("saline")))
    state.fate.zero_()
    state.late.zero_()
    state.count.fill_(1)
    return volume


def test_a_drop_meets_the_level_of_a_pool_and_not_the_ground_under_it(device: Device) -> None:
    """400 µL stand 2.5 mm deep. A drop of saline that comes in at 45° would hit the ground 2.4 mm farther along, two
    columns on: it is in the column where it crossed the level. Faster than Mundo's number it splashes there, and no
    piece begins below the level. Every picolitre is somewhere."""
    scene = Scene(field(bowl), device)
    pools.pour(scene.pools, (0.0, 0.0), 400.0 * MICROLITRE)
    scene.run(180)
    view, level = scene.pools.view, float(scene.deep().mean())
    before = scene.total()
    throw(scene, (-0.005, 0.0, level + 0.005), (0.7, 0.0, -0.7))
    program = device.record(lambda stage: step_drops(stage, scene.drops), work=1)
    program.run()
    device.synchronize()
    saline = view.content.numpy().reshape(view.rows, view.columns, FLUIDS)[:, :, scene.film.params.fluid("saline")]
    (row,), (column,) = np.nonzero(saline)
    assert saline[row, column] == scene.film.params.little_volume
    time = 0.5 * (math.sqrt(0.7**2 + 4.0 * 0.5 * 9.81 * 0.005) - 0.7) / (0.5 * 9.81)
    assert view.left + (column + 0.5) * view.side == pytest.approx(-0.005 + 0.7 * time, abs=0.51 * view.side)
    assert scene.total() == before + scene.film.params.little_volume
    throw(scene, (0.0, 0.0, level + 0.02), (0.0, 0.0, -6.0))
    program.run()
    device.synchronize()
    pieces = scene.drops.state.position.numpy()[: int(scene.drops.state.count.numpy()[0])]
    assert len(pieces) == 4
    assert pieces[:, 2].min() >= level


def reference_step(ground: np.ndarray, volume: np.ndarray, right: np.ndarray, back: np.ndarray, side: float, dt: float):
    """One step of the pipes, float64, columns (rows, columns), volumes and flows [pL]; as `pools` states it."""
    damping, nu = PoolParams().damping, 3.5e-3 / 1060.0
    deepest = (side / (1.5 * dt)) ** 2 / 9.81
    depth = volume * LITTLE / side**2

    def pushed(b: tuple, d: tuple, before: np.ndarray) -> np.ndarray:
        sill = np.maximum(*b)
        pull = 9.81 * (b[0] + d[0] - b[1] - d[1]) / side
        over = np.where(pull >= 0.0, b[0] + d[0], b[1] + d[1]) - sill
        safe = np.maximum(over, 1e-12)
        gained = dt**2 * side * np.minimum(safe, deepest) * pull / LITTLE
        return np.where(over > 0.0, (before + gained) / (1.0 + dt * (damping + 3.0 * nu / safe**2)), 0.0)

    to_right, to_back = np.zeros_like(right, dtype=float), np.zeros_like(back, dtype=float)
    to_right[:, :-1] = pushed((ground[:, :-1], ground[:, 1:]), (depth[:, :-1], depth[:, 1:]), right[:, :-1])
    to_back[:-1] = pushed((ground[:-1], ground[1:]), (depth[:-1], depth[1:]), back[:-1])
    away = np.maximum(to_right, 0.0) + np.maximum(to_back, 0.0)
    away[:, 1:] += np.maximum(-to_right[:, :-1], 0.0)
    away[1:] += np.maximum(-to_back[:-1], 0.0)
    share = np.minimum(1.0, 0.999999 * np.maximum(volume - 64, 0) / np.maximum(away, 1e-6))
    to_right[:, :-1] *= np.where(to_right[:, :-1] > 0.0, share[:, :-1], share[:, 1:])
    to_back[:-1] *= np.where(to_back[:-1] > 0.0, share[:-1], share[1:])
    to_right, to_back = np.trunc(to_right), np.trunc(to_back)
    volume = volume - to_right - to_back
    volume[:, 1:] += to_right[:, :-1]
    volume[1:] += to_back[:-1]
    return volume, to_right, to_back


def test_the_columns_equal_the_reference(device: Device) -> None:
    """Two bowls with random fluid for one frame. float32 in a flow of up to 10⁶ pL: 1 in 10⁵, over four steps."""
    scene = Scene(field(two_bowls, count=61), device)
    view, rng = scene.pools.view, np.random.default_rng(3)
    ground = view.ground.numpy().reshape(view.rows, view.columns).astype(np.float64)
    x = view.left + view.side * (np.arange(view.columns) + 0.5)
    y = view.front + view.side * (np.arange(view.rows) + 0.5)
    # Deep enough that none of it becomes film, and away from the rim.
    inside = (np.abs(x)[None, :] < 0.012) & (np.abs(y)[:, None] < 0.008)
    volume = np.where(inside, rng.integers(1_500_000, 4_000_000, inside.shape), 0)
    content = np.zeros((view.rows * view.columns, FLUIDS), dtype=np.int32)
    content[:, 0] = volume.ravel()
    view.content.assign(content.ravel())
    view.wet.fill_(1)
    flows = [np.zeros_like(ground), np.zeros_like(ground)]
    want = volume.astype(np.float64)
    for _ in range(4):
        want, *flows = reference_step(ground, want, *flows, side=view.side, dt=FRAME / 4)
    scene.run(1)
    found = view.content.numpy().reshape(view.rows, view.columns, FLUIDS).sum(axis=2)
    assert int(found.sum()) == int(volume.sum())
    assert np.abs(found - want).max() < 1e-4 * volume.max()
    assert np.abs(found - volume).max() > 0.05 * volume.max()


def test_same_inputs_same_pools(device: Device) -> None:
    results = []
    for _ in range(2):
        scene = Scene(field(two_bowls), device)
        points = np.random.default_rng(2).uniform(-0.012, 0.012, (300, 2))
        films.add(scene.film, np.concatenate([points, two_bowls(*points.T)[:, None]], axis=1), "blood")
        pools.pour(scene.pools, (0.008, 0.0), 50.0 * MICROLITRE, "saline")
        scene.run(40)
        saved = pools.save(scene.pools)
        scene.run(10)
        results.append([saved["content"], scene.pools.view.content.numpy().copy()])
        pools.load(scene.pools, saved)
        assert (scene.pools.view.content.numpy() == saved["content"]).all()
    assert all((a == b).all() for a, b in zip(*results, strict=True))


def test_bad_numbers_are_refused(device: Device) -> None:
    scene = Scene(field(bowl, count=9), device)
    for wrong in (
        lambda: PoolParams(side=0.0),
        lambda: PoolParams(thin=-1e-3),
        lambda: pools.set(scene.pools, PoolParams(side=1e-3)),
        lambda: pools.pour(scene.pools, (1.0, 0.0), 1e-9),
        lambda: pools.pour(scene.pools, (0.0, 0.0), -1e-9),
    ):
        with pytest.raises(InputError):
            wrong()


def test_a_pool_hides_what_lies_under_it_by_its_depth(device: Device) -> None:
    """The picture's thickness over the bowl's lowest texels is the pool's depth, and what the page lets through of the
    light from below follows Beer and Lambert with it: ln T goes with the depth, a vessel is gone (less than one step of
    a screen's 255) under 400 µL, 2.5 mm, and still seen under 1 µL of film."""
    shader = (Path(__file__).parents[2] / "web/src/look/skin_shader.ts").read_text()
    found = re.search(r"BLOOD = vec3\(([^)]*)\)", shader), re.search(r"SCATTER = ([0-9.]+)", shader)
    assert found[0] is not None
    assert found[1] is not None
    absorbs = np.array([float(value) for value in found[0].group(1).split(",")]) + float(found[1].group(1))
    surface = skin.make(field(bowl), width=128, device=device)
    blood = films.make(surface, FilmParams(), capacity=100)
    spray = make_drops(blood.surface, blood.params, blood.state, capacity=16) if blood.surface else None
    assert spray is not None
    deep = pools.make(blood, spray)
    image = picture.make(blood, pools=deep)

    def frame(stage: Any) -> None:
        step_drops(stage, spray)
        pools.step(stage, deep)
        picture.step(stage, image)

    program, depths, shown = device.record(frame, work=1), [], []
    lowest = np.argsort(np.linalg.norm(surface.position.numpy(), axis=1) + 1e3 * (surface.face.numpy() < 0))[:4]
    for more in (20.0, 80.0, 300.0):
        pools.pour(deep, (0.0, 0.0), more * MICROLITRE)
        program.run(150)
        device.synchronize()
        depths.append(float(pools.depth(deep, [(0.0, 0.0)])[0]))
        shown.append(float(image.kept.numpy()[lowest, 0].mean()))
    assert shown == pytest.approx(depths, rel=0.05)
    through = [np.exp(-absorbs * 2.0 * depth) for depth in shown]
    assert np.log(through[2]) / np.log(through[0]) == pytest.approx(depths[2] / depths[0], rel=0.1)
    assert (through[2] < 1.0 / 255.0).all()
    assert np.exp(-absorbs[0] * 2.0 * 12e-6) > 0.9
