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

figure, axes = plt.subplots(1, 4, figsize=(16, 4.2), constrained_layout=True)
chart = np.full(SIDE * SIDE, np.nan)
face = skin.face.numpy()
chart[texels] = skin.atlas.chart[face[texels]]
axes[0].imshow(skin.image(chart), origin="lower", cmap="tab20", interpolation="nearest")
axes[0].set_title(f"atlas: {skin.atlas.charts} charts")
picture = skin.image(np.where(skin.coverage.numpy() > 0, warm, np.nan))
axes[1].imshow(picture, origin="lower", cmap="inferno")
axes[1].set_title("temperature in the texture")
normal = mesh.face_vectors[face[texels], 2]
seen = (normal > 0) & (np.linalg.norm(position[texels] - spot, axis=1) < 0.02)
for axis, seams in ((axes[2], True), (axes[3], False)):
    at = 1000 * position[texels][seen]
    axis.scatter(at[:, 0], at[:, 1], c=warm[texels][seen], s=40, marker="s", cmap="inferno", linewidths=0)
    if seams:
        for a, b in 1000 * mesh.vertices[skin.seams.vertex]:
            if np.linalg.norm(a / 1000 - spot) < 0.02:
                axis.plot([a[0], b[0]], [a[1], b[1]], color="cyan", linewidth=0.8)
    axis.set_aspect("equal")
    axis.set_title("on the organ" + (", seams drawn" if seams else "") + " [mm]")
figure.savefig(Path(__file__).with_name("skin-heat.png"), dpi=70)
print(f"heat changed by {total_heat(heat) / before - 1:.1e}; warmest {warm.max():.2f} K")
assert abs(total_heat(heat) / before - 1) < 1e-5
