"""The skin and heat in it, larger and longer than the tests do it. Needs NumPy and Warp alone; scans, where
`VISCERA_ANATOMY` names their folder, need xatlas."""

from __future__ import annotations

import math
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from verify.framework import Measured, Skip, figure
from viscera.anatomy import gallbladder, liver
from viscera.bench.registry import median_ms
from viscera.bench.skin import unrolled_ring
from viscera.device import Device, Stage, open_device
from viscera.geometry import TriangleMesh, icosphere, load_mesh, torus
from viscera.geometry.atlas import AtlasSettings, unique_atlas
from viscera.geometry.coverage import cut_by_texels
from viscera.heat.burn import Burn, make_burn, step_burn
from viscera.heat.conduction import Heat, HeatParams, explicit_limit, make_heat, step_heat, total_heat
from viscera.skin import Skin, cross_seam, make_skin

AREA = "skin"
RADIUS = 0.05
"""Of the ball [m]."""


def surfaces() -> Iterator[tuple[TriangleMesh, int]]:
    """Each surface and the texels along its texture's side. Without xatlas, those that bring their atlas."""
    yield liver(), 512
    yield gallbladder(), 256
    yield unrolled_ring(), 256
    try:
        import xatlas  # noqa: F401
    except ImportError:
        return
    yield icosphere(RADIUS, 4), 256
    yield torus(0.06, 0.02, 64, 24), 256
    folder = os.environ.get("VISCERA_ANATOMY")
    for name in ("liver", "gallbladder", "colon") if folder else ():
        yield load_mesh(Path(str(folder)) / f"{name}.stl"), 256


def _skin(mesh: TriangleMesh, side: int, device: Device | None = None) -> Skin:
    return make_skin(mesh, unique_atlas(mesh, AtlasSettings(min(side, 512))), side, device=device or open_device())


def _put(heat: Heat, values: np.ndarray) -> None:
    heat.temperature.assign(np.where(heat.skin.coverage.numpy() > 0.0, values, 0.0).astype(np.float32))


def _run(heat: Heat, steps: int) -> np.ndarray:
    program = heat.skin.device.record(lambda stage: step_heat(stage, heat), work=heat.skin.count * heat.stages)
    for _ in range(steps):
        program.run()
    heat.skin.device.synchronize()
    return heat.temperature.numpy()


def _seen() -> str:
    return ", ".join(f"{mesh.name} {len(mesh.triangles)} triangles" for mesh, _ in surfaces())


@figure(area=AREA, claim="fractional texel areas add up to the surface", bound="≤ 0.5 %")
def texel_area() -> Measured:
    worst = max(
        abs(_skin(mesh, side).area.numpy().sum(dtype=np.float64) / mesh.area - 1.0) for mesh, side in surfaces()
    )
    return Measured(100 * worst, "%", worst <= 0.005, _seen())


@figure(area=AREA, claim="every point has one texel: texture where a chart lies on itself", bound="≤ 1e-6 of it")
def texel_overlap() -> Measured:
    worst = 0.0
    for mesh, side in surfaces():
        skin = _skin(mesh, side)
        pieces = cut_by_texels(skin.atlas.corners * side, side, side)
        fill = np.bincount(pieces.texel, weights=pieces.weight)
        worst = max(worst, float(np.clip(fill - 1.0, 0.0, None).sum() / fill.sum()))
    return Measured(worst, "", worst <= 1e-6, "charts never share a texel, which make_skin refuses; " + _seen())


@figure(area=AREA, claim="across a seam and back", bound="≤ 1e-6 of the texture")
def seams_back() -> Measured:
    worst, count = 0.0, 0
    for mesh, side in surfaces():
        seams = _skin(mesh, side).seams
        numbers = np.arange(len(seams))
        uv = seams.ends[:, 0].mean(axis=1) + np.random.default_rng(2).normal(0.0, 0.01, (len(seams), 2))
        worst = max(worst, float(np.abs(cross_seam(seams, numbers, 1, cross_seam(seams, numbers, 0, uv)) - uv).max()))
        count += len(seams)
    return Measured(worst, "", worst <= 1e-6, f"{count} seams")


@figure(area=AREA, claim="a hot spot on a flat sheet follows the Gaussian solution", bound="≤ 1 % of its peak")
def gaussian() -> Measured:
    angle = math.radians(30.0)
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    kinds = {"straight": 8.0 * np.eye(2), "turned": 6.0 * turn, "stretched": np.diag([9.0, 5.0])}
    kinds["sheared"] = 5.5 * np.array([[1.0, 0.5], [0.0, 1.0]])
    line = np.linspace(-0.05, 0.05, 9)
    x, y = (g.ravel() for g in np.meshgrid(line, line))
    low = (np.arange(8)[:, None] * 9 + np.arange(8)).ravel()
    quads = np.stack([low, low + 1, low + 10, low + 9], axis=1)
    triangles = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]])
    params, wide, found = HeatParams(), 0.008, {}
    duration = 0.5 * wide**2 / params.diffusivity
    for name, matrix in kinds.items():
        uv = (0.5 + np.stack([x, y], axis=1) @ matrix.T).astype(np.float32)
        mesh = TriangleMesh(np.stack([x, y, 0 * x], axis=1), triangles, name, uv)
        heat = make_heat(_skin(mesh, 256), params, duration / 200)
        square = (heat.skin.position.numpy() ** 2).sum(axis=1)
        _put(heat, 40.0 * np.exp(-square / (2 * wide**2)))
        spread = wide**2 + 2 * params.diffusivity * duration
        truth = 40.0 * wide**2 / spread * np.exp(-square / (2 * spread))
        error = np.abs(_run(heat, 200) - truth)[heat.skin.texels.numpy()].max()
        found[name] = 100 * float(error / truth.max())
    detail = "256², 200 steps; " + ", ".join(f"{name} {error:.2f}" for name, error in found.items())
    return Measured(max(found.values()), "%", max(found.values()) <= 1.0, detail)


