"""The film on surfaces: where it runs does not depend on triangles, atlas or stretch, only on the shape in space."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from viscera.blood.constants import BLOOD_DENSITY, SURFACE_TENSION
from viscera.blood.film.border import check_film, film_count, film_volume, locate, spawn
from viscera.blood.film.film import Film, make_film, step_film
from viscera.blood.film.params import BLOOD, FilmParams, Sheet
from viscera.blood.film.state import DRAINED
from viscera.blood.film.surface import MASKED, FilmSurface, make_surface, refresh_surface, set_edges, set_obstacles
from viscera.blood.film.walk import BARRIER, DRAIN
from viscera.device import Device
from viscera.errors import InputError
from viscera.geometry import TriangleMesh, box, icosphere
from viscera.geometry.atlas import AtlasSettings, unique_atlas
from viscera.skin import Skin, make_skin

PLAIN = FilmParams(fluids=(BLOOD,))
SLOW = dataclasses.replace(PLAIN, fluids=(dataclasses.replace(BLOOD, traction=300.0),))
"""On the sphere a thick film creeps, so the path is that of steepest descent."""


def sheet(
    size: float = 0.06, cells: int = 12, turn: np.ndarray | None = None, stretch: float = 1.0, shift: float = 0.0
) -> TriangleMesh:
    """A flat square about the origin, turned by `turn`, its texture stretched along u."""
    line = np.linspace(-0.5 * size, 0.5 * size, cells + 1)
    x, y = (g.ravel() for g in np.meshgrid(line, line))
    low = (np.arange(cells)[:, None] * (cells + 1) + np.arange(cells)).ravel()
    quads = np.stack([low, low + 1, low + cells + 2, low + cells + 1], axis=1)
    triangles = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    unit = np.stack([x, y], axis=1) / size + 0.5
    uv = 0.05 + 0.2 * unit * (min(4.0, 4.0 * stretch), min(4.0, 4.0 / stretch))
    vertices = np.stack([x, y, 0 * x], axis=1) @ (np.eye(3) if turn is None else turn).T
    return TriangleMesh(vertices + np.array([shift, 0.0, 0.0]), triangles, "sheet", uv.astype(np.float32))


def rotation(axis: tuple[float, float, float], angle: float) -> np.ndarray:
    k = np.array(axis) / np.linalg.norm(axis)
    cross = np.array([[0, -k[2], k[1]], [k[2], 0, -k[0]], [-k[1], k[0], 0]])
    return np.eye(3) + math.sin(angle) * cross + (1 - math.cos(angle)) * cross @ cross


def run(film: Film, steps: int) -> np.ndarray:
    """Mean position after each step, shape (steps, 3) [m]; NaN when all have gone."""
    program = film.device.record(lambda stage: step_film(stage, film), work=film.work)
    means = []
    for _ in range(steps):
        program.run()
        film.device.synchronize()
        found = film.state.position.numpy()[: film_count(film)]
        means.append(found.mean(axis=0, dtype=float) if len(found) else np.full(3, np.nan))
    check_film(film)
    return np.array(means)


def drop(centre: np.ndarray, count: int = 12, size: float = 0.002) -> np.ndarray:
    """Places within `size` of the centre, near enough to any smooth surface there [m]."""
    rng = np.random.default_rng(2)
    return centre + np.concatenate([np.zeros((1, 3)), rng.uniform(-0.5, 0.5, (count - 1, 3)) * size])


def round_drop(radius: float) -> np.ndarray:
    """Seven places around a point 0.15 rad from the top of a sphere [m]."""
    east = np.array([-math.sin(1.0), math.cos(1.0), 0.0])
    top = np.array([math.sin(0.15) * math.cos(1.0), math.sin(0.15) * math.sin(1.0), math.cos(0.15)])
    around = np.arange(6)[:, None] * math.pi / 3.0 + 0.3
    ring = np.cos(around) * east + np.sin(around) * np.cross(east, top)
    return np.concatenate([[radius * top], radius * top + 0.9e-3 * ring])


@pytest.mark.parametrize("angle", [0.3, 1.2])
def test_a_drop_slides_along_the_steepest_line(device: Device, angle: float) -> None:
    """Direction: gravity without its part along the normal. Speed: g sin θ dt/(1 − I), reached within some 1/traction.
    Within 1 %: the drop relaxes while it slides, and a few particles are not yet at its speed."""
    turn = rotation((1.0, 2.0, 0.3), angle)
    film = make_film(sheet(turn=turn), PLAIN, 64, device)
    spawn(film, drop(np.zeros(3)))
    path = run(film, 120)
    normal = turn @ (0.0, 0.0, 1.0)
    gravity = np.array(PLAIN.gravity)
    down = gravity - normal * (gravity @ normal)
    moved = path[-1] - path[60]
    assert moved @ down / (np.linalg.norm(moved) * np.linalg.norm(down)) > math.cos(0.01)
    lost = -math.expm1(-BLOOD.traction * PLAIN.dt)
    speed = np.linalg.norm(down) * PLAIN.dt / lost
    assert np.linalg.norm(moved) / (59 * PLAIN.dt) == pytest.approx(speed, rel=0.01)


@pytest.mark.parametrize("part", [0.0, 0.5, 2.0])
def test_a_contact_line_holds_a_lone_particle_as_the_formula_says(device: Device, part: float) -> None:
    """f = `part` of what pulls it down the slope: it runs with (g sin θ − f) dt/(1 − I), or stays where it is."""
    angle = 0.6
    pull = 9.81 * math.sin(angle)
    one = dataclasses.replace(PLAIN, hysteresis=1.0)
    params = dataclasses.replace(PLAIN, hysteresis=part * pull / one.line_hold)
    film = make_film(sheet(turn=rotation((1.0, 0.0, 0.0), angle)), params, 8, device)
    spawn(film, [(0.0, 0.0, 0.0)])
    path = run(film, 90)
    speed = max(pull - part * pull, 0.0) * params.dt / -math.expm1(-BLOOD.traction * params.dt)
    assert np.linalg.norm(path[-1] - path[60]) / (29 * params.dt) == pytest.approx(speed, rel=1e-3, abs=1e-9)


def test_a_contact_line_does_not_hold_a_large_film(device: Device) -> None:
    """520 particles on a wall: by ElSherbini and Jacobi's law for a round patch, (24/π³) σ D (cos θ_r − cos θ_a), a
    line holds 0.28 times what they weigh. They run."""
    params = dataclasses.replace(PLAIN, hysteresis=0.3)
    film = make_film(sheet(0.12, turn=rotation((1.0, 0.0, 0.0), 0.5 * math.pi)), params, 1024, device)
    x, z = np.meshgrid(0.9e-3 * (np.arange(13) - 6), 0.9e-3 * (np.arange(40) - 20))
    held = 24.0 / math.pi**3 * SURFACE_TENSION * 2.0 * math.sqrt(520 * 0.9e-3**2 / math.pi) * params.hysteresis
    assert held / (520 * BLOOD_DENSITY * params.particle_volume * 9.81) == pytest.approx(0.28, abs=0.01)
    spawn(film, np.stack([x.ravel(), 0.0 * x.ravel(), 0.03 + z.ravel()], axis=1))
    path = run(film, 250)
    assert path[150][2] - path[-1][2] > 5e-3


def test_from_the_top_of_a_sphere_to_its_bottom(device: Device) -> None:
    """The path stays in the plane through the poles and the start: off by less than 1 % of the radius all the way. The
    sphere is turned, so that no symmetry of its triangles helps; two atlases give the same bits."""
    radius = 0.03
    ball = icosphere(radius, 4)
    ball = TriangleMesh(ball.vertices @ rotation((0.3, 1.0, 0.5), 0.7).T, ball.triangles, "ball")
    ways = []
    for settings in (AtlasSettings(128), AtlasSettings(128, distortion=8.0)):
        skin = make_skin(ball, unique_atlas(ball, settings), 128, device=device)
        film = make_film(skin, SLOW, 32, device)
        spawn(film, round_drop(radius))
        ways.append(run(film, 2000))
    assert np.array_equal(*ways)
    path = ways[0]
    aside = np.cross(path[0], (0.0, 0.0, 1.0)) / np.linalg.norm(path[0][:2])
    assert np.abs(path @ aside).max() < 0.01 * radius
    assert path[-1][2] < -0.99 * radius


def test_the_way_does_not_depend_on_stretch(device: Device) -> None:
    """A texture four times as dense along u as along v: on the surface the same way to the last bit; on the sheet,
    through u, v and the inverse metric, within 2 %."""
    turn = rotation((1.0, 0.5, 0.0), 0.8)
    ways, sheets = [], []
    for stretch in (1.0, 4.0):
        mesh = sheet(turn=turn, stretch=stretch)
        skin = make_skin(mesh, unique_atlas(mesh, AtlasSettings(128)), 128, device=device)
        film = make_film(skin, PLAIN, 32, device)
        spawn(film, [(0.0, 0.0, 0.0)])
        ways.append(run(film, 60))
        # One particle in texture space, lifted into space by the skin's texel positions.
        flat = make_film(
            Sheet(128, 128),
            dataclasses.replace(PLAIN, radius=2.0, max_speed=400.0),
            8,
            device,
            tangents=skin,
        )
        column, row = 128 * (0.05 + 0.1 * np.array([min(4.0, 4.0 * stretch), min(4.0, 4.0 / stretch)]))
        spawn(flat, [(column, row)])
        way = run(flat, 60)
        texel = 0.06 / (128 * 0.2) / np.array([min(4.0, 4.0 * stretch), min(4.0, 4.0 / stretch)])
        sheets.append((way[-1] - way[0])[:2] * texel)
    assert np.array_equal(*ways)
    truth = (ways[0][-1] - ways[0][0]) @ turn
    for found in sheets:
        assert np.linalg.norm(found - truth[:2]) < 0.02 * np.linalg.norm(truth[:2])


def test_organs_that_touch_in_the_atlas_only_do_not_interact(device: Device) -> None:
    """One mesh of two sheets 20 cm apart whose charts share a border in the atlas of its skin: films at that border, a
    texel from each other there, do not feel each other. On a sheet, the document's texture space, the same two do."""
    flat, cells = sheet(), 12
    assert flat.uv is not None
    near, far = 0.5 * flat.uv, 0.5 * flat.uv
    near[:, 0] += 0.5 - near[:, 0].max()
    far[:, 0] += 0.5 - far[:, 0].min()
    uv = np.concatenate([near, far])
    both = TriangleMesh(
        np.concatenate([flat.vertices, flat.vertices + np.array([0.2, 0.0, 0.0])]),
        np.concatenate([flat.triangles, flat.triangles + (cells + 1) ** 2]),
        "two sheets",
        uv,
    )
    skin = make_skin(both, unique_atlas(both, AtlasSettings(128)), 128, device=device)
    assert np.array_equal(skin.atlas.corners, uv[both.triangles])
    rng = np.random.default_rng(4)
    aside = np.stack([rng.uniform(0.0, 0.5e-3, 20), rng.uniform(-3e-3, 3e-3, 20), np.zeros(20)], axis=1)
    own, other = np.array([0.03, 0.0, 0.0]) - aside, np.array([0.17, 0.0, 0.0]) + aside[::-1]
    ends = []
    for places in ([own], [own, other]):
        film = make_film(make_surface(skin), PLAIN, 64, device)
        for part in places:
            spawn(film, part)
        run(film, 20)
        found = film.state.position.numpy()[: film_count(film)]
        ends.append(found[found[:, 0] < 0.1])
    assert len(ends[0]) == 20
    assert np.array_equal(*ends)
    texels = 128 * 0.5 * 0.8 / 0.06
    densities = []
    for places in ([own], [own, other]):
        film = make_film(Sheet(128, 128), dataclasses.replace(PLAIN, radius=2.0, max_speed=100.0), 64, device)
        for part in places:
            middle = 0.03 if part is own else 0.17
            spawn(film, 64.0 + texels * (part[:, :2] - (middle, 0.0)))
        run(film, 1)
        x = film.state.position.numpy()[: film_count(film), 0]
        densities.append(film.state.density.numpy()[: len(x)][x < 64.0].mean())
    assert densities[1] > 1.2 * densities[0]


