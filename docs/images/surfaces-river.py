"""Draws docs/images/surfaces-river.png: python docs/images/surfaces-river.py

The scenario `river` after eight seconds, drawn with splats (Grahn, Figure 8.3). Ends in a check: the water lies in its
bed.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import warp as wp

import viscera
from viscera.anatomy.landscape import landscape
from viscera.device import Stage, open_device
from viscera.imaging.lens import Lens
from viscera.imaging.raycast import see_mesh
from viscera.imaging.shading import Light, look_of, shade, shade_solid, to_screen
from viscera.imaging.splats import SplatParams, draw_splats, make_splats, read_splats
from viscera.scenarios.river import EDGE, SIZE, SPRING
from viscera.view import Camera

SECONDS = 8.0
SEED = 0

world = viscera.make("river", device="cpu", seed=SEED)
world.step(round(1000 * SECONDS))
snapshot = world.snapshot()
points = snapshot.arrays["water"][: snapshot.counts["water"], :3]
place = landscape(SIZE, EDGE, SEED)

device = open_device("cpu")
lens = Lens(Camera((3.25, -1.25, 1.55), (1.25, 0.02, -0.02), (0.0, 0.0, 1.0), 36.0), 960, 540)


def sky(directions: np.ndarray) -> np.ndarray:
    up = np.clip(directions[:, 2:3], 0.0, 1.0)
    return np.array([0.42, 0.52, 0.62]) * (1.0 - up) + np.array([0.06, 0.16, 0.38]) * up


light = Light((-1.0, -4.0, 4.0), 0.75, sky, ambient=0.22)
# Sides and underside get corners of their own, so that the rim stays sharp.
mesh = place.mesh
top = (mesh.vertices[mesh.triangles][:, :, 2] > mesh.vertices[:, 2].min() + 1e-9).all(axis=1)
cut = mesh.vertices[mesh.triangles[~top]].reshape(-1, 3)
faces = np.concatenate([mesh.triangles[top], len(mesh.vertices) + np.arange(len(cut)).reshape(-1, 3)])
ground = see_mesh(lens, np.concatenate([mesh.vertices, cut]), faces, device)
at = (
    np.asarray(lens.camera.position)
    + np.where(np.isfinite(ground.depth), ground.depth, 0.0)[..., None] * lens.directions()
)
above = at[..., 2] - place.height(at[..., 0], place.middle(at[..., 0]))
side = (ground.normal[..., 2:3] < 0.05).astype(float)
grass = np.clip((above - 0.10) / 0.12, 0.0, 1.0)[..., None]
rock = np.clip((0.92 - ground.normal[..., 2:3]) / 0.12, 0.0, 1.0)
colour = (1.0 - grass) * np.array([0.27, 0.19, 0.11]) + grass * np.array([0.13, 0.24, 0.07])
colour = (1.0 - rock) * colour + rock * np.array([0.17, 0.12, 0.08])
colour = (1.0 - side) * colour + side * np.array([0.20, 0.15, 0.11])
background = shade_solid(lens, ground, colour, light)

splats = make_splats(
    SplatParams(0.85 * SPRING.spacing, SPRING.spacing**3, smoothing=1.1 * SPRING.spacing, rounds=4),
    lens,
    len(points),
    device,
)
position = wp.array(points, dtype=wp.vec3, device=device.warp)
count = wp.array([len(points)], dtype=wp.int32, device=device.warp)
draw_splats(Stage(device, 0, 1, None), splats, position, count)
picture = shade(lens, read_splats(splats), look_of("water"), light, background, ground.depth.astype(np.float64))
plt.imsave(Path(__file__).with_name("surfaces-river.png"), np.clip(to_screen(picture)[::-1], 0.0, 1.0))

astray = np.abs(points[:, 1] - place.middle(points[:, 0]))
clear = points[:, 2] - place.height(points[:, 0], points[:, 1])
print(f"{len(points)} particles, {snapshot.measures}; 95 % within {np.quantile(astray, 0.95):.3f} m of the middle")
assert len(points) > 2000
assert clear.min() > 0.4 * SPRING.spacing
assert np.quantile(astray, 0.95) < 1.5 * place.bed_half_width
