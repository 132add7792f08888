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
from viscera.skin import Skin

wp.set_module_options({"enable_backward": False})

NEAREST = wp.constant(0.1)
"""Least distance of two nodes, in texels. Nearer ones are slivers of two cut texels: tied more tightly than to anything
else, they would be one body that the iteration cannot move, and gain nothing in accuracy."""

FULL = wp.constant(0.999)
"""Coverage from which a texel counts as whole: only there is the shear between four texels known."""

SQUEEZE = 2.0
"""How much stiffer than at rest the equations may become before accuracy drops: texels squeezed to half their area."""

TOLERANCE = 1.0e-6
"""Part of the residual that the iteration leaves."""

MOST_ITERATIONS = 400


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
class Network:
    """Texels and the conductances between them, all without a unit: lengths over distances."""

    width: int
    texels: wp.array(dtype=wp.int32)
    area: wp.array(dtype=wp.float32)
    left: wp.array(dtype=wp.float32)
    bottom: wp.array(dtype=wp.float32)
    shear: wp.array(dtype=wp.float32)
    """Between a texel and the one below and left of it; the two others of these four get the opposite."""
    link_start: wp.array(dtype=wp.int32)
    link_texel: wp.array(dtype=wp.int32)
    link: wp.array(dtype=wp.float32)


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


@wp.kernel
def side_conductances(
    first: int,
    # params
    width: int,
    # in
    texels: wp.array(dtype=wp.int32),
    metric: wp.array(dtype=wp.vec3),
    coverage: wp.array(dtype=wp.float32),
    node: wp.array(dtype=wp.vec2),
    open_side: wp.array(dtype=wp.vec2),
    # out
    left_out: wp.array(dtype=wp.float32),
    bottom_out: wp.array(dtype=wp.float32),
):
    t = texels[first + wp.tid()]
    if t % width > 0:
        left = float(0.0)
        if coverage[t - 1] > 0.0 and open_side[t][0] > 0.0:
            g = 0.5 * (metric[t] + metric[t - 1])
            root = wp.sqrt(wp.max(g[0] * g[2] - g[1] * g[1], 1.0e-30))
            apart = wp.max(node[t][0] + 1.0 - node[t - 1][0], NEAREST)
            left = open_side[t][0] * g[2] / (root * apart)
        left_out[t] = left
    if t >= width:
        bottom = float(0.0)
        if coverage[t - width] > 0.0 and open_side[t][1] > 0.0:
            g = 0.5 * (metric[t] + metric[t - width])
            root = wp.sqrt(wp.max(g[0] * g[2] - g[1] * g[1], 1.0e-30))
            apart = wp.max(node[t][1] + 1.0 - node[t - width][1], NEAREST)
            bottom = open_side[t][1] * g[0] / (root * apart)
        bottom_out[t] = bottom


@wp.kernel
def shear_conductances(
    first: int,
    # params
    width: int,
    # in
    texels: wp.array(dtype=wp.int32),
    metric: wp.array(dtype=wp.vec3),
    coverage: wp.array(dtype=wp.float32),
    left: wp.array(dtype=wp.float32),
    bottom: wp.array(dtype=wp.float32),
    # out
    shear_out: wp.array(dtype=wp.float32),
):
    t = texels[first + wp.tid()]
    if t % width > 0 and t >= width:
        a = t - width - 1
        b = t - width
        c = t - 1
        if wp.min(wp.min(coverage[a], coverage[b]), wp.min(coverage[c], coverage[t])) > FULL:
            g = 0.25 * (metric[a] + metric[b] + metric[c] + metric[t])
            root = wp.sqrt(wp.max(g[0] * g[2] - g[1] * g[1], 1.0e-30))
            # Beyond this the four texels' energy could become negative, and heat flow uphill.
            most = wp.min(wp.min(left[t], left[b]), wp.min(bottom[t], bottom[c]))
            shear_out[t] = 0.5 * wp.clamp(-g[1] / root, -most, most)


@wp.kernel
def link_conductances(
    first: int,
    # in
    texels: wp.array(dtype=wp.int32),
    area: wp.array(dtype=wp.float32),
    coverage: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.vec3),
    vertices: wp.array(dtype=wp.vec3),
    seam_vertex: wp.array(dtype=wp.vec2i),
    link_start: wp.array(dtype=wp.int32),
    link_texel: wp.array(dtype=wp.int32),
    link_seam: wp.array(dtype=wp.int32),
    link_stretch: wp.array(dtype=wp.vec2),
    # out
    link_out: wp.array(dtype=wp.float32),
):
    i = first + wp.tid()
    t = texels[i]
    for k in range(link_start[i], link_start[i + 1]):
        j = link_texel[k]
        ends = seam_vertex[link_seam[k]]
        origin = vertices[ends[0]]
        edge = vertices[ends[1]] - origin
        length = wp.length(edge)
        here = wp.length(wp.cross(position[t] - origin, edge)) / length
        there = wp.length(wp.cross(position[j] - origin, edge)) / length
        least = 0.5 * NEAREST * (wp.sqrt(area[t] / coverage[t]) + wp.sqrt(area[j] / coverage[j]))
        # Sums of two are the same bits seen from either side, so the link is.
        link_out[k] = link_stretch[k][0] * length / wp.max(here + there, least)


