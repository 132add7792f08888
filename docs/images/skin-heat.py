"""Draws docs/images/skin-heat.png: python docs/images/skin-heat.py

A hot spot is put on a place of the liver where charts meet, and spreads for 20 s. Ends in a check: heat is kept.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from viscera.anatomy import liver
from viscera.device import open_device
from viscera.heat.conduction import make_heat, step_heat, total_heat
from viscera.skin import make_skin

SIDE, STEPS = 512, 80

device = open_device("cpu")
mesh = liver()
skin = make_skin(mesh, width=SIDE, device=device)
heat = make_heat(skin, dt=0.25)
texels = skin.texels.numpy()
position = skin.position.numpy()
# The front faces +z; the seam vertex nearest to the middle of the front.
ends = mesh.vertices[skin.seams.vertex].mean(axis=1)
front = ends[:, 2] > np.quantile(ends[:, 2], 0.6)
spot = ends[front][np.argmin(np.linalg.norm(ends[front][:, :2] - np.median(ends[front][:, :2], axis=0), axis=1))]
hot = np.zeros(SIDE * SIDE, dtype=np.float32)
hot[texels] = 60.0 * (np.linalg.norm(position[texels] - spot, axis=1) < 0.006)
heat.temperature.assign(hot)
before = total_heat(heat)
program = device.record(lambda stage: step_heat(stage, heat), work=skin.count * heat.stages)
for _ in range(STEPS):
    program.run()
warm = heat.temperature.numpy()

figure, axes = plt.subplots(1, 4, figsize=(18, 4.8), constrained_layout=True)
chart = np.full(SIDE * SIDE, np.nan)
face = skin.face.numpy()
chart[texels] = skin.atlas.chart[face[texels]]
axes[0].imshow(skin.image(chart), origin="lower", cmap="tab20", interpolation="nearest")
axes[0].set_title(f"atlas: {skin.atlas.charts} charts")
picture = skin.image(np.where(skin.coverage.numpy() > 0, warm, np.nan))
axes[1].imshow(picture, origin="lower", cmap="inferno")
axes[1].set_title("temperature in the texture")
# What a camera in front sees: many points of the surface, each with the temperature of its texel, unsmoothed.
REACH, PIXELS = 0.012, 260
centre = mesh.corners.mean(axis=1)
near = np.flatnonzero((mesh.face_vectors[:, 2] > 0) & (np.linalg.norm(centre - spot, axis=1) < 1.6 * REACH))
rng = np.random.default_rng(0)
size = np.linalg.norm(mesh.face_vectors[near], axis=1)
chosen = near[rng.choice(len(near), 2_000_000, p=size / size.sum())]
root, turn = np.sqrt(rng.random(len(chosen))), rng.random(len(chosen))
weights = np.stack([1 - root, root * (1 - turn), root * turn], axis=1)
place = np.einsum("nk,nkd->nd", weights, mesh.corners[chosen])[:, :2] - spot[:2]
column, row = np.floor(SIDE * np.einsum("nk,nkd->nd", weights, skin.atlas.corners[chosen])).astype(int).T
pixel = np.floor((place / REACH + 1.0) * 0.5 * PIXELS).astype(int)
inside = ((pixel >= 0) & (pixel < PIXELS)).all(axis=1)
view = np.full((PIXELS, PIXELS), np.nan)
view[pixel[inside, 1], pixel[inside, 0]] = warm[(row * SIDE + column)[inside]]
millimetres = 1000 * REACH * np.array([-1, 1, -1, 1])
for axis, seams in ((axes[2], True), (axes[3], False)):
    axis.imshow(view, origin="lower", extent=millimetres, cmap="inferno", interpolation="nearest")
    if seams:
        for a, b in 1000 * (mesh.vertices[skin.seams.vertex] - spot):
            if min(np.linalg.norm(a), np.linalg.norm(b)) < 2000 * REACH:
                axis.plot([a[0], b[0]], [a[1], b[1]], color="cyan", linewidth=0.8)
    axis.set(xlim=millimetres[:2], ylim=millimetres[2:])
    axis.set_title("on the organ" + (", seams drawn" if seams else "") + " [mm]")
figure.savefig(Path(__file__).with_name("skin-heat.png"), dpi=70)
print(f"heat changed by {total_heat(heat) / before - 1:.1e}; warmest {warm.max():.2f} K")
assert abs(total_heat(heat) / before - 1) < 1e-5
