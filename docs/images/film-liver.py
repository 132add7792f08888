"""Draws docs/images/film-liver.png: python docs/images/film-liver.py

Four veins bleed on the front of the liver for ten seconds; blood runs down, gathers at the rim and drips. Seen as
through an endoscope: the light sits at the lens, tissue is wet, blood absorbs by its thickness (Beer–Lambert,
haemoglobin at 150 g/L). Ends in checks: volume is kept exactly, and what is drawn is what is there.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from viscera.anatomy import liver
from viscera.blood.balance import check_balance, make_ledger, step_ledger
from viscera.blood.drops.drops import make_drops, step_drops
from viscera.blood.film.film import make_film, step_film
from viscera.blood.film.params import FilmParams
from viscera.blood.picture.image import film_normals, make_film_image, shown_volume, step_film_image, thickness_of
from viscera.blood.wounds.vessels import vessel_mmhg
from viscera.blood.wounds.wounds import add_wound, make_wounds, step_wounds
from viscera.device import open_device
from viscera.skin import Skin, make_skin

SIDE = 1024
FRAMES, SUBSTEPS = 600, 8
EYE, LOOK_AT, FIELD = np.array([-0.005, 0.012, 0.135]), np.array([0.004, -0.012, 0.03]), 0.60
"""Camera [m] and tangent of half its field of view."""
PIXELS = 900
VEINS = ((-0.03, 0.035, 0.10e-3), (0.005, 0.03, 0.17e-3), (0.026, 0.045, 0.08e-3), (0.05, 0.02, 0.11e-3))
"""Where, and radius of the opening [m]."""
CAVITY = np.array([0.012, 0.004, 0.003])
"""What lies behind, out of reach of the light."""
DROP_RADIUS = 0.36e-3
"""Of a ball of 0.2 µL [m]."""
LAMPS = np.array([[0.005, 0.003, 0.0], [-0.005, 0.003, 0.0], [0.0, -0.005, 0.0]])
"""Ends of the light guide around the lens [m]."""

ABSORPTION = np.array([350.0, 23_000.0, 33_000.0])
"""µa of oxygenated blood near 630, 550 and 450 nm [1/m] (Prahl's tables at 150 g/L)."""
OLD_ABSORPTION = np.array([2_300.0, 24_000.0, 33_000.0])
"""Deoxygenated at 630 nm; green and blue hardly differ."""
BILE_ABSORPTION = np.array([300.0, 1_500.0, 12_000.0])
SCATTERED = np.array([0.05, 0.002, 0.0015])
"""What a deep pool of blood sends back. Tuned: dark red."""
TISSUE = np.array([0.105, 0.031, 0.022])
"""Of liver under white light. Tuned."""


def simulate() -> tuple[Skin, dict[str, np.ndarray]]:
    device = open_device("cpu")
    mesh = liver()
    skin = make_skin(mesh, width=SIDE, device=device)
    params = FilmParams(gravity=(0.0, -9.81, 0.0), clot_rate=0.02)
    film = make_film(skin, params, capacity=24_000)
    assert film.surface is not None
    drops = make_drops(film.surface, params, film.state)
    wounds = make_wounds(film.surface, params, film.state)
    image = make_film_image(skin, params, film.state)
    for x, y, opening in VEINS:
        add_wound(wounds, front(mesh, x, y), vessel_mmhg(8.0, 6.0, 4.0), opening)
    ledger = make_ledger(film.state, wounds, drops)

    def frame(stage) -> None:
        step_wounds(stage, wounds)
        for _ in range(SUBSTEPS):
            step_film(stage, film)
        step_drops(stage, drops)
        step_film_image(stage, image)
        step_ledger(stage, ledger)

    program = device.record(frame, work=film.work)
    for number in range(FRAMES):
        wounds.drive.host[:] = 0.5 - 0.5 * np.cos(2 * np.pi * number * image.dt), 0.0
        program.run()
    balance = check_balance(ledger, FRAMES)
    device.record(lambda stage: film_normals(stage, image), work=1).run()
    count = int(drops.state.count.numpy()[0])
    print({k: round(1e9 * v, 1) for k, v in vars(balance).items() if k != "missing"}, "µL")
    print(f"drawn {1e9 * shown_volume(image):.1f} µL of {1e9 * balance.film:.1f} µL")
    assert balance.missing == 0
    drawn = thickness_of(image.picture()[..., 0], image.params)
    covered = skin.image(skin.coverage) > 0
    assert np.abs(drawn - skin.image(image.height))[covered].max() < 1e-5  # half a step of a byte at 0.5 mm
    assert 0.9 < shown_volume(image) / balance.film < 1.1
    return skin, {
        "picture": image.picture(),
        "height": bordered(skin, image.height.numpy()),
        "slope": bordered(skin, image.normal.numpy() - flat_normals(skin)),
        "drops": drops.state.position.numpy()[:count],
    }


def flat_normals(skin: Skin) -> np.ndarray:
    normals = skin.mesh.face_vectors / np.linalg.norm(skin.mesh.face_vectors, axis=1, keepdims=True)
    return np.where(skin.coverage.numpy()[:, None] > 0, normals[skin.face.numpy()], 0.0)


def bordered(skin: Skin, values: np.ndarray) -> np.ndarray:
    """A map with its charts' borders repeated outward, as the packed picture has them."""
    covered = skin.coverage.numpy() > 0
    full = np.where(covered.reshape(-1, *[1] * (values.ndim - 1)), values, 0.0)
    full = skin.image(full)
    have = skin.image(covered)
    for _ in range(2):
        for shift, axis in ((1, 0), (-1, 0), (1, 1), (-1, 1)):
            near, there = np.roll(full, shift, axis), np.roll(have, shift, axis)
            take = there & ~have
            full = np.where(take if full.ndim == 2 else take[..., None], near, full)
            have = have | there
    return full


def front(mesh, x: float, y: float) -> np.ndarray:
    vertices = mesh.vertices
    ahead = np.flatnonzero(vertices[:, 2] > np.median(vertices[:, 2]))
    return vertices[ahead[np.argmin(np.linalg.norm(vertices[ahead, :2] - (x, y), axis=1))]]


def rasterise(skin: Skin) -> tuple[np.ndarray, ...]:
    """Triangle and weights in every pixel: a depth buffer, perspective correct."""
    mesh = skin.mesh
    screen, ahead = project(mesh.vertices)
    depth = np.full((PIXELS, PIXELS), np.inf)
    face = np.full((PIXELS, PIXELS), -1)
    weight = np.zeros((PIXELS, PIXELS, 3))
    for k, corner in enumerate(mesh.triangles):
        p, z = screen[corner], ahead[corner]
        area = (p[1, 0] - p[0, 0]) * (p[2, 1] - p[0, 1]) - (p[2, 0] - p[0, 0]) * (p[1, 1] - p[0, 1])
        if area >= 0 or (z <= 0).any():
            continue
        low, high = np.floor(p.min(axis=0)).astype(int), np.ceil(p.max(axis=0)).astype(int)
        low, high = np.maximum(low, 0), np.minimum(high, PIXELS - 1)
        if (high < low).any():
            continue
        y, x = np.mgrid[low[1] : high[1] + 1, low[0] : high[0] + 1] + 0.5
        sides = [p[[1, 2]], p[[2, 0]], p[[0, 1]]]
        b = [((q[0, 0] - x) * (q[1, 1] - y) - (q[1, 0] - x) * (q[0, 1] - y)) / area for q in sides]
        b = np.stack(b, axis=-1) / z
        inverse = b.sum(axis=-1)
        where = (b >= 0).all(axis=-1) & (inverse > 0)
        far = np.where(where, 1.0 / np.where(where, inverse, 1.0), np.inf)
        window = (slice(low[1], high[1] + 1), slice(low[0], high[0] + 1))
        nearer = far < depth[window]
        depth[window] = np.where(nearer, far, depth[window])
        face[window] = np.where(nearer, k, face[window])
        weight[window] = np.where(nearer[..., None], b / np.where(where, inverse, 1.0)[..., None], weight[window])
    return face, weight, depth


def project(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Place on the screen [pixels] and depth [m]."""
    forward = (LOOK_AT - EYE) / np.linalg.norm(LOOK_AT - EYE)
    right = np.cross(forward, (0.0, 1.0, 0.0))
    right /= np.linalg.norm(right)
    at = (points - EYE) @ np.stack([right, np.cross(right, forward), forward], axis=1)
    return (at[:, :2] / (at[:, 2:] * FIELD) * (1, -1) * 0.5 + 0.5) * PIXELS, at[:, 2]


def draw_drops(out: np.ndarray, drops: np.ndarray, depth: np.ndarray) -> None:
    """Dark red balls with a small highlight, behind what is nearer."""
    if not len(drops):
        return
    place, far = project(drops)
    y, x = np.mgrid[:PIXELS, :PIXELS] + 0.5
    for (px, py), z in sorted(zip(place, far, strict=True), key=lambda d: -d[1]):
        size = DROP_RADIUS / (z * FIELD) * 0.5 * PIXELS
        if not (0 <= px < PIXELS and 0 <= py < PIXELS) or z <= 0:
            continue
        window = tuple(slice(max(int(c - size) - 1, 0), int(c + size) + 2) for c in (py, px))
        dx, dy = (x[window] - px) / size, (y[window] - py) / size
        ball = (dx**2 + dy**2 < 1) & (z < depth[window])
        bright = (0.105 / z) ** 2 * (0.25 + 0.75 * np.sqrt(np.clip(1 - dx**2 - dy**2, 0, 1)))
        glint = 0.8 * ((dx**2 + (dy + 0.3) ** 2) < 0.06)
        out[window][ball] = (np.array([0.11, 0.003, 0.002]) * bright[..., None] + glint[..., None])[ball]


def noise(points: np.ndarray, size: float, seed: int) -> np.ndarray:
    """Smooth value noise in space, -1 to 1."""
    rng = np.random.default_rng(8)
    mixed, table = rng.permutation(256), rng.uniform(-1, 1, 256)
    p = points / size + 1000.0
    cell = np.floor(p).astype(np.int64)
    part = p - cell
    part = part * part * (3 - 2 * part)
    total = np.zeros(len(points))
    for corner in np.ndindex(2, 2, 2):
        x, y, z = ((cell + corner) & 255).T
        value = table[(mixed[(mixed[(mixed[x] + y) & 255] + z) & 255] + seed) & 255]
        total += value * np.prod(np.where(corner, part, 1 - part), axis=1)
    return total


def sample(texture: np.ndarray, uv: np.ndarray) -> np.ndarray:
    """Bilinear, as a page reads it."""
    p = uv * (texture.shape[1], texture.shape[0]) - 0.5
    low = np.floor(p).astype(int)
    part = p - low
    total = 0.0
    for dx, dy in np.ndindex(2, 2):
        x, y = np.clip(low[:, 0] + dx, 0, texture.shape[1] - 1), np.clip(low[:, 1] + dy, 0, texture.shape[0] - 1)
        w = np.where(dx, part[:, 0], 1 - part[:, 0]) * np.where(dy, part[:, 1], 1 - part[:, 1])
        total = total + w[:, None] * texture[y, x]
    return total


def shade(skin: Skin, seen_film: dict[str, np.ndarray], pixels: tuple[np.ndarray, ...]) -> np.ndarray:
    mesh = skin.mesh
    face, weight, depth = pixels
    seen = face >= 0
    f, w = face[seen], weight[seen]
    place = np.einsum("nk,nkd->nd", w, mesh.vertices[mesh.triangles[f]])
    vertex_normal = np.zeros_like(mesh.vertices)
    for k in range(3):
        np.add.at(vertex_normal, mesh.triangles[:, k], mesh.face_vectors)
    normal = np.einsum("nk,nkd->nd", w, vertex_normal[mesh.triangles[f]])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    uv = np.einsum("nk,nkd->nd", w, skin.atlas.corners[f])
    pixel = sample(seen_film["picture"].astype(np.float64), uv)
    thick = sample(seen_film["height"][..., None].astype(np.float64), uv)[:, 0]
    slope = sample(seen_film["slope"].astype(np.float64), uv)
    blood, bile, old = pixel[:, 1] / 255, pixel[:, 2] / 255, pixel[:, 3] / 255
    cover = np.clip(thick / 6e-5, 0, 1)[:, None]
    grain = np.stack([noise(place, 9e-4, s) + 0.6 * noise(place, 3.5e-4, s + 9) for s in (1, 2, 3)], axis=1)
    wet = normal + 2.5 * slope + (0.10 * (1 - cover) + 0.015 * cover) * grain
    wet /= np.linalg.norm(wet, axis=1, keepdims=True)
    toward = EYE - place
    distance = np.linalg.norm(toward, axis=1, keepdims=True)
    toward /= distance
    light = (0.105 / distance) ** 2
    facing = np.einsum("nd,nd->n", normal, toward)[:, None]
    soft = np.clip((facing + 0.2) / 1.2, 0, 1)
    mottle = 1 + 0.10 * noise(place, 6e-3, 5)[:, None] + 0.10 * noise(place, 1.4e-3, 6)[:, None]
    tissue = TISSUE * mottle
    absorbed = thick[:, None] * (
        (blood * (1 - old))[:, None] * ABSORPTION
        + (blood * old)[:, None] * OLD_ABSORPTION
        + bile[:, None] * BILE_ABSORPTION
    )
    through = np.exp(-2 * absorbed)
    body = SCATTERED * (1 - 0.6 * old[:, None])
    colour = tissue * through + body * (1 - through)
    colour = colour * soft * light
    for side in LAMPS:
        lamp = EYE + side - place
        lamp /= np.linalg.norm(lamp, axis=1, keepdims=True)
        half = lamp + toward
        half /= np.linalg.norm(half, axis=1, keepdims=True)
        shine = np.clip(np.einsum("nd,nd->n", wet, half), 0, 1)[:, None]
        colour = colour + light * (0.10 + 0.55 * cover) * shine ** (420 * cover + 240 * (1 - cover))
    out = np.tile(CAVITY, (*face.shape, 1))
    out[seen] = colour
    draw_drops(out, seen_film["drops"], depth)
    y, x = np.mgrid[-1 : 1 : PIXELS * 1j, -1 : 1 : PIXELS * 1j]
    out *= np.clip((1.0 - np.hypot(x, y)) * 12, 0, 1)[..., None] * (1 - 0.35 * np.hypot(x, y)[..., None] ** 2)
    out = out * 2.0
    out = out * (1 + out / 6.0) / (1 + out)  # Reinhard's curve with a white of about 2.4
    return np.clip(out, 0, 1) ** (1 / 2.2)


if __name__ == "__main__":
    skin, film = simulate()
    shown = shade(skin, film, rasterise(skin))
    plt.imsave(Path(__file__).with_name("film-liver.png"), shown)
