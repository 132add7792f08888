"""Deferred shading: colour of each pixel from depth, normal and thickness; for saved pictures, in NumPy.

With the outward normal n, the direction e to the eye and l to the lamp (Grahn §7.4.3):

    diffuse      I_d = L M max(n·l, 0)                                             (7.12)
    specular     I_s = L M max(r·e, 0)^s,    r = 2n(l·n) − l                       (7.13, 7.14)
    refraction   Snell: η_i sin α_i = η_t sin α_t                                  (7.15)
    Fresnel      R = R₀ + (1 − R₀)(1 − e·n)⁵,    R₀ = ((η − 1)/(η + 1))²           (Schlick; 7.16 lacks R₀)
    together     I = I_reflection R + I_refraction (1 − R)                         (the source swaps the two)

Refraction looks up the picture behind the liquid where the refracted ray has gone through its thickness d, and absorbs
with Beer and Lambert per channel. A liquid that scatters (barium, blood) covers what is behind it and is lit itself:

    I_refraction = background e^(−(µ + σ) d) + albedo light (1 − e^(−σ d))

Differs from the source: no cube map and no stencil; the surroundings that are mirrored are a function of the direction,
and light bends once, where it enters. The page draws the same with `web/src/look/fluid.ts`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from viscera.errors import InputError
from viscera.imaging.lens import Lens
from viscera.imaging.splats import GBuffer

FloatArray = NDArray[np.float64]
Surroundings = Callable[[FloatArray], FloatArray]
"""Light that comes from directions (n, 3), as (n, 3)."""

SCHLICK_POWER = 5


@dataclass(frozen=True)
class Look:
    """How a liquid looks. Colours are red, green, blue."""

    absorption: tuple[float, float, float]
    """µ [1/m]"""
    scattering: float
    """σ [1/m]"""
    albedo: tuple[float, float, float]
    """Of what is scattered back."""
    index: float
    """η, of refraction."""
    shininess: float
    """s"""
    specular: float
    """M: how bright the mirrored lamp is, in units of what it gives a white surface; tuned for appearance."""
    wrap: float = 0.0
    """How far light creeps around an edge, 0 to 1: what scatters deeply has a soft terminator; tuned for appearance."""


WATER = Look((3.5, 0.6, 0.1), 0.4, (0.75, 0.86, 0.9), 1.333, 300.0, 60.0)
"""Pure water absorbs 0.35/m at 650 nm, 0.06 at 550, 0.01 at 450 (Pope and Fry 1997): ten times that, as a tank of a few
centimetres would otherwise show no colour at all; tuned for appearance."""

BARIUM = Look((0.0, 0.0, 0.0), 4000.0, (0.93, 0.92, 0.89), 1.35, 25.0, 4.0, 0.1)
"""Barium sulphate in suspension: white, opaque within half a millimetre, dull; tuned for appearance."""

BLOOD = Look((350.0, 23000.0, 33000.0), 700.0, (0.17, 0.005, 0.004), 1.35, 220.0, 40.0, 0.1)
"""Oxygenated haemoglobin at 150 g/L near 630, 550 and 450 nm (Prahl, omlc.org/spectra/hemoglobin); scattering and
albedo tuned for appearance."""

LOOKS = {"water": WATER, "barium": BARIUM, "blood": BLOOD}


def look_of(name: str) -> Look:
    if name not in LOOKS:
        raise InputError(f"the look {name!r} is not known.", f"Known are {', '.join(LOOKS)}.")
    return LOOKS[name]


@dataclass(frozen=True)
class Light:
    """A lamp at a place, and what surrounds the scene."""

    lamp: tuple[float, float, float]
    """Where it is [m]."""
    power: float
    """Light of a white surface that faces the lamp."""
    surroundings: Surroundings
    ambient: float = 0.25
    """Light from all around on a white surface."""


def fresnel(cosine: ArrayLike, index: float) -> FloatArray:
    """R: share of light that is mirrored, for the cosine e·n (Schlick 1994)."""
    r0 = ((index - 1.0) / (index + 1.0)) ** 2
    return r0 + (1.0 - r0) * (1.0 - np.clip(np.asarray(cosine, dtype=np.float64), 0.0, 1.0)) ** SCHLICK_POWER


def refract(direction: FloatArray, normal: FloatArray, index: float) -> FloatArray:
    """The unit `direction` (n, 3) after it has entered a medium of `index` through a surface with `normal` (7.15)."""
    cosine = -(direction * normal).sum(axis=-1, keepdims=True)
    inner = np.sqrt(np.maximum(1.0 - (1.0 - cosine**2) / index**2, 0.0))
    return direction / index + (cosine / index - inner) * normal


def shade(
    lens: Lens, liquid: GBuffer, look: Look, light: Light, background: FloatArray, background_depth: FloatArray
) -> FloatArray:
    """The picture (height, width, 3), in light (before `to_screen`), of a liquid before `background`; what is nearer
    than the liquid hides it."""
    picture = np.array(background, dtype=np.float64)
    seen = np.isfinite(liquid.depth) & (liquid.depth < background_depth)
    if not seen.any():
        return picture
    way = lens.directions()[seen]
    depth = liquid.depth[seen].astype(np.float64)
    normal = liquid.normal[seen].astype(np.float64)
    # Behind the solid that is seen through the liquid there is no more liquid.
    length = np.linalg.norm(way, axis=1)
    thickness = np.minimum(liquid.thickness[seen], (background_depth[seen] - depth) * length)
    way = way / length[:, None]
    eye = -way
    point = np.asarray(lens.camera.position) + depth[:, None] * length[:, None] * way
    cosine = (eye * normal).sum(axis=1)
    mirrored = fresnel(cosine, look.index)[:, None]

    inside = refract(way, normal, look.index)
    bent, hidden = _look_up(lens, background, background_depth, point + thickness[:, None] * inside, depth)
    behind = np.where(hidden[:, None], picture[seen], bent)
    lamp = np.asarray(light.lamp) - point
    lamp /= np.linalg.norm(lamp, axis=1, keepdims=True)
    facing = (normal * lamp).sum(axis=1)
    diffuse = light.power * np.maximum((facing + look.wrap) / (1.0 + look.wrap), 0.0) + light.ambient
    d = thickness[:, None]
    kept = np.exp(-(np.asarray(look.absorption) + look.scattering) * d)
    body = np.asarray(look.albedo) * diffuse[:, None] * (1.0 - np.exp(-look.scattering * d))
    transmitted = behind * kept + body

    away = 2.0 * normal * cosine[:, None] - eye
    toward = 2.0 * normal * facing[:, None] - lamp
    glint = np.maximum((toward * eye).sum(axis=1), 0.0) ** look.shininess * (facing > 0.0)
    reflection = light.surroundings(away) + look.specular * light.power * glint[:, None]
    picture[seen] = reflection * mirrored + transmitted * (1.0 - mirrored)
    return picture


def shade_solid(lens: Lens, solid: GBuffer, colour: FloatArray, light: Light) -> FloatArray:
    """A matte solid of `colour` (height, width, 3) or (3,), the surroundings where there is none."""
    way = lens.directions()
    way /= np.linalg.norm(way, axis=-1, keepdims=True)
    picture = light.surroundings(way.reshape(-1, 3)).reshape(way.shape)
    seen = np.isfinite(solid.depth)
    point = np.asarray(lens.camera.position) + solid.depth[seen][:, None] * lens.directions()[seen]
    lamp = np.asarray(light.lamp) - point
    lamp /= np.linalg.norm(lamp, axis=1, keepdims=True)
    facing = np.maximum((solid.normal[seen] * lamp).sum(axis=1), 0.0)
    albedo = np.broadcast_to(colour, picture.shape)[seen]
    picture[seen] = albedo * (light.power * facing + light.ambient)[:, None]
    return picture


def to_screen(light: FloatArray) -> FloatArray:
    """Light to screen values 0 to 1: the film curve of Hejl and Burgess-Dawson (2010), gamma included."""
    x = np.maximum(light - 0.004, 0.0)
    return (x * (6.2 * x + 0.5)) / (x * (6.2 * x + 1.7) + 0.06)


def _look_up(
    lens: Lens, picture: FloatArray, picture_depth: FloatArray, points: FloatArray, depth: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """The picture where points are seen, linear between pixels, its rim repeated; and where that shows something nearer
    than the liquid, which cannot be seen through it."""
    at = lens.project(points)[:, :2] - 0.5
    x = np.clip(at[:, 0], 0.0, lens.width - 1.001)
    y = np.clip(at[:, 1], 0.0, lens.height - 1.001)
    i, j = x.astype(int), y.astype(int)
    u, v = (x - i)[:, None], (y - j)[:, None]
    low = (1.0 - u) * picture[j, i] + u * picture[j, i + 1]
    high = (1.0 - u) * picture[j + 1, i] + u * picture[j + 1, i + 1]
    return (1.0 - v) * low + v * high, picture_depth[j, i] < depth