@figure(area=AREA, claim="on a ball the first mode decays as exp(−2αt/R²), across seams", bound="≤ 2 %")
def first_mode() -> Measured:
    try:
        import xatlas  # noqa: F401
    except ImportError as error:
        raise Skip("xatlas is not installed, and a ball brings no atlas") from error
    found = {}
    for side in (128, 256, 512):
        heat, params, steps = make_heat(_skin(icosphere(RADIUS, 5), side), dt=0.0), HeatParams(), 256
        heat = make_heat(heat.skin, params, 0.5 * RADIUS**2 / (2 * params.diffusivity) / steps)
        mode = 10.0 * heat.skin.position.numpy()[:, 2] / RADIUS
        _put(heat, mode)
        area = heat.skin.area.numpy().astype(np.float64)
        left = (area * _run(heat, steps) * mode).sum() / (area * mode * mode).sum()
        found[side] = 100.0 * (left / math.exp(-0.5) - 1.0)
    worst = max(abs(error) for error in found.values())
    return Measured(worst, "%", worst <= 2.0, ", ".join(f"{side}² {error:+.2f} %" for side, error in found.items()))


@figure(area=AREA, claim="total heat without losses, liver at 512², 10 000 frames", bound="≤ 1e-5")
def heat_kept() -> Measured:
    heat = make_heat(_skin(liver(), 512))
    _put(heat, 60.0 * (np.random.default_rng(3).random(512 * 512) > 0.97))
    before = total_heat(heat)
    _run(heat, 10_000)
    error = abs(total_heat(heat) / before - 1.0)
    return Measured(error, "", error <= 1e-5, f"{heat.stages} stages per frame")


@figure(area=AREA, claim="bounded, and heat kept, at 100 times the explicit limit", bound="≤ 1e-5, within first range")
def far_beyond_explicit() -> Measured:
    skin = _skin(liver(), 512)
    heat = make_heat(skin, dt=100.0 * explicit_limit(make_heat(skin)))
    _put(heat, 60.0 * (np.random.default_rng(3).random(512 * 512) > 0.97))
    before, low, high = total_heat(heat), 0.0, 0.0
    for _ in range(20):
        found = _run(heat, 10)[skin.texels.numpy()]
        low, high = min(low, float(found.min())), max(high, float(found.max()))
    error = abs(total_heat(heat) / before - 1.0)
    detail = f"step {heat.dt:.3g} s, {heat.stages} stages, {low:.2g} to {high:.3g} K from 0 to 60 K"
    return Measured(error, "", error <= 1e-5 and low > -1.0 and high < 60.0, detail)


@figure(
    area=AREA, claim="cpu and cuda give the same heat after 1 000 frames", bound="relative L2 ≤ 1e-4", needs=("cuda",)
)
def same_on_cuda() -> Measured:
    found = []
    for name in ("cpu", "cuda:0"):
        heat = make_heat(_skin(liver(), 256, open_device(name)))
        _put(heat, 60.0 * (np.random.default_rng(3).random(256 * 256) > 0.97))
        found.append(_run(heat, 1_000).astype(np.float64))
    error = float(np.linalg.norm(found[1] - found[0]) / np.linalg.norm(found[0]))
    return Measured(error, "", error <= 1e-4)


@figure(
    area=AREA, claim="the standard liver's atlas is there at once, without xatlas", bound="≤ 0.2 s", needs=("quiet",)
)
def shipped_atlas() -> Measured:
    organ = liver()
    with tempfile.TemporaryDirectory() as empty:
        start = time.perf_counter()
        unique_atlas(organ, AtlasSettings(512), Path(empty))
        seconds = time.perf_counter() - start
        baked = any(Path(empty).iterdir())
    return Measured(seconds, "s", seconds <= 0.2 and not baked)


def _steps_per_second(device: Device, side: int) -> tuple[float, str]:
    """Heat and burn with every texel hot: the slower of the liver and the ring, which covers nearly twice as much of
    its texture and may need more stages."""
    rates, details = [], []
    for mesh in (liver(), unrolled_ring()):
        heat = make_heat(_skin(mesh, side, device))
        burn = make_burn(heat)
        _put(heat, np.random.default_rng(0).uniform(30.0, 62.0, side * side))

        def step(stage: Stage, heat: Heat = heat, burn: Burn = burn) -> None:
            step_heat(stage, heat)
            step_burn(stage, burn)

        program = device.record(step, work=heat.skin.count * heat.stages)
        rates.append(1e3 / median_ms(program.run, device, 50))
        details.append(f"{mesh.name} {rates[-1]:.0f}/s ({heat.skin.count} texels, {heat.stages} stages)")
    return min(rates), "all hot; " + ", ".join(details)


@figure(area=AREA, claim="heat and burn of 512² on cpu, liver and ring", bound="≥ 200 steps/s", needs=("quiet",))
def steps_on_cpu() -> Measured:
    rate, detail = _steps_per_second(open_device("cpu"), 512)
    return Measured(rate, "steps/s", rate >= 200.0, detail)


@figure(area=AREA, claim="heat and burn of 2048² on cuda, liver and ring", bound="≥ 8 000 steps/s", needs=("cuda",))
def steps_on_cuda() -> Measured:
    rate, detail = _steps_per_second(open_device("cuda:0"), 2048)
    return Measured(rate, "steps/s", rate >= 8_000.0, detail)
