"""Heat conduction in the skin: finite volumes on texels, implicit in time, across seams.

In a layer of thickness s, each texel i holds the heat C_i θ_i, with θ its temperature above the body's, C = ρ c s A.
With Fourier's law the heat flow between texels is k s g_ij (θ_i − θ_j), where g_ij = g_ji:

    along columns   g = o √G G^uu / Δu      o: open part of the side, Δu: distance of the nodes in texels
    along rows      g = o √G G^vv / Δv
    diagonals       g = ± ½ √G G^uv         where the atlas shears; from ¼[(d − a)² − (c − b)²] = (mean Δ_u)(mean Δ_v)
    over a seam     g = ℓ / (h_i + h_j)     ℓ: shared length of the edge, h: distance of a node from the edge

and G the metric. What leaves one texel enters the other, so heat is conserved whatever the shapes are. Backward Euler,

    (C + dt (k s K + loss)) δ = −dt (k s K θ + loss (θ − θ_outside)) + dt power,    θ ← θ + δ,

is solved for the change δ by Chebyshev iteration with diagonal scaling (Golub and Varga 1961, doi:10.1007/BF01386013):
one pass over the texels per iteration and no sums, so it is recorded as it is, and gives the same bits on any number of
cores. Its residual polynomial stays within ±1 on the whole spectrum, so a step that is too long for the number of
iterations loses accuracy, never stability.

Differs from the source (Kvick §3.3.4), which blurs the temperature texture: a blur knows neither metric nor seams, and
its speed depends on the resolution. Losses: perfusion carries heat off in proportion to θ (Pennes 1948), air by
convection.
"""

# Warp's stubs know neither its own dtypes nor the fields of a vector.
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false, reportOperatorIssue=false
# pyright: reportIndexIssue=false, reportGeneralTypeIssues=false

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import warp as wp

from viscera.device import Stage
from viscera.errors import InputError
from viscera.heat.network import Network, make_network
from viscera.skin import Skin

wp.set_module_options({"enable_backward": False})

SQUEEZE = 4.0
"""How much stiffer than whole texels at rest the equations may be before accuracy drops: cut or squeezed texels."""

TOLERANCE = 1.0e-8
"""Part of the residual that the iteration should leave. What it leaves is heat gained or lost, and total heat is to
stay within 1e-5 over thousands of steps."""

MOST_ITERATIONS = 400

HIGHEST = 3.0
"""Bound of the scaled matrix' eigenvalues, whatever the deformation. Scaled by C + dt k s P, P the sum over sides and
links: shear is held to half the least of its four sides, so |shear| sums to at most P/2, and Gershgorin gives
(C + dt k s (P + P/2)) + dt k s (P + P/2) ≤ 3 (C + dt k s P)."""


@dataclass(frozen=True)
class HeatParams:
    """Soft tissue, with air above. Conductivity, density and capacity as in the table of docs/skin.md."""

    conductivity: float = 0.5
    """[W/(m·K)]"""
    density: float = 1060.0
    """[kg/m³]"""
    heat_capacity: float = 3600.0
    """[J/(kg·K)]"""
    thickness: float = 1.0e-3
    """Of the layer that heats through [m]."""
    perfusion: float = 0.0
    """Heat that blood carries off per volume and kelvin above body temperature [W/(m³·K)]."""
    air_transfer: float = 0.0
    """Heat given to air per area and kelvin [W/(m²·K)]."""
    body_temperature: float = 310.15
    """[K]"""
    air_temperature: float = 310.15
    """[K]"""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            positive = field.name not in ("perfusion", "air_transfer", "conductivity")
            if not math.isfinite(value) or value < 0.0 or (positive and value == 0.0):
                allowed = "above 0" if positive else "of 0 or more"
                raise InputError(f"{field.name} = {value} is not possible.", f"It must be a finite number {allowed}.")

    @property
    def diffusivity(self) -> float:
        """[m²/s]"""
        return self.conductivity / (self.density * self.heat_capacity)


@wp.struct
class Rates:
    """Live numbers of the step; from an array, as scalars are frozen when a program is recorded."""

    conduction: float
    capacity: float
    loss: float
    inflow: float
    dt: float


@dataclass(eq=False)
class Heat:
    """Made by `make_heat`."""

    skin: Skin
    params: HeatParams
    dt: float
    """[s]"""
    iterations: int
    temperature: Any
    """Above the body's, per texel, float32 [K]."""
    power: Any
    """Put into each texel from outside, float32 [W]."""
    network: Any
    rates: Any
    """One `Rates`."""
    weights: Any
    """Of each iteration, vec2."""
    scale: Any
    """One over the matrix' diagonal [K/J]."""
    residual: Any
    change: Any
    step: tuple[Any, Any]