def spread(film: Film, upper: bool) -> float:
    """Mean distance of the particles of one sheet from its middle line [m]."""
    found = film.state.position.numpy()[: film_count(film)]
    own = found[(found[:, 2] > -1e-4) == upper]
    assert len(own) == 15
    return float(np.linalg.norm(own[:, :2] - own[:, :2].mean(axis=0), axis=1).mean())


@pytest.mark.parametrize("pooling", [0.0, 0.5, 1.0])
def test_back_to_back_they_are_apart_face_to_face_they_pool(device: Device, pooling: float) -> None:
    """Two parallel sheets 0.5 mm apart, a fifth of the radius: as two sides of a thin body there is nothing between
    their films, whatever `pooling`; as two organs that touch, each is in the other's way as much as it says, so that
    the film is denser and spreads farther."""
    over = rotation((1.0, 0.0, 0.0), math.pi)
    rng = np.random.default_rng(5)
    places = np.pad(rng.uniform(-0.0015, 0.0015, (15, 2)), ((0, 0), (0, 1)))
    densities, spreads = {}, {}
    for name, turns, lift in (
        ("alone", (np.eye(3),), 0.0),
        ("back to back", (np.eye(3), over), -5e-4),
        ("face to face", (over, np.eye(3)), -5e-4),
    ):
        params = dataclasses.replace(PLAIN, gravity=(0.0, 0.0, 0.0), pooling=pooling)
        parts = [sheet(turn=turn).moved((0.0, 0.0, k * lift)) for k, turn in enumerate(turns)]
        film = make_film(make_surface(parts, device), params, 64, device)
        for k in range(len(parts)):
            spawn(film, places + np.array([0.0, 0.0, k * lift]))
        run(film, 1)
        densities[name] = film.state.density.numpy()[: film_count(film)].mean()
        run(film, 80)
        spreads[name] = spread(film, upper=True)
    assert densities["back to back"] == pytest.approx(densities["alone"], rel=1e-5)
    assert spreads["back to back"] == pytest.approx(spreads["alone"], rel=1e-3)
    if pooling == 0.0:
        assert densities["face to face"] == pytest.approx(densities["alone"], rel=1e-5)
        assert spreads["face to face"] == pytest.approx(spreads["alone"], rel=1e-3)
    else:
        # Closeness counts squared. Directly opposite particles are as close as 1 − 0.2.
        assert densities["face to face"] > (1.0 + 0.8 * pooling**2) * densities["alone"]
        assert spreads["face to face"] > (1.0 + 0.1 * pooling) * spreads["alone"]


