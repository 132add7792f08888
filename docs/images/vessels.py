"""Draws docs/images/vessels.png: python docs/images/vessels.py

4 096 particles in the colon of 8 040 triangles, upright and after the patient is turned on the side; three other
colons; and a ball in a corner, with one wall resolved per step as in the source and with contacts as they are here.
Ends in checks: nobody is outside, and the ball lies still.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import warp as wp
from matplotlib.collections import PolyCollection

from viscera.anatomy.colon import colon
from viscera.bench.vessels import filled
from viscera.device import Stage, open_device
from viscera.geometry import TriangleMesh, build_query, signed_distance
from viscera.water.boundary.contacts import live, make_contacts, step_contacts
from viscera.water.boundary.shapes import plane
from viscera.water.boundary.walls import make_walls
from viscera.water.sph import step_fluid
from viscera.water.state import particles, set_params

STEPS, RADIUS, DT, GRAVITY = 4000, 0.002, 1e-3, 9.81
ANGLE = math.radians(50.0)


def draw_inside(axis: plt.Axes, mesh: TriangleMesh, colour: tuple[float, float, float]) -> None:
    """The back wall, seen from the front through a front wall that is left out; light at the eye."""
    normal = mesh.face_vectors / np.linalg.norm(mesh.face_vectors, axis=1, keepdims=True)
    back = np.flatnonzero(normal[:, 2] < 0.05)
    back = back[np.argsort(mesh.corners[back, :, 2].mean(axis=1))]
    shade = 0.25 + 0.75 * np.clip(-normal[back, 2], 0.0, 1.0)
    faces = PolyCollection(1000 * mesh.corners[back][:, :, :2], facecolors=shade[:, None] * np.array(colour))
    faces.set_edgecolor("face")
    axis.add_collection(faces)
    axis.set_aspect("equal")
    axis.autoscale_view()
    axis.set_axis_off()


def corner(both: bool) -> np.ndarray:
    """Height of a ball in a wedge, in every step of 0.3 s."""
    half = 0.5 * ANGLE
    normals = [np.array([s * math.cos(half), math.sin(half), 0.0]) for s in (1.0, -1.0)]
    rest = RADIUS / math.sin(half)
    x, v, track = np.array([0.0008, rest + 0.003, 0.0]), np.zeros(3), []
    if both:
        walls = make_walls(shapes=[plane((0, 0, 0), tuple(n)) for n in normals], radius=RADIUS, device=device)
        contacts = make_contacts(walls, 1)
        count, dt = live(1, walls), live(DT, walls)
        arrays = [wp.array([x], dtype=wp.vec3, device="cpu") for _ in range(2)] + [
            wp.zeros(1, dtype=wp.vec3, device="cpu")
        ]
    for _ in range(300):
        v = v + DT * np.array([0.0, -GRAVITY, 0.0])
        if both:
            for array, values in zip(arrays, (x, x + DT * v, v), strict=True):
                array.assign(np.array([values], dtype=np.float32))
            step_contacts(Stage(device, 0, 1, None), contacts, count, dt, *arrays)
            x, v = arrays[1].numpy()[0].astype(float), arrays[2].numpy()[0].astype(float)
        else:
            # Grahn §7.3: reflect at the wall that is met and project out of it; the other wall is left to the next
            # step.
            x = x + DT * v
            depth = [RADIUS - n @ x for n in normals]
            deepest = int(np.argmax(depth))
            if depth[deepest] > 0.0:
                n = normals[deepest]
                v = v - 1.0 * min(v @ n, 0.0) * n
                x = x + depth[deepest] * n
        track.append(1000 * np.linalg.norm(v))
    return np.array(track)


device = open_device("cpu")
mesh = colon()
both = filled(mesh, 4096, "hashed", device)
program = device.record(lambda stage: step_fluid(stage, both.fluid), work=4096)
pictures = []
for gravity in ((0.0, -GRAVITY, 0.0), (GRAVITY, 0.0, 0.0)):
    set_params(both.fluid, replace(both.fluid.params, gravity=gravity))
    for _ in range(STEPS):
        program.run()
    pictures.append(particles(both.fluid)["position"])
    assert signed_distance(build_query(mesh), pictures[-1]).max() < 0.0

figure = plt.figure(figsize=(16, 5.6), constrained_layout=True)
grid = figure.add_gridspec(1, 4, width_ratios=[1.0, 1.0, 1.0, 0.9])
for place, (points, title) in enumerate(zip(pictures, ("upright", "on the left side"), strict=True)):
    axis = figure.add_subplot(grid[place])
    draw_inside(axis, mesh, (0.86, 0.55, 0.50))
    order = np.argsort(points[:, 2])
    axis.scatter(
        *(1000 * points[order, :2]).T, s=9, c=points[order, 2], cmap="bone", vmin=-0.12, vmax=0.05, linewidths=0
    )
    axis.set_title(f"4 096 particles, 8 040 triangles, {title}")
small = grid[2].subgridspec(2, 2)
for place, seed in enumerate((1, 2, 3, 4)):
    axis = figure.add_subplot(small[place // 2, place % 2])
    draw_inside(axis, colon(seed, 16_000), (0.86, 0.55, 0.50))
    axis.set_title(f"seed {seed}", fontsize=9)
axis = figure.add_subplot(grid[3])
tracks = {"one wall per step (as in the source)": corner(False), "contacts here": corner(True)}
for name, track in tracks.items():
    axis.plot(np.arange(300), np.maximum(track, 1e-5), label=name, linewidth=0.9)
axis.set(
    yscale="log",
    xlabel="step of 1 ms",
    ylabel="speed [mm/s]",
    title=f"a ball in a corner of {math.degrees(ANGLE):.0f}°",
)
axis.legend(fontsize=8)
axis.grid(True, alpha=0.3)
figure.savefig(Path(__file__).with_name("vessels.png"), dpi=75)
document, ours = (float(np.abs(track[-100:]).max()) for track in tracks.values())
print(f"nobody outside; speed in the corner: {document:.2f} mm/s with one wall per step, {ours:.1e} mm/s here")
assert ours < 1e-3 * document