@wp.func
def _pull(g: float, x: wp.array(dtype=wp.float32), own: float, j: int):
    if g == 0.0:
        return wp.vec2(0.0, 0.0)
    return wp.vec2(g * (own - x[j]), g)


@wp.func
def _outflow(net: Network, x: wp.array(dtype=wp.float32), i: int):
    """Σ g (x_i − x_j) over the neighbours j of covered texel i, and Σ g without shear (see `HIGHEST`). Sides at the rim
    of the texture are closed, so nothing beyond it is read."""
    t = net.texels[i]
    w = net.width
    own = x[t]
    total = _pull(net.left[t], x, own, t - 1) + _pull(net.left[t + 1], x, own, t + 1)
    total += _pull(net.bottom[t], x, own, t - w) + _pull(net.bottom[t + w], x, own, t + w)
    slant = _pull(net.shear[t], x, own, t - w - 1) + _pull(net.shear[t + w + 1], x, own, t + w + 1)
    slant += _pull(-net.shear[t + 1], x, own, t + 1 - w) + _pull(-net.shear[t + w], x, own, t + w - 1)
    total += wp.vec2(slant[0], 0.0)
    for k in range(net.link_start[i], net.link_start[i + 1]):
        total += _pull(net.link[k], x, own, net.link_texel[k])
    return total


@wp.kernel
def begin_step(
    first: int,
    # in
    net: Network,
    rates: wp.array(dtype=Rates),
    weights: wp.array(dtype=wp.vec2),
    temperature: wp.array(dtype=wp.float32),
    power: wp.array(dtype=wp.float32),
    # out
    scale_out: wp.array(dtype=wp.float32),
    residual_out: wp.array(dtype=wp.float32),
    change_out: wp.array(dtype=wp.float32),
    step_out: wp.array(dtype=wp.float32),
):
    i = first + wp.tid()
    t = net.texels[i]
    rate = rates[0]
    area = net.area[t]
    flow = _outflow(net, temperature, i)
    lost = area * (rate.loss * temperature[t] - rate.inflow)
    residual = rate.dt * (power[t] - rate.conduction * flow[0] - lost)
    scale = 1.0 / (area * rate.capacity + rate.dt * (rate.conduction * flow[1] + area * rate.loss))
    scale_out[t] = scale
    residual_out[t] = residual
    change_out[t] = 0.0
    step_out[t] = weights[0][1] * scale * residual


@wp.kernel
def iterate(
    first: int,
    # params
    number: int,
    # in
    net: Network,
    rates: wp.array(dtype=Rates),
    weights: wp.array(dtype=wp.vec2),
    scale: wp.array(dtype=wp.float32),
    step: wp.array(dtype=wp.float32),
    # out
    residual_out: wp.array(dtype=wp.float32),
    change_out: wp.array(dtype=wp.float32),
    step_out: wp.array(dtype=wp.float32),
):
    i = first + wp.tid()
    t = net.texels[i]
    rate = rates[0]
    own = step[t]
    kept = net.area[t] * (rate.capacity + rate.dt * rate.loss)
    residual = residual_out[t] - (kept * own + rate.dt * rate.conduction * _outflow(net, step, i)[0])
    residual_out[t] = residual
    change_out[t] = change_out[t] + own
    step_out[t] = weights[number][0] * own + weights[number][1] * scale[t] * residual


@wp.kernel
def end_step(
    first: int,
    # in
    texels: wp.array(dtype=wp.int32),
    change: wp.array(dtype=wp.float32),
    step: wp.array(dtype=wp.float32),
    # out
    temperature_out: wp.array(dtype=wp.float32),
):
    t = texels[first + wp.tid()]
    temperature_out[t] = temperature_out[t] + change[t] + step[t]


def make_heat(skin: Skin, params: HeatParams | None = None, dt: float = 0.016) -> Heat:
    """Heat at body temperature on `skin`, for steps of `dt` [s]."""
    params = params or HeatParams()
    _check_step(dt)
    device = skin.device.warp
    size = skin.width * skin.height

    def zeros(count: int = size) -> Any:
        return wp.zeros(count, dtype=wp.float32, device=device)

    net = make_network(skin)
    low = _lowest(skin, net, params, dt)
    iterations = _iterations(low)
    rates = wp.zeros(1, dtype=Rates, device=device)
    weights = wp.array(_chebyshev(low, iterations), dtype=wp.vec2, device=device)
    heat = Heat(
        skin,
        params,
        dt,
        iterations,
        zeros(),
        zeros(),
        net,
        rates,
        weights,
        zeros(),
        zeros(),
        zeros(),
        (zeros(), zeros()),
    )
    _write_rates(heat)
    return heat


