"""Burns: what heat does to tissue, texel by texel. Water boils off, tissue coagulates (whitens), then chars (blackens).

With T = T_body + θ, for each texel and step of dt:

    boiling       above 100 °C, while there is water w:  w ← w − Δw,  θ ← θ − Λ Δw,  Λ = w₀ L / c,
                  Δw = min(w, (θ − θ_boil)/Λ): what would heat tissue beyond 100 °C makes steam instead
    Arrhenius     Ω ← Ω + k(T) dt,       k = (k_B T/h) exp(ΔS/R − ΔH/(R T)),       coagulation = 1 − e^(−Ω)
    charring      Ω_c ← Ω_c + k_c(T) dt, the same form with its own ΔH and ΔS,     char = 1 − e^(−Ω_c)
    linear        B ← B + r max(T − T_0, 0) dt,  coagulation = min(B, 1),  char = max(B − 1, 0)     (Kvick §3.3.4)

    blood flow    stops as tissue coagulates: θ ← θ / (1 − (1 − e^(−ω dt)) coagulation) gives back what conduction's
                  perfusion, of rate ω, has taken

Both integrals are exact where T is constant over the step. The burn level is coagulation + char: 0 healthy, 1 white,
2 black. White comes before black by itself: until its water is gone tissue stays at 100 °C, where it coagulates
within milliseconds and does not char.

Sources: coagulation of pig liver ΔH = 2.768·10⁵ J/mol, ΔS = 553.5 J/(mol·K) (Jacques 2006,
omlc.org/news/may06/livercoag); form of k: Jacques, J. Biomed. Opt. 11, 041108, 2006. Boiling: the apparent heat
capacity of liver under a monopolar electrode rises some five times near 100 °C (Karaki et al., IEEE Trans. Biomed. Eng.
64, 2017). Charring: rate and slope are estimated.

Differs from the source (Kvick §3.3.3–3.3.4), which has the linear model alone and no water. Differs from nature: the
heat capacity of dried tissue stays that of wet tissue, which is two to three times too much; steam leaves at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import warp as wp

from viscera.device import Port, Stage
from viscera.errors import InputError
from viscera.heat.conduction import Heat, finite_number
from viscera.heat.sums import FAN, TreeSum, end_of_block, finish_sum, first_of_block, make_sum

wp.set_module_options({"enable_backward": False})

GAS_CONSTANT = 8.314462618
"""R [J/(mol·K)]"""
BOLTZMANN_OVER_PLANCK = 2.083661912e10
"""k_B/h [1/(K·s)]"""
BOILING = 373.15
"""[K]"""

BurnModel = Literal["arrhenius", "linear"]
ARRHENIUS, LINEAR = wp.constant(0), wp.constant(1)

MOST_LOG_RATE = wp.constant(60.0)
"""ln k is held below this: e⁶⁰ per second is long since everything, and float32 ends at e⁸⁸."""
LEAST_LOG_RATE = wp.constant(-18.4)
"""Below e^(−18.4) per second a process does not run: half done after two years."""
MOST_DAMAGE = wp.constant(60.0)
"""Ω is held below this: 1 − e^(−60) is 1."""
MOST_LEVEL = wp.constant(2.0)
LUKEWARM = wp.constant(0.05)
"""Up to this θ, blood that flows no longer makes no difference [K]."""

HALF = wp.constant(0.5)
"""Coagulation, and char, from which a texel counts as coagulated, or charred."""


@dataclass(frozen=True)
class RateProcess:
    """A first-order process by Eyring's equation: k = (k_B T/h) exp(ΔS/R − ΔH/(R T))."""

    enthalpy: float
    """ΔH [J/mol]"""
    entropy: float
    """ΔS [J/(mol·K)]"""

    def __post_init__(self) -> None:
        for name in ("enthalpy", "entropy"):
            object.__setattr__(self, name, finite_number(name, getattr(self, name)))
        if self.enthalpy <= 0.0:
            raise InputError(f"enthalpy = {self.enthalpy} is not possible.", "It must be above 0, in J/mol.")

    @classmethod
    def through(cls, temperature: float, rate: float, enthalpy: float) -> RateProcess:
        """The process of this ΔH [J/mol] that runs at `rate` [1/s] at `temperature` [K]."""
        temperature, rate = finite_number("temperature", temperature), finite_number("rate", rate)
        enthalpy = finite_number("enthalpy", enthalpy)
        if not (temperature > 0.0 and rate > 0.0):
            raise InputError(f"rate = {rate} at temperature = {temperature} is not possible.", "Both must be above 0.")
        free = enthalpy / (GAS_CONSTANT * temperature) + math.log(rate / (BOLTZMANN_OVER_PLANCK * temperature))
        return cls(enthalpy, GAS_CONSTANT * free)

    def log_rate(self, temperature: float) -> float:
        """ln k, k in 1/s, at `temperature` [K]."""
        energy = self.entropy / GAS_CONSTANT - self.enthalpy / (GAS_CONSTANT * temperature)
        return math.log(BOLTZMANN_OVER_PLANCK * temperature) + energy


