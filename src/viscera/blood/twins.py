"""Blood's loops in C beside their plain twins."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import warp as wp

from viscera.blood.columns import DRY, NO_GROUND, POOL_KINDS, no_pool
from viscera.blood.film import forces, mixing, native, native_mixing, native_moves
from viscera.blood.film import kernels as film_kernels
from viscera.blood.film.border import film_count, spawn
from viscera.blood.film.film import Film, make_film, mix_film, move_film, relax_film, step_film
from viscera.blood.film.params import BILE, BLOOD, SALINE, FilmParams, Sheet, document_fluid, document_params
from viscera.blood.film.state import allocate_state
from viscera.blood.picture import finish, kernels
from viscera.blood.picture import native as picture_native
from viscera.blood.picture.image import make_film_image, step_film_image
from viscera.device import Device
from viscera.geometry import icosphere
from viscera.native import Trial, Twin, register
from viscera.native.twins import Results
from viscera.skin import Skin
from viscera.skin.twins import ring_skin

_FLUIDS = (dataclasses.replace(BLOOD, quadratic_viscosity=30.0, clots=False), BILE)
_AREA = 1.3e-6
"""Per particle [m²]: about fifteen neighbours each."""
_MIXING = {"dilution": 2.0, "clot_rate": 20.0, "dissolve_rate": 0.4}
_TWO = (
    dataclasses.replace(document_fluid(), clots=True),
    dataclasses.replace(document_fluid(), name="saline", dissolves=True),
)
_CHANGES: dict[str, dict[str, Any]] = {
    "linked search": {"search": "linked"},
    "binned search": {"search": "binned"},
    "one-sided": {"one_sided": True},
    "three fluids": _MIXING | {"fluids": (BLOOD, BILE, SALINE)},
    "contact line": _MIXING | {"fluids": (BLOOD, BILE, SALINE), "hysteresis": 0.02},
    "sheet of two": _MIXING | {"fluids": _TWO},
    "wrapped sheet of two": _MIXING | {"fluids": _TWO},
}


def _film(device: Device, feature: str, native_loops: bool, size: int) -> Film:
    """Particles of two fluids that lie on a ball, or of one on a sheet, in any order, with some speed."""
    rng = np.random.default_rng(3)
    changes = _CHANGES.get(feature, {})
    velocity = 0.05 * rng.normal(size=(size, 3))
    if "sheet" in feature:
        side = max(8, round(math.sqrt(size / 3.0)))
        params = document_params(one_sided=False, gravity=(0.0, 0.0, 0.0), **changes)
        sheet = Sheet(side, side, wrap="wrapped" in feature)
        film = make_film(sheet, params, size, device, queue=size, obstacles=False, native=native_loops)
        fluid = np.eye(4)[np.arange(size) % len(params.fluids)]
        spawn(film, side * rng.random((size, 2)), fluid, velocity=20.0 * velocity * (1.0, 1.0, 0.0))
    else:
        radius = math.sqrt(_AREA * size / (4.0 * math.pi))
        params = FilmParams(**({"fluids": _FLUIDS, "gravity": (0.0, 0.0, 0.0), "pooling": 0.4} | changes))
        film = make_film(icosphere(radius, 4), params, size, device, queue=size, native=native_loops)
        at = rng.normal(size=(size, 3))
        at *= radius / np.linalg.norm(at, axis=1, keepdims=True)
        spawn(film, at, np.eye(4)[rng.integers(0, len(params.fluids), size)], velocity=velocity)
    # Takes in what waits and sorts it; the loops do not change what they start from.
    device.record(lambda stage: step_film(stage, film)).run()
    return film


def _loops(device: Device, feature: str, native_loops: bool, size: int) -> Trial:
    film = _film(device, feature, native_loops, size)
    count = film_count(film)

    def results() -> Results:
        names = ("density", "near_pressure", "dx", "dy") + (("dz",) if film.surface is not None else ())
        return {name: getattr(film.sorted, name).numpy()[:count] for name in names}

    return Trial(lambda stage: relax_film(stage, film), results, count, film.work)


def _exchange(device: Device, feature: str, native_loops: bool, size: int) -> Trial:
    film = _film(device, feature, native_loops, size)
    count = film_count(film)

    def results() -> Results:
        return {name: getattr(film.cargo, name).numpy()[:count] for name in ("mixed", "solvent")}

    return Trial(lambda stage: mix_film(stage, film, 4), results, count, film.work)


def _moves(device: Device, feature: str, native_loops: bool, size: int) -> Trial:
    film = _film(device, feature, native_loops, size)
    count = film_count(film)

    def results() -> Results:
        names = ("position", "velocity", "normal", "clot", "fluid", "density", "age", "volume")
        return {name: getattr(film.state, name).numpy()[:count] for name in names}

    return Trial(lambda stage: move_film(stage, film, 4), results, count, film.work)


def _standing(skin: Skin, device: Device, rng: np.random.Generator) -> Any:
    """Columns over a skin's box: some without ground, some dry, levels that are even or not."""
    low, high = skin.mesh.bounds
    columns, rows = 24, 20
    pool = no_pool(device)
    pool.columns, pool.rows, pool.chunk = columns, rows, 64
    pool.side = float(max((high - low)[:2] / (columns - 2, rows - 2)))
    pool.per_metre = 1.0 / pool.side
    pool.left, pool.front = (float(x) for x in (low - pool.side)[:2])
    count = columns * rows
    ground = rng.uniform(0.5 * (low[2] + high[2]), high[2], count)
    ground[rng.random(count) < 0.1] = NO_GROUND
    level = np.full(count, 0.9 * high[2]) + rng.normal(size=count) * (rng.random(count) < 0.5) * 2e-4
    wet = (rng.random(count) < 0.6) & (ground > NO_GROUND)
    level[~wet] = DRY
    near = [wet.reshape(rows, columns)[max(j - 1, 0) : j + 2, max(i - 1, 0) : i + 2].any()
            for j in range(rows) for i in range(columns)]  # fmt: skip
    content = rng.integers(0, 2_000_000, (count, 4)) * wet[:, None]
    arrays = {"ground": ground, "level": level, "content": content.ravel(), "near": near, "wet": [wet.sum()]}
    for name, values in arrays.items():
        setattr(pool, name, wp.array(values, dtype=POOL_KINDS[name], device=device.warp))
    return pool


