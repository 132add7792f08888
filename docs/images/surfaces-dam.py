"""Draws docs/images/surfaces-water.png, -blood.png, -barium.png and -screen-mesh.png:
python docs/images/surfaces-dam.py

A dam of 8 000 particles breaks in a tank (30 × 10 cm). The same moment as water and as blood (splats), as barium
(marching cubes, shaded like clay), and as the mesh on the screen, without and with smoothing. Ends in checks: the
water's thickness adds up to its volume, and the surfaces agree on what they cover.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import warp as wp

from viscera.device import Stage, open_device
from viscera.imaging.lens import Lens
from viscera.imaging.marching import MarchingParams, fill_field, make_marching, marching_arrays
from viscera.imaging.raycast import see_mesh
from viscera.imaging.screen_mesh import ScreenMeshParams, build_screen_mesh, make_screen_mesh, mesh_arrays
from viscera.imaging.shading import Light, look_of, shade, shade_solid, to_screen
from viscera.imaging.splats import GBuffer, SplatParams, draw_splats, make_splats, read_splats
from viscera.view import Camera
from viscera.water.params import FluidParams, largest_step
from viscera.water.sph import step_fluid
from viscera.water.state import make_fluid, particles
from viscera.water.walls import block, box_walls

SPACING = 0.005
"""[m]"""
TANK = (0.30, 0.20, 0.10)
"""[m]; y is up."""
SECONDS = 0.36
WIDTH, HEIGHT = 960, 540
FOLDER = Path(__file__).parent

device = open_device("cpu")
stage = Stage(device, 0, 1, None)


def dam() -> np.ndarray:
    """Where the particles are after `SECONDS`."""
    low, high = (0.0, 0.0, 0.0), TANK
    params = FluidParams(SPACING, low, high, dt=1e-5, sound_speed=18.0, alpha=0.06, fastest=2.5)
    params = FluidParams(SPACING, low, high, dt=0.9 * largest_step(params), sound_speed=18.0, alpha=0.06, fastest=2.5)
    walls = box_walls(low, high, SPACING, params.radius, open_sides=("+y",))
    fluid = make_fluid(params, block(low, (0.10, 0.10, 0.10), SPACING), device, walls=walls)
    program = device.record(lambda stage: step_fluid(stage, fluid))
    for _ in range(round(SECONDS / params.dt)):
        program.run()
    found = particles(fluid)
    return found["position"][found["tag"] >= 0].astype(np.float32)


def surroundings(directions: np.ndarray) -> np.ndarray:
    """A dim room with a bright window behind the tank and a soft lamp overhead."""
    side, up, back = directions[:, 0:1], directions[:, 1:2], directions[:, 2:3]
    colour = np.array([0.03, 0.035, 0.045]) + np.array([0.05, 0.06, 0.08]) * np.clip(up, 0.0, 1.0)
    lamp = np.clip((up - 0.80) / 0.10, 0.0, 1.0)
    window = np.clip((up - 0.12) / 0.06, 0.0, 1.0) * np.clip((0.62 - up) / 0.06, 0.0, 1.0)
    window = window * np.clip((0.45 - np.abs(side + 0.1)) / 0.05, 0.0, 1.0) * (back < 0.0)
    bars = np.clip((np.abs(side + 0.1) - 0.02) / 0.01, 0.0, 1.0)
    return colour + 2.0 * lamp + 1.1 * window * bars * np.array([0.9, 0.97, 1.0])


def room(lens: Lens, light: Light) -> tuple[np.ndarray, np.ndarray]:
    """A chequered floor and a plain wall: the picture without liquid, and its depth."""
    x, _, z = TANK
    floor = [[-2.0, 0.0, -1.0], [-2.0, 0.0, 2.0], [3.0, 0.0, 2.0], [3.0, 0.0, -1.0]]
    wall = [[-2.0, 0.0, -0.25], [3.0, 0.0, -0.25], [3.0, 2.0, -0.25], [-2.0, 2.0, -0.25]]
    solid = see_mesh(
        lens,
        np.array(floor + wall),
        [[0, 1, 2], [0, 2, 3], [4, 5, 6], [4, 6, 7]],
        device,
        normals=np.array([[0.0, 1.0, 0.0]] * 4 + [[0.0, 0.0, 1.0]] * 4),
    )
    point = (
        np.asarray(lens.camera.position)
        + np.where(np.isfinite(solid.depth), solid.depth, 0)[..., None] * lens.directions()
    )
    cell = np.floor(point[..., 0] / 0.02) + np.floor(point[..., 2] / 0.02)
    tiles = np.where((cell % 2 == 0)[..., None], [0.36, 0.30, 0.22], [0.10, 0.08, 0.06])
    inside = ((point[..., 0] > 0) & (point[..., 0] < x) & (point[..., 2] > 0) & (point[..., 2] < z))[..., None]
    floor_colour = np.where(inside, tiles, 0.5 * tiles)
    colour = np.where(solid.normal[..., 1:2] > 0.5, floor_colour, np.array([0.05, 0.055, 0.065]))
    return shade_solid(lens, solid, colour, light), solid.depth.astype(np.float64)


def save(name: str, *pictures: np.ndarray) -> None:
    whole = np.concatenate([to_screen(np.asarray(picture))[::-1] for picture in pictures], axis=1)
    plt.imsave(FOLDER / f"surfaces-{name}.png", np.clip(whole, 0.0, 1.0))


def with_thickness(surface: GBuffer, splats: GBuffer) -> GBuffer:
    """A mesh knows no thickness: it takes that of the splats."""
    return GBuffer(surface.depth, surface.normal, splats.thickness)


points = dam()
count = len(points)
position = wp.array(points, dtype=wp.vec3, device=device.warp)
number = wp.array([count], dtype=wp.int32, device=device.warp)
lens = Lens(Camera((0.25, 0.24, 0.33), (0.153, 0.030, 0.045), (0.0, 1.0, 0.0), 40.0), WIDTH, HEIGHT)
light = Light((-0.4, 0.9, 0.3), 0.75, surroundings, ambient=0.12)
background, background_depth = room(lens, light)

splats = make_splats(
    SplatParams(0.75 * SPACING, SPACING**3, smoothing=1.3 * SPACING, rounds=4, range=0.03), lens, count, device
)
draw_splats(stage, splats, position, number)
liquid = read_splats(splats)
water = shade(lens, liquid, look_of("water"), light, background, background_depth)
blood = shade(lens, liquid, look_of("blood"), light, background, background_depth)
save("water", water)
save("blood", blood)

marching = make_marching(MarchingParams(0.5 * SPACING, 2.2 * SPACING, SPACING), (0, 0, 0), TANK, count, device)
fill_field(stage, marching, position)
vertices, normals, triangles = marching_arrays(marching)
body = see_mesh(lens, vertices, triangles, device, normals)
barium = shade(lens, with_thickness(body, liquid), look_of("barium"), light, background, background_depth)
save("barium", barium)

covered = []
pair = []
for smooth in (False, True):
    params = ScreenMeshParams(
        0.75 * SPACING, 4.0, 0.03, depth_half=12 if smooth else 0, silhouette_rounds=3 if smooth else 0
    )
    mesh = make_screen_mesh(params, lens, count, device)
    build_screen_mesh(stage, mesh, position, number)
    corner, normal, triangle = mesh_arrays(mesh)
    seen = see_mesh(lens, corner, triangle, device, normal)
    covered.append(np.isfinite(seen.depth))
    if smooth:
        pair.append(shade(lens, with_thickness(seen, liquid), look_of("water"), light, background, background_depth))
    else:
        clay = shade_solid(lens, seen, np.array([0.62, 0.60, 0.56]), light)
        pair.append(np.where(np.isfinite(seen.depth)[..., None], clay, background))
    print(f"screen mesh {'smoothed' if smooth else 'as it is'}: {len(corner)} vertices, {len(triangle)} triangles")
cut = slice(130, 800)
save("screen-mesh", pair[0][:, cut], pair[1][:, cut])

slant = np.linalg.norm(lens.directions(), axis=-1)
depth = np.where(np.isfinite(liquid.depth), liquid.depth, 0.0)
volume = (liquid.thickness * depth**2 / slant).sum() / lens.focal**2
agree = (np.isfinite(liquid.depth) == covered[0]).mean()
share = volume / (count * SPACING**3)
print(f"{count} particles; thickness adds up to {share:.3f} of the volume; cover agrees on {agree:.4f}")
assert count == 8000
# Some of the splash is above the picture, and liquid behind other liquid is counted at the depth of the first.
assert 0.8 < share < 1.05
assert agree > 0.995