LIVER_COAGULATION = RateProcess(2.768e5, 553.5)
"""Pig liver (Jacques 2006)."""

CHARRING = RateProcess.through(573.15, 1.0, 1.6e5)
"""Once per second at 300 °C, 4 % of that at 250 °C, fifteen times that at 350 °C: estimated, so that dry tissue browns
slowly from 200 °C and blackens within seconds at 300 °C."""


@dataclass(frozen=True)
class BurnParams:
    """What heat does to tissue."""

    model: BurnModel = "arrhenius"
    coagulation: RateProcess = LIVER_COAGULATION
    charring: RateProcess = CHARRING
    harmless: float = 316.15
    """Up to this nothing happens [K]: 43 °C, where cells keep up with their repair."""
    water_content: float = 0.72
    """w₀: share of the tissue's mass; IT'IS database, liver. 0 switches boiling off."""
    latent_heat: float = 2.257e6
    """L of water at 100 °C [J/kg]."""
    threshold: float = 333.15
    """T_0 of the linear model [K]; tuned: 60 °C, where tissue whitens within seconds."""
    linear_rate: float = 0.025
    """r of the linear model [1/(K·s)]; tuned: white after 1 s at 100 °C."""

    def __post_init__(self) -> None:
        if self.model not in get_args(BurnModel):
            raise InputError(f"model = {self.model!r} is not known.", f"Allowed are {', '.join(get_args(BurnModel))}.")
        for name in ("coagulation", "charring"):
            if not isinstance(getattr(self, name), RateProcess):
                raise InputError(f"{name} = {getattr(self, name)!r} is not possible.", "Give a `RateProcess`.")
        for name in ("harmless", "water_content", "latent_heat", "threshold", "linear_rate"):
            value = finite_number(name, getattr(self, name))
            zero = name in ("water_content", "linear_rate")
            most = {"water_content": 0.99}.get(name, math.inf)
            if not ((value >= 0.0 if zero else value > 0.0) and value <= most):
                allowed = "of 0 or more" if zero else "above 0"
                limit = "" if math.isinf(most) else f", at most {most:g}"
                raise InputError(f"{name} = {value} is not possible.", f"It must be a finite number {allowed}{limit}.")
            object.__setattr__(self, name, value)


@wp.struct
class BurnRates:
    """Live numbers of the step; from an array, as scalars are frozen when a program is recorded."""

    dt: float
    model: int
    body: float
    """[K]"""
    watch: float
    """θ up to which nothing at all happens [K]."""
    harmless: float
    """θ [K]"""
    boiling: float
    """θ [K]"""
    latent: float
    """Λ [K]"""
    log_coagulation: float
    coagulation: float
    """ln k at 100 °C, and ΔH/(R · 373.15 K)."""
    log_charring: float
    charring: float
    threshold: float
    """θ [K]"""
    linear_rate: float
    carried: float
    """Part of its heat that blood carries off living tissue in a step."""
    flow: float
    """−ln(1 − carried)"""


@dataclass(eq=False)
class Burn:
    """Made by `make_burn`. Maps are float32, one entry per texel of the skin, shape (width · height,)."""

    heat: Heat
    params: BurnParams
    damage: Any
    """Ω, or B of the linear model."""
    charring: Any
    """Ω_c."""
    water: Any
    """Share of the tissue's water that is left, 1 to 0."""
    burn_level: Any
    """0 healthy, 1 coagulated, 2 charred."""
    rates: Any
    """`BurnRates`, shape (1,): numbers that `set_burn` may change."""
    areas: TreeSum
    """Scratch of `measure_burn`."""
    area: Port
    """Coagulated and charred area of the skin at rest, as of the last `measure_burn`, vec2d, shape (1,) [m²]."""
    one_tissue: Any
    """An array of one element, where kernels could ask for one per texel."""


@wp.func
def exponential(x: float):
    """e^x to 1e-7 for −87 < x < 88: 2ⁿ e^r, r within ±½ ln 2. On cpu a fifth of the time of the library's, and this is
    most of what a burning texel costs."""
    n = wp.rint(x * 1.44269504)
    # ln 2 in two parts, the first with so few bits that n times it is exact.
    r = (x - n * 0.693145752) - n * 1.42860677e-6
    tail = 1.0 + r * (0.5 + r * (0.166666667 + r * (0.0416666667 + r * (0.00833333333 + r * 0.00138888889))))
    return (1.0 + r * tail) * wp.cast((int(n) + 127) << 23, wp.float32)