def _picture(device: Device, feature: str, native_loops: bool, size: int) -> Trial:
    """Particles on both sides of a ring's skin, some of them under it."""
    skin = ring_skin(device, size)
    count = 3_000 if size < 256 else 20_000
    rng = np.random.default_rng(7)
    film = FilmParams()
    state = allocate_state(count, 16, device)
    state.count.fill_(count)
    chosen = skin.texels.numpy()[rng.integers(0, skin.count, count)]
    normal = np.cross(skin.tangent_u.numpy()[chosen], skin.tangent_v.numpy()[chosen])
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    state.position.assign((skin.position.numpy()[chosen] + 3e-4 * rng.normal(size=(count, 3))).astype(np.float32))
    state.normal.assign((normal * np.where(rng.random((count, 1)) < 0.8, 1.0, -1.0)).astype(np.float32))
    state.volume.fill_(film.little_volume)
    mixture = rng.dirichlet(np.ones(4), count).astype(np.float32)
    state.fluid.assign(mixture)
    state.clot.assign(0.5 * mixture[:, 0])
    pool = _standing(skin, device, rng) if feature == "pool" else None
    image = make_film_image(skin, film, state, native=native_loops, pool=pool)
    # Of the picture before: trails that fade, where nothing lies any more.
    image.wet.assign(np.where(rng.random(skin.width * skin.height) < 0.3, 8e-6, 0.0).astype(np.float32))
    image.kept.assign(rng.random((skin.width * skin.height, 4)).astype(np.float32) * (5e-6, 1.0, 1.0, 1.0))

    def results() -> Results:
        names = ("height", "kept", "wet", "tiles")
        return {name: getattr(image, name).numpy() for name in names}

    return Trial(lambda stage: step_film_image(stage, image), results, skin.count, skin.count)


for _flat in (False, True):
    _names = ("viscosity_2d", "density_2d", "displacement_2d") if _flat else (
        "viscosity_3d", "density_3d", "displacement_3d")  # fmt: skip
    _in_c = tuple(getattr(native, name) for name in _names)
    register(Twin(
        "blood.film on a sheet" if _flat else "blood.film", (forces.viscosity, forces.density, forces.displacement),
        {"cpu": _in_c, "cuda": _in_c},
        ("sheet", "wrapped sheet") if _flat else ("surface", "one-sided"),
        1e-4,  # three sums of some fifteen terms, one from the other; near pressure is 40 (1 − q)³
        _loops, small=600, large=20_000,
        plain_only=() if _flat else ("linked search", "binned search"),
    ))  # fmt: skip
    register(Twin(
        "blood.mixing on a sheet" if _flat else "blood.mixing", (mixing.mix,),
        dict.fromkeys(("cpu", "cuda"), (native_mixing.mix_2d if _flat else native_mixing.mix_3d,)),
        ("sheet of two", "wrapped sheet of two") if _flat else ("three fluids",),
        1e-4,  # as of the loops: both begin where a step of theirs has led
        _exchange, small=600, large=20_000,
    ))  # fmt: skip
register(Twin(
    "blood.moves", (film_kernels.move_on,), {"cpu": (native_moves.move_on_triangles,)},
    ("three fluids", "contact line"),
    1e-4,  # as above
    _moves, small=600, large=20_000,
))  # fmt: skip
for _over, _feature, _tolerance in (
    ("blood.picture", "picture", 1e-5),  # products and sums are fused, and the share of each fluid divides two of them
    # A depth of 0.1 mm is the difference of two heights of 30 mm, each rounded to 2 nm.
    ("blood.picture of a pool", "pool", 1e-4),
):
    register(Twin(
        _over, (kernels.splat, finish.soften),
        {"cpu": (picture_native.splat_sixteens, picture_native.soften_sixteens)}, (_feature,), _tolerance,
        _picture, small=64, large=512, exact=frozenset({"tiles"}),
    ))  # fmt: skip