@pytest.mark.parametrize(("slope", "one_surface"), [(45.0, True), (60.0, True), (80.0, False)])
def test_a_valley_is_one_surface_and_a_cleft_is_two(cpu: Device, slope: float, one_surface: bool) -> None:
    """A furrow of one mesh: where its walls are no steeper than 60°, `pooling` changes no bit; the walls of a cleft
    face each other."""
    flat, tilt = sheet(cells=40), math.radians(slope)
    x = flat.vertices[:, 0]
    furrow = np.stack([x * math.cos(tilt), flat.vertices[:, 1], np.abs(x) * math.sin(tilt)], axis=1)
    mesh = TriangleMesh(furrow, flat.triangles, "furrow")
    rng = np.random.default_rng(6)
    along, y = rng.uniform(-3e-3, 3e-3, 80), rng.uniform(-4e-3, 4e-3, 80)
    places = np.stack([along * math.cos(tilt), y, np.abs(along) * math.sin(tilt)], axis=1)
    ends = []
    for pooling in (0.0, 1.0):
        film = make_film(mesh, dataclasses.replace(PLAIN, pooling=pooling), 100, cpu)
        spawn(film, places)
        run(film, 1)
        density = film.state.density.numpy()[:80].mean()
        run(film, 10)
        ends.append((film.state.position.numpy()[:80], density))
    assert np.array_equal(ends[0][0], ends[1][0]) is one_surface
    if not one_surface:
        assert ends[1][1] > 1.2 * ends[0][1]


