"""Stains: drops that hit cloth, instruments and gauze stay there, whole; cloth wicks, gauze wipes, nothing is painted
twice."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import warp as wp

from viscera import film, picture, skin
from viscera.blood import stains
from viscera.blood.constants import BLOOD_DENSITY, SURFACE_TENSION
from viscera.blood.drops.around import TOOL_COLUMNS, TOOL_ROWS
from viscera.blood.drops.drops import DropParams, make_drops, step_drops
from viscera.blood.film.params import LITTLE, FilmParams
from viscera.blood.film.state import allocate_state
from viscera.blood.film.surface import make_surface
from viscera.blood.picture.image import step_film_image
from viscera.blood.stains import Solid, StainParams, Stains
from viscera.blood.stains.stains import step_stains, wipe_picture
from viscera.blood.views import LOST, ON_CLOTH, ON_TOOL
from viscera.device import Device
from viscera.errors import InputError
from viscera.geometry.mesh import TriangleMesh

FILM = FilmParams()
VOLUME = FILM.little_volume
DIAMETER = (6.0 * FILM.particle_volume / math.pi) ** (1.0 / 3.0)
PLATE = np.array([[-0.01, -0.01, 0.02], [0.01, -0.01, 0.02], [0.01, 0.01, 0.02], [-0.01, 0.01, 0.02]])
SWAB = 4e-3
HOLDS = 3e-6


class Scene:
    """A plate of 2 cm that floats 2 cm over a cloth; a steel rod and a swab, if they are put somewhere."""

    def __init__(self, device: Device, **params: Any) -> None:
        mesh = TriangleMesh(PLATE, np.array([[0, 1, 2], [0, 2, 3]], dtype=np.int32), "plate")
        state = allocate_state(4, 4, device)
        surface = make_surface(mesh, device)
        self.drops = make_drops(surface, FILM, state, DropParams(joins=False, drag=0.0), capacity=4096)
        solids = [Solid(1, 2.5e-3), Solid(1, SWAB, SWAB, HOLDS)]
        self.stains: Stains = stains.make(self.drops, StainParams(**params), solids=solids, floor=0.0)
        self.device = device
        self.program = device.record(self.record, work=4096)

    def record(self, stage: Any) -> None:
        step_drops(stage, self.drops)
        step_stains(stage, self.stains)

    def bar(self, number: int, start: Any, end: Any, tool: int = 0, moved: Any = (0.0, 0.0, 0.0)) -> None:
        """Puts bar `number`; the tool's frame is the world's, moved to `start`."""
        one = self.stains.bars.host[number]
        one["start"], one["end"], one["moved"], one["turn"] = start, end, moved, (0.0, 0.0, 0.0, 1.0)
        one["tool"], one["gauze"] = tool, tool
        one["radius"] = SWAB if tool else 2.5e-3
        one["low"], one["high"] = 0.0, float(end[2] - start[2])
        self.stains.bar_count.host[0] = number + 1

    def throw(self, position: Any, velocity: Any, volume: int = VOLUME) -> None:
        state = self.drops.state
        where, how = np.atleast_2d(position), np.atleast_2d(velocity)
        for array, values in ((state.position, where), (state.velocity, how)):
            full = np.zeros((state.capacity, 3), dtype=np.float32)
            full[: len(where)] = values
            array.assign(full)
        state.volume.fill_(volume)
        state.fluid.fill_(wp.vec4(1.0, 0.0, 0.0, 0.0))
        state.fate.zero_()
        state.late.zero_()
        state.count.fill_(len(where))

    def run(self, steps: int = 1) -> None:
        self.program.run(steps)
        self.device.synchronize()
        stains.check(self.stains)

    def cloth(self) -> np.ndarray:
        """[pL], rows first."""
        view = self.stains.view.cloth
        return view.cells.content.numpy().reshape(view.rows, view.columns)

    def total(self) -> int:
        """On cloth and instruments, in gauze, in the air, and lost [pL]."""
        kept = sum(round(volume / LITTLE) for volume in stains.volume(self.stains))
        air = self.drops.state
        kept += int(air.volume.numpy()[: int(air.count.numpy()[0])].sum(dtype=np.int64))
        gone = self.drops.gone_volume.numpy()
        return kept + int(gone.sum()) - int(gone[int(ON_CLOTH)]) - int(gone[int(ON_TOOL)])


@pytest.fixture(scope="module")
def made(device: Device) -> Scene:
    return Scene(device)


@pytest.fixture
def scene(made: Scene) -> Scene:
    """Clean, without instruments."""
    clean = {name: np.zeros_like(array) for name, array in stains.save(made.stains).items()}
    stains.load(made.stains, clean)
    made.drops.gone_count.zero_()
    made.drops.gone_volume.zero_()
    made.drops.state.count.zero_()
    return made


def extent(scene: Scene) -> tuple[np.ndarray, np.ndarray]:
    """Middle, and length and width of what is stained: of the second moments of an ellipse of equal weight [m]."""
    view, held = scene.stains.view.cloth, scene.cloth().astype(np.float64)
    y, x = np.nonzero(held)
    at = np.stack([view.left + (x + 0.5) * view.side, view.front + (y + 0.5) * view.side], axis=1)
    middle = at.mean(axis=0)
    # A cell's own size has a second moment too.
    spread = np.linalg.eigvalsh(np.cov((at - middle).T, bias=True) + np.eye(2) * view.side**2 / 12.0)
    return middle, 4.0 * np.sqrt(spread[::-1])


@pytest.mark.parametrize("slant", [90.0, 40.0])
def test_a_drop_stains_cloth_where_it_hits_as_wide_and_long_as_the_laws_say(scene: Scene, slant: float) -> None:
    """β = We^¼ wide (Clanet), longer by 1/sin of the angle (Balthazard); cells of 1 mm under a drop of 8 µL, 20 mm
    wide: 5 %. Every picolitre is in it."""
    angle, speed, volume = math.radians(slant), 3.0, 40 * VOLUME
    down = np.array([math.cos(angle), 0.0, -math.sin(angle)]) * speed
    scene.throw((0.05, 0.03, 0.01), down, volume)
    scene.run()
    time = (-down[2] - math.sqrt(down[2] ** 2 + 2 * 9.81 * 0.01)) / -9.81
    across = math.sqrt(down[2] ** 2 + 2.0 * 9.81 * 0.01)
    size = DIAMETER * 40.0 ** (1.0 / 3.0)
    wide = size * (BLOOD_DENSITY * across**2 * size / SURFACE_TENSION) ** 0.25
    middle, found = extent(scene)
    assert middle == pytest.approx([0.05 + down[0] * time, 0.03], abs=0.5e-3)
    assert found[1] == pytest.approx(wide, rel=0.05)
    assert found[0] == pytest.approx(wide * math.hypot(down[0], across) / across, rel=0.05)
    assert int(scene.cloth().sum()) == volume
    assert scene.total() == volume


def test_what_the_organ_hides_from_above_is_not_stained(scene: Scene) -> None:
    """Drops over the plate stay on it, drops beside it stain the cloth, drops beside the cloth are lost."""
    scene.throw([[0.0, 0.0, 0.03], [0.05, 0.0, 0.03], [0.16, 0.0, 0.03]], [[0, 0, -1.0], [0, 0, -1.0], [3.0, 0, -1.0]])
    scene.run(12)
    gone = scene.drops.gone_count.numpy()
    assert (gone[int(ON_CLOTH)], gone[int(LOST)]) == (1, 1)
    assert stains.thickness(scene.stains, [(0.0, 0.0), (0.05, 0.0)])[0] == 0.0
    assert stains.thickness(scene.stains, [(0.05, 0.0)])[0] > 0.0
    assert scene.total() == 3 * VOLUME


def test_cloth_wicks_until_it_holds_what_it_has(scene: Scene) -> None:
    """20 µL at one place are 100 mm² of 0.2 mm: they spread until neighbours differ by a hundredth of that at most, so
    the middle of a disc of 6 cells in radius holds 6 % more; exact at every step. Then nothing is painted any more."""
    cells = scene.stains.view.cloth.cells
    start = np.zeros(len(cells.content), dtype=np.int32)
    start[scene.cloth().shape[1] * 100 + 200] = 20_000_000
    for array in (cells.content, cells.red):
        array.assign(start)
    dirty = cells.dirty.numpy()
    dirty[:] = 1
    cells.dirty.assign(dirty)
    for _ in range(20):
        scene.run(30)
        assert int(scene.cloth().sum()) == 20_000_000
        assert (cells.red.numpy() == cells.content.numpy()).all()
    holds = 0.2e-3 * 1e-6 / LITTLE
    assert scene.cloth().max() < 1.07 * holds
    assert np.count_nonzero(scene.cloth()) > 92
    wet = np.maximum(scene.cloth(), holds)
    assert max(np.abs(np.diff(wet, axis=0)).max(), np.abs(np.diff(wet, axis=1)).max()) <= 0.01 * holds
    painted = stains.painted(scene.stains)
    while True:
        scene.run(50)
        if stains.painted(scene.stains) == painted:
            break
        painted = stains.painted(scene.stains)
    assert int(scene.stains.busy.host[0]) == 0


def meets(start: np.ndarray, end: np.ndarray, a: np.ndarray, b: np.ndarray, radius: float) -> np.ndarray:
    """Where segments first come within `radius` of an axis, as parts of their length; 2 where never. In fine steps."""
    part = np.linspace(0.0, 1.0, 801)
    way = start[:, None] + part[None, :, None] * (end - start)[:, None]
    axis = b - a
    share = np.clip((way - a) @ axis / (axis @ axis), 0.0, 1.0)
    near = np.linalg.norm(way - a - share[..., None] * axis, axis=2) < radius
    return np.where(near.any(axis=1), part[near.argmax(axis=1)], 2.0)


def test_drops_hit_a_rod_where_a_fine_search_finds_it(scene: Scene) -> None:
    """500 drops from all sides towards a slanting rod, one step of gravity's bend apart: those that a search in steps
    of 1/800 finds are caught, but for what grazes it."""
    rng = np.random.default_rng(4)
    a, b = np.array([0.06, 0.0, 0.05]), np.array([0.08, 0.03, 0.15])
    scene.bar(0, a, b)
    on_sphere = rng.normal(size=(500, 3))
    start = 0.5 * (a + b) + 0.03 * on_sphere / np.linalg.norm(on_sphere, axis=1)[:, None]
    target = a + rng.uniform(-0.1, 1.1, (500, 1)) * (b - a) + rng.uniform(-4e-3, 4e-3, (500, 3))
    velocity = (target - start) * 80.0
    axis = b - a
    share = np.clip((start - a) @ axis / (axis @ axis), 0.0, 1.0)
    outside = np.linalg.norm(start - a - share[:, None] * axis, axis=1) > 2.6e-3
    start, velocity = start[outside], velocity[outside]
    middle = velocity + np.array([0.0, 0.0, -0.5 * 9.81 * 0.016])
    when = meets(start, start + 0.016 * middle, a, b, 2.5e-3)
    safely = meets(start, start + 0.016 * middle, a, b, 2.4e-3)
    barely = meets(start, start + 0.016 * middle, a, b, 2.6e-3)
    scene.throw(start, velocity, 1000)
    scene.run()
    caught = int(scene.drops.gone_count.numpy()[int(ON_TOOL)])
    assert (safely <= 1.0).sum() <= caught <= (barely <= 1.0).sum()
    assert (when <= 1.0).sum() > 120
    assert scene.total() == 1000 * len(start)
    # They lie along the rod where they hit it.
    hit = when <= 1.0
    at = start[hit] + when[hit, None] * 0.016 * middle[hit]
    height = np.clip(at[:, 2] - a[2], 0.0, None)
    rows = scene.stains.view.tools.content.numpy().reshape(-1, TOOL_ROWS, TOOL_COLUMNS)[0].sum(axis=1)
    mean = (rows @ (np.arange(TOOL_ROWS) + 0.5)) / rows.sum()
    assert mean == pytest.approx(height.mean() / 1e-3, abs=3.0)


def test_a_rod_that_moves_sweeps_drops_up(scene: Scene) -> None:
    """A drop at rest in the air, and a rod that went through it within the frame."""
    scene.bar(0, (0.06, -0.05, 0.1), (0.06, 0.05, 0.1), moved=(0.02, 0.0, 0.0))
    scene.throw([[0.05, 0.0, 0.1], [0.03, 0.0, 0.1]], np.zeros((2, 3)))
    scene.run()
    assert int(scene.drops.gone_count.numpy()[int(ON_TOOL)]) == 1


def test_steel_that_is_wet_lets_drops_bounce(scene: Scene) -> None:
    """0.1 mm on cells of 0.49 mm²: some 50 nL each, so of 2000 drops of 0.2 µL at one place most go elsewhere."""
    scene.bar(0, (0.06, 0.0, 0.05), (0.06, 0.0, 0.15))
    for _ in range(10):
        scene.throw(np.tile((0.07, 0.0, 0.1), (200, 1)), (-3.0, 0.0, 0.0))
        scene.run(20)
    _, tools, _ = stains.volume(scene.stains)
    assert 0.0 < tools < 0.5 * 2000 * VOLUME * LITTLE
    assert scene.total() == 200 * VOLUME + 9 * 200 * VOLUME


def test_gauze_takes_up_drops_and_wipes_cloth_and_steel_until_it_is_full(scene: Scene) -> None:
    """A swab catches what hits it; pressed on a stain and along a rod it takes that too; full, it takes no more."""
    rng = np.random.default_rng(1)
    ends = ((0.06, 0.0, 0.05), (0.06, 0.0, 0.15))
    scene.bar(0, *ends)
    x = np.concatenate([np.tile((0.1, 0.02, 0.01), (50, 1)), np.tile((0.07, 0.0, 0.1), (50, 1))])
    scene.throw(x + rng.normal(0.0, 1e-3, x.shape), np.repeat([[0.0, 0.0, -1.0], [-3.0, 0.0, 0.0]], 50, axis=0))
    scene.run(20)
    cloth, steel, gauze = stains.volume(scene.stains)
    assert min(cloth, steel) > 0.0
    assert gauze == 0.0
    before = scene.total()
    scene.bar(1, (0.1, 0.02, 0.003), (0.1, 0.02, 0.003), tool=1)
    scene.run()
    wiped, steel_after, gauze = stains.volume(scene.stains)
    assert stains.thickness(scene.stains, [(0.1, 0.02), (0.102, 0.02)]).max() == 0.0
    assert gauze == pytest.approx(cloth - wiped, rel=1e-6)
    assert steel_after == steel
    scene.bar(1, (0.065, 0.0, 0.1), (0.065, 0.0, 0.1), tool=1)
    scene.run()
    assert stains.volume(scene.stains)[1] < 0.5 * steel
    assert scene.total() == before
    full = scene.stains.view.soaked
    full.assign(np.array([0, round(HOLDS / LITTLE)], dtype=np.int64))
    now = stains.volume(scene.stains)
    scene.bar(1, (0.1, 0.02 + 2 * SWAB, 0.003), (0.1, 0.02 + 2 * SWAB, 0.003), tool=1)
    scene.run()
    assert stains.volume(scene.stains) == now


def test_same_inputs_same_stains_and_a_saved_state_goes_on(scene: Scene) -> None:
    results = []
    for _ in range(2):
        clean = {name: np.zeros_like(array) for name, array in stains.save(scene.stains).items()}
        stains.load(scene.stains, clean)
        scene.bar(0, (0.06, 0.0, 0.03), (0.06, 0.0, 0.13))
        rng = np.random.default_rng(2)
        scene.throw(rng.uniform((0.03, -0.03, 0.01), (0.1, 0.03, 0.1), (500, 3)), rng.normal(0.0, 1.0, (500, 3)))
        scene.run(5)
        saved = stains.save(scene.stains)
        shown = scene.stains.cloth_pixels.numpy().copy()
        scene.run(5)
        stains.load(scene.stains, saved)
        assert (scene.stains.cloth_pixels.numpy() == shown).all()
        results.append([saved["cloth"], saved["tools"], shown])
    assert all((a == b).all() for a, b in zip(*results, strict=True))
    assert results[0][0].sum() > 0


def test_numbers_that_cannot_be(scene: Scene) -> None:
    with pytest.raises(InputError):
        StainParams(side=0.0)
    with pytest.raises(InputError, match="cells"):
        stains.make(scene.drops, StainParams(side=1e-5))
    with pytest.raises(InputError, match="not on the cloth"):
        stains.thickness(scene.stains, [(9.0, 0.0)])


def test_gauze_wipes_film_and_its_trail_off_the_picture(device: Device) -> None:
    """Film on a plate, painted, then taken away: its trail stays. Under a swab of 4 mm not a byte is left, 5.5 mm away
    nothing has changed."""
    line = np.linspace(-0.02, 0.02, 9)
    x, y = (axis.ravel() for axis in np.meshgrid(line, line, indexing="ij"))
    at = np.arange(81).reshape(9, 9)
    a, b, c, d = (part.ravel() for part in (at[:-1, :-1], at[1:, :-1], at[1:, 1:], at[:-1, 1:]))
    faces = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)]).astype(np.int32)
    organ = skin.make(TriangleMesh(np.stack([x, y, 0.0 * x], axis=1), faces, "plate"), width=128, device=device)
    blood = film.make(organ, FilmParams(), capacity=400)
    rng = np.random.default_rng(1)
    film.add(blood, np.concatenate([rng.uniform(-0.015, 0.015, (300, 2)), np.zeros((300, 1))], axis=1), "blood")
    assert blood.surface is not None
    spray = make_drops(blood.surface, blood.params, blood.state, capacity=16)
    marks = stains.make(spray, solids=[Solid(1, SWAB, SWAB, HOLDS)], floor=-0.1)
    image = picture.make(blood)
    device.record(lambda stage: film.step(stage, blood)).run()
    wipes = device.record(lambda stage: step_film_image(stage, image, lambda s: wipe_picture(s, marks, image)))
    wipes.run(2)
    before = image.height.numpy().copy()
    one = marks.bars.host[0]
    one["start"] = one["end"] = (0.0, 0.0, 0.002)
    one["radius"], one["gauze"], one["turn"] = SWAB, 1, (0.0, 0.0, 0.0, 1.0)
    marks.bar_count.host[0] = 1
    device.record(marks.begin).run()
    wipes.run()
    device.synchronize()
    far = np.linalg.norm(organ.position.numpy()[:, :2], axis=1)
    covered = organ.face.numpy() >= 0
    pixels = image.words.numpy()
    assert (before[covered & (far < 3e-3)] > 0.0).mean() > 0.9
    assert (pixels[covered & (far < 3e-3)] == 0).all()
    kept = image.height.numpy()[covered & (far > 5.5e-3)]
    assert np.abs(kept - before[covered & (far > 5.5e-3)]).max() < 1e-9