def set_heat(heat: Heat, params: HeatParams, dt: float | None = None) -> None:
    """Changes parameters while programs run; the number of iterations stays, so a much stiffer step is less exact."""
    heat.params = params
    heat.dt = heat.dt if dt is None else dt
    _check_step(heat.dt)
    low = _lowest(heat.skin, heat.network, params, heat.dt)
    wp.copy(heat.weights, wp.array(_chebyshev(low, heat.iterations), dtype=wp.vec2, device=heat.skin.device.warp))
    _write_rates(heat)


def step_heat(stage: Stage, heat: Heat) -> None:
    """One step of `heat.dt`."""
    count, net, live = heat.skin.count, heat.network, [heat.rates, heat.weights]
    step, spare = heat.step
    out = [heat.scale, heat.residual, heat.change, step]
    stage.launch(begin_step, count, [net, *live, heat.temperature, heat.power, *out])
    for number in range(1, heat.iterations):
        stage.launch(iterate, count, [number, net, *live, heat.scale, step, heat.residual, heat.change, spare])
        step, spare = spare, step
    stage.launch(end_step, count, [heat.skin.texels, heat.change, step, heat.temperature])


def total_heat(heat: Heat) -> float:
    """Heat above body temperature in the whole layer [J]."""
    energy = heat.skin.area.numpy().astype(np.float64) * heat.temperature.numpy()
    return float(energy.sum()) * heat.params.density * heat.params.heat_capacity * heat.params.thickness


def explicit_limit(heat: Heat) -> float:
    """Longest stable step of forward Euler on whole texels [s]; texels cut by a seam would allow far less."""
    p = heat.params
    stiffest = _stiffest(heat.skin, heat.network)
    return math.inf if p.conductivity == 0.0 else 1.0 / (p.diffusivity * stiffest)


def _check_step(dt: float) -> None:
    if not (math.isfinite(dt) and dt >= 0.0):
        raise InputError(f"dt = {dt} is not possible.", "It must be a finite number of 0 or more.")


def _write_rates(heat: Heat) -> None:
    p = heat.params
    loss = p.perfusion * p.thickness + p.air_transfer
    rates: Any = Rates()
    rates.conduction = p.conductivity * p.thickness
    rates.capacity = p.density * p.heat_capacity * p.thickness
    rates.loss = loss
    rates.inflow = p.air_transfer * (p.air_temperature - p.body_temperature)
    rates.dt = heat.dt
    wp.copy(heat.rates, wp.array([rates], dtype=Rates, device=heat.skin.device.warp))


def _stiffest(skin: Skin, net: Any) -> float:
    """Largest Σg / area of whole texels (of all, where none is whole) [1/m²]."""
    size, w = skin.width * skin.height, skin.width
    left, bottom = (array.numpy().astype(np.float64) for array in (net.left, net.bottom))
    total = left[:size] + left[1 : size + 1] + bottom[:size] + bottom[w : size + w]
    texels = skin.texels.numpy()
    owner = np.repeat(texels, np.diff(skin.link_start.numpy()))
    total += np.bincount(owner, weights=net.link.numpy()[: len(owner)], minlength=size)
    stiffness = total[texels] / skin.area.numpy()[texels]
    whole = skin.coverage.numpy()[texels] > 0.999
    return float((stiffness[whole] if whole.any() else stiffness).max())


def _lowest(skin: Skin, net: Any, params: HeatParams, dt: float) -> float:
    """Least eigenvalue of the scaled matrix: of a mode that hardly varies between neighbours, on the stiffest whole
    texels; cut texels are too few and too scattered to carry one. An estimate: if it is too high, the
    iteration leaves more than it should, and is still stable."""
    return 1.0 / (1.0 + SQUEEZE * dt * params.diffusivity * _stiffest(skin, net))


def _iterations(low: float) -> int:
    root = math.sqrt(HIGHEST / low)
    rate = (root - 1.0) / (root + 1.0)
    return min(MOST_ITERATIONS, max(1, math.ceil(math.log(0.5 * TOLERANCE) / math.log(rate))))


def _chebyshev(low: float, iterations: int) -> np.ndarray:
    """Weights of the step before and of the scaled residual, for each iteration."""
    middle, half = 0.5 * (HIGHEST + low), 0.5 * (HIGHEST - low)
    weights = [(0.0, 1.0 / middle)]
    before = half / middle
    for _ in range(1, iterations):
        now = 1.0 / (2.0 * middle / half - before)
        weights.append((now * before, 2.0 * now / half))
        before = now
    return np.array(weights, dtype=np.float32)