def test_a_film_pools_where_surfaces_meet(device: Device) -> None:
    """Two slopes that meet in a valley, two organs that touch there and share no edge: both streams end at the bottom
    and make one puddle, most particles touching others from the other side."""
    parts = []
    for side in (-1.0, 1.0):
        tilt = rotation((0.0, 1.0, 0.0), -side * 0.6)
        half = 0.03 * np.array([side * math.cos(0.6), 0.0, math.sin(0.6)])
        parts.append(sheet(turn=tilt).moved(half))
    film = make_film(make_surface(parts, device), PLAIN, 200, device)
    rng = np.random.default_rng(6)
    for side in (-1.0, 1.0):
        along = rng.uniform(0.012, 0.02, 30)
        spawn(
            film, np.stack([side * along * math.cos(0.6), rng.uniform(-5e-3, 5e-3, 30), along * math.sin(0.6)], axis=1)
        )
    run(film, 500)
    found = film.state.position.numpy()[: film_count(film)]
    half = film.surface.first_face[1] if film.surface else 0
    left = film.state.face.numpy()[: len(found)] < half
    assert left.sum() == 30
    assert found[:, 2].max() < 0.008
    distance = np.linalg.norm(found[left][:, None] - found[~left][None], axis=2)
    assert (distance.min(axis=1) < PLAIN.radius).mean() > 0.5