@wp.func
def grown(integral: float, at_boiling: float, slope: float, share: float, dt: float):
    """Ω + k dt, with ln k = `at_boiling` + ln(T/T_b) + `slope` (1 − T_b/T) and `share` = T/T_b − 1: from differences
    alone, as float32 has too few bits for kelvin."""
    log_rate = at_boiling + slope * share / (1.0 + share)
    if log_rate < LEAST_LOG_RATE:
        return integral
    return wp.min(integral + (1.0 + share) * exponential(wp.min(log_rate, MOST_LOG_RATE)) * dt, MOST_DAMAGE)


@wp.func
def done(integral: float):
    """1 − e^(−Ω) without losing small Ω to rounding."""
    if integral < 0.01:
        return integral * (1.0 - 0.5 * integral * (1.0 - integral / 3.0))
    if integral >= MOST_DAMAGE:
        return 1.0
    return 1.0 - exponential(-integral)


@wp.func
def coagulation_of(model: int, damage: float):
    if model == LINEAR:
        return wp.min(damage, 1.0)
    return done(damage)


@wp.func
def char_of(model: int, damage: float, charring: float):
    if model == LINEAR:
        return wp.clamp(damage - 1.0, 0.0, 1.0)
    return done(charring)


@wp.func
def burn_texel(
    t: int, rates: wp.array(dtype=BurnRates), boiling: wp.array(dtype=wp.float32), ease: wp.array(dtype=wp.float32),
    temperature_out: wp.array(dtype=wp.float32), damage_out: wp.array(dtype=wp.float32),
    charring_out: wp.array(dtype=wp.float32), water_out: wp.array(dtype=wp.float32),
    burn_level_out: wp.array(dtype=wp.float32),
):  # fmt: skip
    """A step of one texel, as warm as it is."""
    rate = rates[0]
    warm = temperature_out[t]
    # Most of an organ is cold: one read, no write.
    if warm <= LUKEWARM:
        return
    latent = rate.latent
    carried = rate.carried
    if boiling.shape[0] > 1:
        # Texels of another tissue: what water takes along, and what blood does, in kelvin of theirs.
        latent = rate.latent * boiling[t]
        carried = done(rate.flow * ease[t])
    damage = damage_out[t]
    if damage > 0.0 and carried > 0.0:
        warm /= 1.0 - carried * coagulation_of(rate.model, damage)
        temperature_out[t] = warm
    if warm <= rate.watch:
        return
    if warm > rate.boiling and latent > 0.0:
        water = water_out[t]
        steam = wp.min(water, (warm - rate.boiling) / latent)
        water_out[t] = water - steam
        warm -= steam * latent
        temperature_out[t] = warm
    charring = charring_out[t]
    if rate.model == LINEAR:
        damage = wp.min(damage + rate.linear_rate * wp.max(warm - rate.threshold, 0.0) * rate.dt, MOST_LEVEL)
    elif warm > rate.harmless:
        share = (warm - rate.boiling) / BOILING
        if damage < MOST_DAMAGE:
            damage = grown(damage, rate.log_coagulation, rate.coagulation, share, rate.dt)
        if charring < MOST_DAMAGE:
            charring = grown(charring, rate.log_charring, rate.charring, share, rate.dt)
            charring_out[t] = charring
    damage_out[t] = damage
    burn_level_out[t] = coagulation_of(rate.model, damage) + char_of(rate.model, damage, charring)


@wp.kernel
def burn_texels(
    first: int,
    # in
    texels: wp.array(dtype=wp.int32),
    rates: wp.array(dtype=BurnRates),
    boiling: wp.array(dtype=wp.float32),
    ease: wp.array(dtype=wp.float32),
    # out
    temperature_out: wp.array(dtype=wp.float32),
    damage_out: wp.array(dtype=wp.float32),
    charring_out: wp.array(dtype=wp.float32),
    water_out: wp.array(dtype=wp.float32),
    burn_level_out: wp.array(dtype=wp.float32),
):
    burn_texel(
        texels[first + wp.tid()], rates, boiling, ease, temperature_out, damage_out, charring_out, water_out,
        burn_level_out,
    )  # fmt: skip


