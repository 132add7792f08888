"""Heat conduction in the skin: finite volumes on texels, stable at any step, across seams.

In a layer of thickness s, each cell i (a texel, with the slivers merged into it: `bodies`) holds the heat C_i θ_i, with
θ its temperature above the patient's and C = ρ c s A. Tissue keeps its volume: C is that at rest, and s is less where
skin is stretched. With Fourier's law the heat flow between cells is k s g_ij (θ_i − θ_j), where g_ij = g_ji:

    along columns   g = o √G G^uu / Δu      o: open part of the side, Δu: distance of the nodes in texels
    along rows      g = o √G G^vv / Δv
    diagonals       g = ± ½ √G G^uv         where the atlas shears; from ¼[(d − a)² − (c − b)²] = (mean Δ_u)(mean Δ_v)
    over a seam     g = ℓ / (h_i + h_j)     ℓ: shared length of the edge, h: distance of a node from the edge

and G the metric. What leaves one cell enters the other, so heat is conserved whatever the shapes are. With

    L(θ)_i = (k s Σ_j g_ij (θ_j − θ_i) + power_i) / C_i − loss θ_i + gain

a step of dt takes S stages, a Runge–Kutta–Legendre method of first order (Meyer, Balsara and Aslam 2014,
doi:10.1016/j.jcp.2013.08.021), here written with what changes from one stage to the next:

    Y_1 = Y_0 + w dt L(Y_0),    w = 2 / (S² + S)
    Y_j = Y_{j-1} + (j−1)/j (Y_{j-1} − Y_{j-2}) + (2j−1)/j w dt L(Y_{j-1}),    θ ← Y_S.

A mode that decays at the rate λ is multiplied by the Legendre polynomial P_S(1 − w dt λ), which is within ±1 up to
dt λ = S² + S: a hundred times the explicit limit takes 20 stages. Each is one pass over the texels without sums, so it
is recorded as it is, gives the same bits on any number of cores, and keeps heat to rounding. S follows from the
stiffest whole texel when heat is made; `network` cuts what would be stiffer than S stages allow, so that tissue which
is squeezed, or parameters that change later, cost accuracy there and never stability.

Differs from the source (Kvick §3.3.4), which blurs the temperature texture: a blur knows neither metric nor seams, and
its speed depends on the resolution. Losses: perfusion carries heat off in proportion to θ (Pennes 1948,
doi:10.1152/jappl.1948.1.2.93), air by convection. Where they are alone, θ' = −r θ + q, a step is exact: loss is not
r dt but the λ with P_S(1 − w λ) = exp(−r dt), and gain and power are scaled with it, by λ/(r dt). So a skin cools to
what surrounds it and never beyond, however long the step, and λ stays below 1.5 (the first zero of P_S).
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, SupportsFloat, cast

import numpy as np
import warp as wp

from viscera.device import Program, Stage
from viscera.errors import InputError
from viscera.heat.arrays import BLOCK, TILE, Conductances, Rates
from viscera.heat.materials import HeatMaterials, lose_heat, make_materials
from viscera.heat.native import stage_cpu, stage_cuda
from viscera.heat.network import WHOLE, Network, make_network, rebuild_network
from viscera.skin import Skin
from viscera.timing import FRAME

wp.set_module_options({"enable_backward": False})

HEADROOM = 2.0
"""How much stiffer than whole texels at rest bodies may be before conduction is cut: those at a border, and whole ones
squeezed to 0.7 of their width."""

MOST_STAGES = 400
"""Stable up to 80 000 times the explicit limit."""

MOST_LOSS = 1.5
"""More than λ at the first zero of P_S for every S: 1.27 for 2, 1.45 (a quarter of the square of 2.405, J₀'s first) for
many. There P_S still falls."""

LEAST_DECAY = 1e-6
"""Below this, λ is the decay to float32's last bit."""

BLOOD_HEAT = 1050.0 * 3617.0
"""Density times heat capacity of blood [J/(m³·K)]; IT'IS tissue database (itis.swiss)."""

LIVER_FLOW = 860.0 * 1.0e-6 / 60.0
"""Blood through liver at rest, 860 mL per minute and kilogram [m³/(s·kg)]; IT'IS tissue database."""

LIVER_PERFUSION = LIVER_FLOW * 1060.0 * BLOOD_HEAT
"""Heat that blood carries off in liver, per volume and kelvin above body temperature [W/(m³·K)], about 58 000."""

STILL_AIR = 10.0
"""Heat that a surface gives to still gas, per area and kelvin [W/(m²·K)]; free convection is 2 to 25 (Incropera,
Fundamentals of Heat and Mass Transfer, table 1.1)."""


def finite_number(name: str, value: object) -> float:
    """`value` as a float, of whatever kind of number it is; text, truth and None are none."""
    number = math.nan
    if not isinstance(value, str | bytes | bool):
        with suppress(TypeError, ValueError, OverflowError):
            number = float(cast("SupportsFloat", value))
    if not math.isfinite(number):
        raise InputError(f"{name} = {value!r} is not possible.", "It must be a finite number.")
    return number


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
    """Heat that blood carries off per volume and kelvin above body temperature [W/(m³·K)]; `LIVER_PERFUSION`."""
    air_transfer: float = 0.0
    """Heat given to air per area and kelvin [W/(m²·K)]; `STILL_AIR`."""
    body_temperature: float = 310.15
    """[K]"""
    air_temperature: float = 310.15
    """[K]"""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = finite_number(field.name, getattr(self, field.name))
            positive = field.name not in ("perfusion", "air_transfer", "conductivity")
            if value < 0.0 or (positive and value == 0.0):
                allowed = "above 0" if positive else "of 0 or more"
                raise InputError(f"{field.name} = {value} is not possible.", f"It must be a finite number {allowed}.")
            object.__setattr__(self, field.name, value)

    @property
    def diffusivity(self) -> float:
        """[m²/s]"""
        return self.conductivity / (self.density * self.heat_capacity)

    @property
    def capacity(self) -> float:
        """Of the layer [J/(K·m²)]."""
        return self.density * self.heat_capacity * self.thickness


@dataclass(eq=False)
class Heat:
    """Made by `make_heat`."""

    skin: Skin
    params: HeatParams
    dt: float
    """[s]"""
    stages: int
    """Of a step; even, so that a step ends in the array where it began."""
    temperature: Any
    """Above the body's, per texel, float32, shape (width · height,) [K]. A sliver has its body's."""
    power: Any
    """Put into each texel from outside, float32, shape (width · height,) [W]."""
    network: Network
    rates: Any
    """`Rates`, shape (1,): numbers that `set_heat` may change."""
    spare: Any
    """Scratch: the stage before, float32, shape (width · height,) [K]."""
    limits: Program
    """Brings the network up to changed parameters."""
    native: bool
    """Whether stages run in C (`viscera.heat.native`) or as plain kernels."""


@wp.func
def gather_to_body(
    b: int, net: Conductances, rates: wp.array(dtype=Rates), power: wp.array(dtype=wp.float32),
    temperature_out: wp.array(dtype=wp.float32),
):  # fmt: skip
    """A body takes the heat and the power of its slivers. Equal temperatures stay exactly what they are."""
    t = net.border[b]
    own = temperature_out[t]
    change = float(0.0)
    for k in range(net.member_start[b], net.member_start[b + 1]):
        m = net.member[k]
        change += net.share[k] * (temperature_out[m] - own) + net.inverse[t] * rates[0].dt * power[m]
    temperature_out[t] = own + change


@wp.kernel
def gather_slivers(
    first: int,
    # in
    net: Conductances,
    rates: wp.array(dtype=Rates),
    power: wp.array(dtype=wp.float32),
    # out
    temperature_out: wp.array(dtype=wp.float32),
):
    gather_to_body(first + wp.tid(), net, rates, power, temperature_out)


@wp.func
def spread_from_body(b: int, net: Conductances, temperature_out: wp.array(dtype=wp.float32)):
    """Slivers are as warm as their body."""
    for k in range(net.member_start[b], net.member_start[b + 1]):
        temperature_out[net.member[k]] = temperature_out[net.border[b]]


@wp.kernel
def spread_to_slivers(
    first: int,
    # in
    net: Conductances,
    # out
    temperature_out: wp.array(dtype=wp.float32),
):
    spread_from_body(first + wp.tid(), net, temperature_out)


@wp.func
def _inflow(g: float, x: wp.array(dtype=wp.float32), own: float, j: int):
    # Beyond the texture nothing is read: sides at its rim are closed.
    if g == 0.0:
        return 0.0
    return g * (x[j] - own)


@wp.kernel
def stage_plain(
    first: int,
    # params
    momentum: float,
    weight: float,
    # in
    net: Conductances,
    rates: wp.array(dtype=Rates),
    power: wp.array(dtype=wp.float32),
    now: wp.array(dtype=wp.float32),
    # out
    before_out: wp.array(dtype=wp.float32),
):
    """Y_j from Y_{j-1} in `now` and Y_{j-2} in `before_out`, which it replaces."""
    element = first + wp.tid()
    tile = element // TILE
    lane = element % TILE
    t = net.tile_texel[tile] + lane
    w = net.width
    own = now[t]
    flow = _inflow(net.left[t], now, own, t - 1) + _inflow(net.left[t + 1], now, own, t + 1)
    flow += _inflow(net.bottom[t], now, own, t - w) + _inflow(net.bottom[t + w], now, own, t + w)
    flow += _inflow(net.shear[t], now, own, t - w - 1) + _inflow(net.shear[t + w + 1], now, own, t + w + 1)
    flow -= _inflow(net.shear[t + 1], now, own, t - w + 1) + _inflow(net.shear[t + w], now, own, t + w - 1)
    linked = net.tile_links[tile]
    if linked >= 0:
        for k in range(net.lane_links[linked + lane], net.lane_links[linked + lane + 1]):
            flow += net.link[k] * (now[net.link_texel[k]] - own)
    rate = rates[0]
    inverse = net.inverse[t]
    change = inverse * (flow + rate.dt * power[t])
    if inverse > 0.0:
        change += rate.gain - rate.loss * own
    step = weight * change
    if momentum != 0.0:
        step += momentum * (own - before_out[t])
    before_out[t] = own + step


def make_heat(
    skin: Skin,
    params: HeatParams | None = None,
    dt: float = FRAME,
    native: bool = True,
    materials: HeatMaterials | None = None,
) -> Heat:
    """Heat at body temperature on `skin`, for steps of `dt` [s]. `materials` says what each texel is made of; without
    it, all of them are what `params` says."""
    params = params or HeatParams()
    dt = _checked_step(dt)
    device = skin.device
    size = skin.width * skin.height
    # Vector loads reach a row and a tile over the texture's rim; there nothing is ever written.
    margin = skin.width + 2 * TILE

    def zeros() -> Any:
        return wp.zeros(size + 2 * margin, dtype=wp.float32, device=device.warp)[margin : margin + size]

    rates = wp.zeros(1, dtype=Rates, device=device.warp)
    network = make_network(skin, rates)
    if materials is not None:
        usual = (params.conductivity, params.density, params.heat_capacity)
        network.materials = make_materials(skin, network.bodies.host, materials, usual)
    limits = device.record(lambda stage: rebuild_network(stage, skin, network, native), work=skin.count)
    heat = Heat(skin, params, dt, 0, zeros(), zeros(), network, rates, zeros(), limits, native)
    heat.stages = _stages(explicit_limit(heat), params, dt)
    set_heat(heat, params)
    return heat


def set_heat(heat: Heat, params: HeatParams, dt: float | None = None) -> None:
    """Changes parameters while programs run; the number of stages stays, so a much stiffer step conducts less."""
    dt = heat.dt if dt is None else _checked_step(dt)
    heat.params, heat.dt = params, dt
    _write_rates(heat, float(heat.stages**2 + heat.stages))
    heat.limits.run()
    heat.skin.device.synchronize()


def step_heat(stage: Stage, heat: Heat) -> None:
    """One step of `heat.dt`: `heat.power` in, `heat.temperature` out."""
    network, border = heat.network, len(heat.network.bodies.border)
    cuda = stage.device.is_cuda
    kernel = (stage_cuda if cuda else stage_cpu) if heat.native else stage_plain
    count = network.tiles if heat.native and not cuda else network.tiles * TILE
    now, before = heat.temperature, heat.spare
    stage.launch(gather_slivers, border, [network.net, heat.rates, heat.power, now])
    for j in range(1, heat.stages + 1):
        momentum, weight = stage_weights(j, heat.stages)
        stage.launch(kernel, count, [momentum, weight, network.net, heat.rates, heat.power, now, before], BLOCK)
        now, before = before, now
    if network.materials is not None:
        losses = [network.materials.ease, network.materials.losses]
        stage.launch(lose_heat, heat.skin.count, [heat.skin.texels, *losses, now])
    stage.launch(spread_to_slivers, border, [network.net, now])


def stage_weights(number: int, stages: int) -> tuple[float, float]:
    """(j − 1)/j and (2j − 1)/j · w of stage j."""
    return (number - 1) / number, 2.0 / (stages**2 + stages) * (2 * number - 1) / number


def total_heat(heat: Heat) -> float:
    """Heat above body temperature in the whole layer [J]."""
    materials = heat.network.materials
    stores = heat.skin.rest_area if materials is None else materials.area
    energy = stores.numpy().astype(np.float64) * heat.temperature.numpy()
    return float(energy.sum()) * heat.params.capacity


def explicit_limit(heat: Heat) -> float:
    """Longest stable step of forward Euler on whole texels [s]; texels cut by a seam would allow far less."""
    kept = heat.rates.numpy()
    # Without limits and for a step of one second, conductances are what they are.
    _write_rates(heat, math.inf, 1.0)
    heat.limits.run()
    heat.skin.device.synchronize()
    size, w, net = heat.skin.width * heat.skin.height, heat.skin.width, heat.network.net
    left, bottom, shear = (np.abs(array.numpy().astype(np.float64)) for array in (net.left, net.bottom, net.shear))
    total = left[:size] + left[1 : size + 1] + bottom[:size] + bottom[w : size + w]
    total += shear[:size] + shear[w + 1 : size + w + 1] + shear[1 : size + 1] + shear[w : size + w]
    rate = (total * net.inverse.numpy()[:size])[heat.skin.coverage.numpy() > WHOLE]
    wp.copy(heat.rates, wp.array(kept, dtype=Rates, device=heat.skin.device.warp))
    heat.limits.run()
    stiffest = float(rate.max(initial=0.0))
    return 1.0 / stiffest if stiffest > 0.0 else math.inf


def fitted_loss(decay: float, stages: int) -> float:
    """The least λ for which P_S(1 − 2 λ/(S² + S)) = exp(−decay)."""
    if stages == 0 or decay < LEAST_DECAY:
        return decay
    target, low, high = math.exp(-decay), 0.0, MOST_LOSS
    # P_S falls from 1 to its first zero, and the halving ends when no number lies between.
    while low < (middle := 0.5 * (low + high)) < high:
        x = 1.0 - 2.0 * middle / (stages**2 + stages)
        before, now = 1.0, x
        for n in range(2, stages + 1):
            before, now = now, ((2 * n - 1) * x * now - (n - 1) * before) / n
        low, high = (middle, high) if now > target else (low, middle)
    return high


def _loss_rate(params: HeatParams) -> float:
    """Part of its temperature that the layer loses in a second [1/s]."""
    return (params.perfusion * params.thickness + params.air_transfer) / params.capacity


def _checked_step(dt: float) -> float:
    number = finite_number("dt", dt)
    if number < 0.0:
        raise InputError(f"dt = {dt} is not possible.", "It must be a finite number of 0 or more.")
    return number


def _write_rates(heat: Heat, limit: float, dt: float | None = None) -> None:
    p = heat.params
    dt = heat.dt if dt is None else dt
    rates: Any = Rates()
    rates.conduction = dt * p.conductivity * p.thickness
    rates.capacity = p.capacity
    rates.limit = limit
    decay = dt * _loss_rate(p)
    warmth = p.air_transfer * (p.air_temperature - p.body_temperature)
    materials = heat.network.materials
    if materials is None:
        rates.loss = fitted_loss(decay, heat.stages)
        scale = rates.loss / decay if rates.loss > 0.0 else 1.0
        rates.gain = scale * dt * warmth / p.capacity
        rates.dt = scale * dt
    else:
        rates.dt = dt
        taken = p.perfusion * p.thickness + p.air_transfer
        materials.losses.assign(np.array([decay, warmth / taken if taken > 0.0 else 0.0], dtype=np.float32))
    wp.copy(heat.rates, wp.array([rates], dtype=Rates, device=heat.skin.device.warp))


def _stages(longest: float, params: HeatParams, dt: float) -> int:
    """The least even number that is stable for steps of `dt` on whole texels, with `HEADROOM`."""
    spectrum = HEADROOM * 2.0 * dt / longest + min(dt * _loss_rate(params), MOST_LOSS)
    needed = math.ceil(0.5 * (math.sqrt(1.0 + 4.0 * spectrum) - 1.0))
    return min(MOST_STAGES, max(2, needed + needed % 2))