def test_films_keep_to_the_surface_and_its_rim(device: Device) -> None:
    """A strong pull to one corner of an open sheet: particles stop at the rim, none is lost or leaves the surface."""
    film = make_film(sheet(), dataclasses.replace(PLAIN, gravity=(7.0, 5.0, -3.0)), 128, device)
    spawn(film, np.pad(np.random.default_rng(7).uniform(-0.025, 0.025, (100, 2)), ((0, 0), (0, 1))))
    run(film, 1)
    volume = film_volume(film)
    run(film, 800)
    found = film.state.position.numpy()[: film_count(film)]
    assert len(found) == 100
    assert film_volume(film) == volume
    assert np.abs(found).max() < 0.03 + 1e-6
    assert np.abs(found[:, 2]).max() < 1e-7
    assert found[:, :2].mean() > 0.02


def crossing_edges(mesh: TriangleMesh, at: float) -> np.ndarray:
    """Edges of a flat sheet along x = at."""
    edges = np.sort(mesh.triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    on = np.abs(mesh.vertices[edges][:, :, 0] - at).max(axis=1) < 1e-9
    return np.unique(edges[on], axis=0)


@pytest.mark.parametrize("kind", [int(BARRIER), int(DRAIN)])
def test_an_incision_is_a_barrier_or_a_drain(device: Device, kind: int) -> None:
    mesh = sheet()
    surface = make_surface(mesh, device)
    set_edges(surface, 0, crossing_edges(mesh, 0.01), kind)
    film = make_film(surface, dataclasses.replace(PLAIN, gravity=(9.0, 0.0, 0.0)), 64, device)
    spawn(film, np.pad(np.random.default_rng(8).uniform(-0.004, 0.004, (30, 2)), ((0, 0), (0, 1))))
    run(film, 1)
    volume = film_volume(film)
    run(film, 400)
    gone = int(film.state.gone_count.numpy()[int(DRAINED)])
    if kind == int(BARRIER):
        found = film.state.position.numpy()[: film_count(film), 0]
        assert len(found) == 30
        assert found.max() < 0.01 + 1e-6
        assert found.mean() > 0.005
    else:
        assert gone == 30
        assert film_count(film) == 0
        assert film.state.gone_volume.numpy()[int(DRAINED)] == round(volume / 1e-15)


@pytest.mark.parametrize("height", [0.4, MASKED], ids=["low", "mask"])
def test_a_film_flows_around_what_it_cannot_climb(device: Device, height: float) -> None:
    """A round obstacle in the way: a lone particle (blood value 0) passes at its side, whatever the height; a thick
    stream runs over the low one, not over the mask."""
    mesh = sheet()
    skin = make_skin(mesh, unique_atlas(mesh, AtlasSettings(128)), 128, device=device)
    surface = make_surface(skin)
    place = skin.image(skin.position)
    island = np.hypot(place[:, :, 0] - 0.008, place[:, :, 1]) < 0.004
    set_obstacles(surface, 0, np.where(island, height, 0.0))
    params = dataclasses.replace(PLAIN, gravity=(9.0, 0.0, 0.0))
    lone = make_film(surface, params, 16, device)
    spawn(lone, [(-0.005, 0.001, 0.0)])
    way = run(lone, 300)
    assert np.hypot(way[:, 0] - 0.008, way[:, 1]).min() > 0.0035
    assert way[-1, 0] > 0.013
    thick = make_film(surface, params, 400, device)
    spawn(thick, np.pad(np.random.default_rng(9).uniform(-0.006, 0.006, (250, 2)), ((0, 0), (0, 1))) - (0.008, 0, 0))
    program = device.record(lambda stage: step_film(stage, thick), work=thick.work)
    inside = 0
    for _ in range(250):
        program.run()
        device.synchronize()
        found = thick.state.position.numpy()[: film_count(thick)]
        inside += int((np.hypot(found[:, 0] - 0.008, found[:, 1]) < 0.003).sum())
    assert (inside > 50) if height < 1.0 else (inside == 0)


def test_an_obstacle_below_zero_drains(cpu: Device) -> None:
    mesh = sheet()
    skin = make_skin(mesh, unique_atlas(mesh, AtlasSettings(128)), 128, device=cpu)
    surface = make_surface(skin)
    set_obstacles(surface, 0, np.where(skin.image(skin.position)[:, :, 0] > 0.01, -1.0, 0.0))
    film = make_film(surface, dataclasses.replace(PLAIN, gravity=(9.0, 0.0, 0.0)), 16, cpu)
    spawn(film, [(0.0, 0.0, 0.0), (0.002, 0.004, 0.0)])
    run(film, 300)
    assert film.state.gone_count.numpy()[int(DRAINED)] == 2


def test_walking_there_and_back(device: Device) -> None:
    """Without forces a particle goes straight over any edges: on a box it comes back to its start after going once
    around (0.4 m, four edges), and its height has not changed."""
    free = dataclasses.replace(BLOOD, traction=0.0)
    params = FilmParams(fluids=(free,), gravity=(0.0, 0.0, 0.0), max_speed=0.15)
    block = box((0.04, 0.04, 0.04))
    film = make_film(block, params, 4, device)
    spawn(film, [(0.02, -0.003, 0.0041)], velocity=(0.0, 0.1, 0.0))
    path = run(film, round(0.16 / (0.1 * params.dt)) + 1)
    assert np.abs(path[-1] - path[0]).max() < 1e-5
    assert np.abs(path[:, 2] - path[0, 2]).max() < 1e-6
    assert np.ptp(path[:, 0]) > 0.039
    assert np.linalg.norm(film.state.velocity.numpy()[0]) == pytest.approx(0.1, rel=1e-5)


def test_a_film_rides_on_moving_tissue(device: Device) -> None:
    """The skin's vertices move: particles stay at their place in the tissue, and gravity follows its new slope."""
    mesh = sheet()
    skin: Skin = make_skin(mesh, unique_atlas(mesh, AtlasSettings(128)), 128, device=device)
    surface: FilmSurface = make_surface(skin)
    film = make_film(surface, PLAIN, 8, device)
    spawn(film, [(0.004, 0.002, 0.0)])
    run(film, 5)
    turn = rotation((0.0, 1.0, 0.0), 0.5)
    skin.vertices.assign((mesh.vertices @ turn.T + (0.0, 0.0, 0.1)).astype(np.float32))
    device.record(lambda stage: refresh_surface(stage, surface)).run()
    path = run(film, 40)
    assert np.abs(path[0] - (turn @ (0.004, 0.002, 0.0) + (0.0, 0.0, 0.1))).max() < 1e-4
    moved = path[-1] - path[0]
    assert moved @ (turn @ (1.0, 0.0, 0.0)) > 0.9 * np.linalg.norm(moved) > 1e-4


def test_places_off_the_surface_are_refused(cpu: Device) -> None:
    film = make_film(icosphere(0.03, 2), PLAIN, 8, cpu)
    with pytest.raises(InputError, match=r"1 places are off the surface; place 1 by 0\.07"):
        spawn(film, [(0.0, 0.0, 0.03), (0.0, 0.1, 0.0)])
    face, weights, distance = locate(film.surface or make_surface([], cpu), [(0.0, 0.0, 0.031)])
    assert distance[0] < 0.002
    assert 0 <= face[0] < 320
    assert (weights >= 0.0).all()


def test_a_surface_needs_parts_and_edges_that_are_there(cpu: Device) -> None:
    with pytest.raises(InputError, match="no part"):
        make_surface([], cpu)
    mesh = sheet()
    with pytest.raises(InputError, match="no edge"):
        set_edges(make_surface(mesh, cpu), 0, [(0, 100)])
    with pytest.raises(InputError, match="no texture"):
        set_obstacles(make_surface(mesh, cpu), 0, np.zeros((4, 4)))