@wp.kernel
def burnt_areas(
    first: int,
    # in
    texels: wp.array(dtype=wp.int32),
    area: wp.array(dtype=wp.float32),
    rates: wp.array(dtype=BurnRates),
    damage: wp.array(dtype=wp.float32),
    charring: wp.array(dtype=wp.float32),
    # out
    sum_out: wp.array(dtype=wp.vec2d),
):
    block = first + wp.tid()
    model = rates[0].model
    total = wp.vec2d()
    for i in range(first_of_block(block), end_of_block(block, texels.shape[0])):
        t = texels[i]
        if damage[t] > 0.0:
            size = wp.float64(area[t])
            if coagulation_of(model, damage[t]) >= HALF:
                total[0] = total[0] + size
            if char_of(model, damage[t], charring[t]) >= HALF:
                total[1] = total[1] + size
    sum_out[block] = total


def make_burn(heat: Heat, params: BurnParams | None = None) -> Burn:
    """Healthy, wet tissue on the skin of `heat`."""
    params = params or BurnParams()
    device = heat.skin.device
    size = heat.skin.width * heat.skin.height

    def zeros() -> Any:
        return wp.zeros(size, dtype=wp.float32, device=device.warp)

    burn = Burn(
        heat,
        params,
        damage=zeros(),
        charring=zeros(),
        water=wp.ones(size, dtype=wp.float32, device=device.warp),
        burn_level=zeros(),
        rates=wp.zeros(1, dtype=BurnRates, device=device.warp),
        areas=make_sum(heat.skin.count, device),
        area=device.port(1, wp.vec2d),
        one_tissue=wp.ones(1, dtype=wp.float32, device=device.warp),
    )
    set_burn(burn, params)
    return burn


def set_burn(burn: Burn, params: BurnParams) -> None:
    """Changes parameters while programs run; also to be called when `set_heat` changed the step or the tissue."""
    if params.model != burn.params.model and burn.damage.numpy().any():
        raise InputError(
            f"model = {params.model!r} cannot follow {burn.params.model!r} on burnt tissue.",
            "The two count damage differently: reset the burn first.",
        )
    burn.params = params
    heat = burn.heat
    body = heat.params.body_temperature
    rates: Any = BurnRates()
    rates.dt, rates.body = heat.dt, body
    rates.model = get_args(BurnModel).index(params.model)
    rates.harmless, rates.threshold = params.harmless - body, params.threshold - body
    rates.boiling = BOILING - body
    rates.latent = params.water_content * params.latent_heat / heat.params.heat_capacity
    rates.watch = min(rates.boiling, rates.threshold if params.model == "linear" else rates.harmless)
    for name in ("coagulation", "charring"):
        process: RateProcess = getattr(params, name)
        setattr(rates, f"log_{name}", process.log_rate(BOILING))
        setattr(rates, name, process.enthalpy / (GAS_CONSTANT * BOILING))
    rates.linear_rate = params.linear_rate
    flow = heat.params.perfusion / (heat.params.density * heat.params.heat_capacity)
    rates.carried = -math.expm1(-flow * heat.dt)
    rates.flow = flow * heat.dt
    wp.copy(burn.rates, wp.array([rates], dtype=BurnRates, device=heat.skin.device.warp))


def reset_burn(burn: Burn) -> None:
    """Heals everything; what is hot stays hot."""
    for healthy in (burn.damage, burn.charring, burn.burn_level):
        healthy.zero_()
    burn.water.fill_(1.0)


def step_burn(stage: Stage, burn: Burn) -> None:
    """One step of `heat.dt` with the temperature as it is now: after `step_heat`."""
    heat, maps = burn.heat, [burn.damage, burn.charring, burn.water, burn.burn_level]
    tissue = heat.network.materials
    scales = [burn.one_tissue, burn.one_tissue] if tissue is None else [tissue.boiling, tissue.ease]
    stage.launch(burn_texels, heat.skin.count, [heat.skin.texels, burn.rates, *scales, heat.temperature, *maps])


def measure_burn(stage: Stage, burn: Burn) -> None:
    """Coagulated and charred area into `burn.area`."""
    skin = burn.heat.skin
    maps = [skin.texels, skin.rest_area, burn.rates, burn.damage, burn.charring, burn.areas.levels[0]]
    stage.launch(burnt_areas, -(-skin.count // FAN), maps)
    finish_sum(stage, burn.areas)
    stage.once(lambda: wp.copy(burn.area.array, burn.areas.total))
    stage.download(burn.area)


def boiled_heat(burn: Burn) -> float:
    """Heat that has left as steam so far [J]."""
    heat, area = burn.heat, burn.heat.skin.rest_area.numpy().astype(np.float64)
    p = heat.params
    latent = burn.params.water_content * burn.params.latent_heat * p.density * p.thickness
    if heat.network.materials is not None:
        area = area * heat.network.materials.density
    return latent * float((area * (1.0 - burn.water.numpy().astype(np.float64))).sum())
