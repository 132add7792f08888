"""Draws docs/images/film-splat.png: python docs/images/film-splat.py

What Figure 6 of Kvick's report shows: particle positions, and what is drawn from them; once as the document does it (0
or 1 per texel, about one particle per texel as in its benchmarks, max(v, k b), mean of nine; the glow at the borders is
the one it names), once as here. A tilted sheet with two veins. Ends in a check: beyond a splat's reach nothing is wet.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from viscera.blood.film.film import make_film, step_film
from viscera.blood.film.params import FilmParams
from viscera.blood.picture.image import film_normals, make_film_image, step_film_image
from viscera.blood.wounds.vessels import vessel_mmhg
from viscera.blood.wounds.wounds import add_wound, make_wounds, step_wounds
from viscera.device import open_device
from viscera.geometry import TriangleMesh
from viscera.geometry.atlas import AtlasSettings, unique_atlas
from viscera.skin import make_skin

SIDE, TEXELS, THEIRS, FRAMES = 0.08, 512, 64, 150
FADE = 0.9
"""The document's k; it prints none."""
ABSORPTION = np.array([350.0, 23_000.0, 33_000.0])
"""µa of oxygenated blood near 630, 550 and 450 nm [1/m] (Prahl's tables at 150 g/L)."""
TISSUE, BLOOD = np.array([0.45, 0.17, 0.12]), np.array([0.12, 0.004, 0.003])
DOCUMENT_BLOOD = np.array([0.35, 0.0, 0.0])


def sheet() -> TriangleMesh:
    line = np.linspace(-0.5 * SIDE, 0.5 * SIDE, 25)
    x, y = (g.ravel() for g in np.meshgrid(line, line))
    low = (np.arange(24)[:, None] * 25 + np.arange(24)).ravel()
    quads = np.stack([low, low + 1, low + 26, low + 25], axis=1)
    uv = 0.5 + np.stack([x, y], axis=1) * (0.99 / SIDE)
    triangles = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    return TriangleMesh(np.stack([x, y, 0 * x], axis=1), triangles, "sheet", uv.astype(np.float32))


device = open_device("cpu")
mesh = sheet()
skin = make_skin(mesh, unique_atlas(mesh, AtlasSettings(TEXELS)), TEXELS, device=device)
params = FilmParams(gravity=(1.2, -3.0, -9.2))
film = make_film(skin, params, capacity=6000)
assert film.surface is not None
wounds = make_wounds(film.surface, params, film.state)
image = make_film_image(skin, params, film.state)
add_wound(wounds, (-0.012, 0.022, 0.0), vessel_mmhg(6.0, 6.0, 4.0), 0.2e-3)
add_wound(wounds, (0.012, 0.008, 0.0), vessel_mmhg(6.0, 6.0, 4.0), 0.1e-3)


def frame(stage) -> None:
    step_wounds(stage, wounds)
    for _ in range(8):
        step_film(stage, film)
    step_film_image(stage, image)


program = device.record(frame, work=film.work)
b = np.zeros((THEIRS, THEIRS))
"""The document's picture, at its resolution: that of the hash."""
for _ in range(FRAMES):
    program.run()
    count = int(film.state.count.numpy()[0])
    at = film.state.position.numpy()[:count]
    texel = ((0.5 + at[:, :2] * (0.99 / SIDE)) * len(b)).astype(int)
    v = FADE * b
    v[texel[:, 1], texel[:, 0]] = 1.0
    b = sum(np.roll(v, (dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1)) / 9.0
device.record(lambda stage: film_normals(stage, image), work=1).run()

height = skin.image(image.height.numpy())
normal = skin.image(image.normal.numpy())
through = np.exp(-2.0 * height[..., None] * ABSORPTION)
colour = TISSUE * through + BLOOD * (1.0 - through)
lamp = np.array([-0.35, 0.45, 1.0])
lamp /= np.linalg.norm(lamp)
half = lamp + np.array([0.0, 0.0, 1.0])
half /= np.linalg.norm(half)
wet = np.clip(height / 6e-5, 0.0, 1.0)
steep = normal * (3.0, 3.0, 1.0)
steep /= np.linalg.norm(steep, axis=-1, keepdims=True).clip(1e-9)
colour = colour * (0.6 + 0.6 * np.clip(steep @ lamp, 0, 1))[..., None]
colour = colour + (0.9 * wet * np.clip(steep @ half, 0, 1) ** 120)[..., None]
covered = skin.image(skin.coverage.numpy()) > 0
colour[~covered] = TISSUE

theirs = TISSUE * (1 - b[..., None]) + DOCUMENT_BLOOD * b[..., None]
extent = [-500 * SIDE, 500 * SIDE, -500 * SIDE, 500 * SIDE]
figure, axes = plt.subplots(1, 3, figsize=(15, 5.2), constrained_layout=True)
axes[0].set_facecolor("black")
axes[0].scatter(1e3 * at[:, 0], 1e3 * at[:, 1], s=2, c="white", linewidths=0)
axes[0].set_title(f"{count} particles")
axes[1].imshow(np.clip(theirs, 0, 1) ** (1 / 2.2), origin="lower", extent=extent, interpolation="bilinear")
axes[1].set_title("the document's way: max(v, k b), mean of nine")
axes[2].imshow(np.clip(colour, 0, 1) ** (1 / 2.2), origin="lower", extent=extent)
axes[2].set_title("thickness, absorption, highlights")
for axis in axes:
    axis.set(xlim=(-38, 38), ylim=(-38, 38), aspect="equal", xlabel="mm")
figure.savefig(Path(__file__).with_name("film-splat.png"), dpi=70)

line = ((np.arange(THEIRS) + 0.5) / THEIRS - 0.5) * SIDE / 0.99
places = np.stack(np.meshgrid(line, line), axis=-1).reshape(-1, 1, 2)
nearest = np.sqrt(((places - at[None, :, :2]) ** 2).sum(axis=2).min(axis=1))
far = (nearest > image.params.radius + 1.5e-3).reshape(THEIRS, THEIRS)
trail = image.params.trail
ours = height[TEXELS // THEIRS // 2 :: TEXELS // THEIRS, TEXELS // THEIRS // 2 :: TEXELS // THEIRS][far].max()
print(f"{count} particles; beyond a splat: ours at most {1e6 * ours:.1f} µm (a trail starts with {1e6 * trail:.0f})")
assert ours <= trail * 1.001