@wp.func
def _pull(g: float, x: wp.array(dtype=wp.float32), own: float, j: int):
    if g == 0.0:
        return wp.vec2(0.0, 0.0)
    return wp.vec2(g * (own - x[j]), g)


@wp.func
def _outflow(net: Network, x: wp.array(dtype=wp.float32), i: int):
    """Σ g (x_i − x_j) and Σ g over the neighbours j of covered texel i. Sides at the rim of the texture are closed, so
    nothing beyond it is read."""
    t = net.texels[i]
    w = net.width
    own = x[t]
    total = _pull(net.left[t], x, own, t - 1) + _pull(net.left[t + 1], x, own, t + 1)
    total += _pull(net.bottom[t], x, own, t - w) + _pull(net.bottom[t + w], x, own, t + w)
    total += _pull(net.shear[t], x, own, t - w - 1) + _pull(net.shear[t + w + 1], x, own, t + w + 1)
    total += _pull(-net.shear[t + 1], x, own, t + 1 - w) + _pull(-net.shear[t + w], x, own, t + w - 1)
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

    net: Any = Network()
    net.width = skin.width
    net.texels, net.area = skin.texels, skin.area
    # One row and one texel more: the texel above and right of the last one is asked for, and closed.
    net.left, net.bottom, net.shear = (zeros(size + skin.width + 1) for _ in range(3))
    net.link_start, net.link_texel = skin.link_start, skin.link_texel
    net.link = zeros(max(1, skin.link_texel.shape[0]))
    skin.device.record(lambda stage: rebuild_network(stage, skin, net), work=skin.count).run()
    skin.device.synchronize()
    low, high = _spectrum(skin, net, params, dt)
    iterations = _iterations(low, high)
    rates = wp.zeros(1, dtype=Rates, device=device)
    weights = wp.array(_chebyshev(low, high, iterations), dtype=wp.vec2, device=device)
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
    low, high = _spectrum(heat.skin, heat.network, params, heat.dt)
    wp.copy(heat.weights, wp.array(_chebyshev(low, high, heat.iterations), dtype=wp.vec2, device=heat.skin.device.warp))
    _write_rates(heat)


def rebuild_network(stage: Stage, skin: Skin, net: Any) -> None:
    """Conductances for the skin as it is now; after `rebuild_skin`."""
    maps = [skin.width, skin.texels, skin.metric, skin.coverage]
    ends = [skin.texels, skin.area, skin.coverage, skin.position, skin.vertices, skin.seam_vertex]
    links = [skin.link_start, skin.link_texel, skin.link_seam, skin.link_stretch]
    stage.launch(side_conductances, skin.count, [*maps, skin.node, skin.open_side, net.left, net.bottom])
    stage.launch(shear_conductances, skin.count, [*maps, net.left, net.bottom, net.shear])
    stage.launch(link_conductances, skin.count, [*ends, *links, net.link])


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
    stiffest = _stiffest(heat.skin, heat.network)[0]
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


def _stiffest(skin: Skin, net: Any) -> tuple[float, float]:
    """Largest Σg / area of whole texels [1/m²], and the largest Σ|g| / Σg of any."""
    size, w = skin.width * skin.height, skin.width
    left, bottom, shear = (array.numpy().astype(np.float64) for array in (net.left, net.bottom, net.shear))
    plain = left[:size] + left[1 : size + 1] + bottom[:size] + bottom[w : size + w]
    slants = [shear[:size], shear[w + 1 : size + w + 1], -shear[1 : size + 1], -shear[w : size + w]]
    texels = skin.texels.numpy()
    start = skin.link_start.numpy()
    owner = np.repeat(texels, np.diff(start))
    plain += np.bincount(owner, weights=net.link.numpy()[: len(owner)], minlength=size)
    total = (plain + sum(slants))[texels]
    absolute = (plain + sum(np.abs(s) for s in slants))[texels]
    whole = skin.coverage.numpy()[texels] > 0.999
    area = skin.area.numpy()[texels].astype(np.float64)
    stiff = float((total[whole] / area[whole]).max()) if whole.any() else float((total / area).max())
    some = total > 0.0
    return stiff, float((absolute[some] / total[some]).max()) if some.any() else 1.0


def _spectrum(skin: Skin, net: Any, params: HeatParams, dt: float) -> tuple[float, float]:
    """Bounds of the scaled matrix' eigenvalues. Above: Gershgorin. Below: a mode that hardly varies between neighbours,
    on the stiffest whole texels; cut texels are too few and too scattered to carry one."""
    stiff, slant = _stiffest(skin, net)
    ratio = SQUEEZE * dt * params.diffusivity * stiff
    return 1.0 / (1.0 + ratio), 1.0 + 1.05 * slant


def _iterations(low: float, high: float) -> int:
    root = math.sqrt(high / low)
    rate = (root - 1.0) / (root + 1.0)
    return min(MOST_ITERATIONS, max(1, math.ceil(math.log(0.5 * TOLERANCE) / math.log(rate))))


def _chebyshev(low: float, high: float, iterations: int) -> np.ndarray:
    """Weights of the step before and of the scaled residual, for each iteration."""
    middle, half = 0.5 * (high + low), 0.5 * (high - low)
    weights = [(0.0, 1.0 / middle)]
    before = half / middle
    for _ in range(1, iterations):
        now = 1.0 / (2.0 * middle / half - before)
        weights.append((now * before, 2.0 * now / half))
        before = now
    return np.array(weights, dtype=np.float32)
