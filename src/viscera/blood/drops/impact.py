"""What a drop does in flight and where it meets a surface: drag, retention, bounce, splash.

A ball of volume V has the diameter D = (6V/π)^⅓. In air

    a = g − k |v| v,    k = ¾ C ρ_air/(ρ D)

with C = 0.44, a ball between Re 500 and 2·10⁵ (Newton's law; Clift, Grace and Weber, Bubbles, Drops and Particles, ch.
5; a drop of 0.7 mm at 3 m/s has Re 140 and twice that: a jet's drops fly in each other's wake, so we keep the lower).
What spurts up with u rises to

    h = ln(1 + k u²/g) / 2k,    without drag u²/2g.

A step takes the acceleration at its middle, v_m = v + ½ dt a(v), x ← x + dt v_m, v ← v + dt a(v_m): exact without drag.

On a surface with unit normal n, with u_n the speed against it and v_t the velocity along it:

    splash   We = ρ u_n² D/σ > K^(8/5) Oh^(2/5),  Oh = μ/√(ρσD)      into `children` pieces
    bounce   u_n > `bounce_speed`                                   v ← v_t' + ε u_n n
    slide    otherwise                                              v ← v_t'

with Coulomb's friction of the impact, v_t' = v_t max(0, 1 − μ_f (1 + ε) u_n/|v_t|). The first is We^½ Re^¼ > K = 57.7
(C. Mundo, M. Sommerfeld and C. Tropea, Int. J. Multiphase Flow 21 (1995) 151), written as a Weber number, as
Re = We^½/Oh. A splash gives its children the bounce's velocity and sideways ones beside that, evenly around n, whose
momenta add up to nothing.

A sliding drop is slowed by

    f = μ_f (−g·n) + (24/π³) σ D (cos θ_r − cos θ_a)/(ρV)

Coulomb's friction and the retention of its contact line (A. ElSherbini and A. Jacobi, J. Colloid Interface Sci. 299
(2006) 841), against its velocity, and never turns it round; at rest it holds up to f. On a slope θ it comes
v₀²/2(f − g sin θ) far.

Andersson §3.2.2–3.2.3 has the segment test, sliding and a constant friction, which his code lets reverse a drop; he
names bouncing as worth trying. Splitting into 4 to 6 pieces is Murta and Miller's, whom he cites.
"""

from __future__ import annotations

import math

import warp as wp

from viscera.blood.constants import AIR_DENSITY, BLOOD_DENSITY, BLOOD_VISCOSITY, SURFACE_TENSION
from viscera.blood.film.params import LITTLE

wp.set_module_options({"enable_backward": False})

DRAG = 0.44
"""C of a ball."""

SPLASHING = 57.7
"""K of Mundo, Sommerfeld and Tropea."""

_DRAG = wp.constant(0.75 * DRAG * AIR_DENSITY / BLOOD_DENSITY)
_DIAMETER = wp.constant((6.0 * LITTLE / math.pi) ** (1.0 / 3.0))
_WEBER = wp.constant(BLOOD_DENSITY / SURFACE_TENSION)
_SPLASH = wp.constant(SPLASHING**1.6 * (BLOOD_VISCOSITY / math.sqrt(BLOOD_DENSITY * SURFACE_TENSION)) ** 0.4)
_RETENTION = wp.constant(24.0 / math.pi**3 * SURFACE_TENSION / (BLOOD_DENSITY * LITTLE))


@wp.struct
class ImpactNumbers:
    """Live numbers of flight and impact."""

    drag: float
    """Part of the drag of a ball in still air that acts, 0 to 1."""
    bounce_speed: float
    """[m/s]"""
    restitution: float
    """ε"""
    friction: float
    """μ_f"""
    hysteresis: float
    """cos θ_r − cos θ_a"""
    children: int
    """Pieces of a splash, this one included; below 2 there is none."""
    least_volume: int
    """What is smaller does not splash [pL]."""
    scatter: float
    """Sideways speed of a splash's pieces over u_n."""
    join_speed: float
    """A sliding drop that is slower joins the film [m/s]; 0: never, it comes to rest and stays a drop."""


@wp.func
def diameter_of(volume: int) -> float:
    """[m], of so many picolitres."""
    return _DIAMETER * wp.pow(float(volume), 1.0 / 3.0)


@wp.func
def drag_of(numbers: ImpactNumbers, volume: int) -> float:
    """k [1/m]"""
    return numbers.drag * _DRAG / diameter_of(volume)


@wp.func
def weber_of(volume: int, speed: float) -> float:
    return _WEBER * speed * speed * diameter_of(volume)


@wp.func
def splash_weber(volume: int) -> float:
    """Weber number above which a drop splashes: 128 for 0.2 µL of blood, at 3.1 m/s."""
    return _SPLASH * wp.pow(diameter_of(volume), -0.2)


@wp.func
def splashes(numbers: ImpactNumbers, volume: int, speed: float) -> wp.bool:
    large = numbers.children >= 2 and volume >= numbers.least_volume * numbers.children
    return large and weber_of(volume, speed) > splash_weber(volume)


@wp.func
def held_by(numbers: ImpactNumbers, volume: int, press: float) -> float:
    """f [m/s²]; `press` is −g·n."""
    line = _RETENTION * numbers.hysteresis * diameter_of(volume) / float(volume)
    return numbers.friction * wp.max(press, 0.0) + line


@wp.func
def rubbed(along: wp.vec3, loss: float) -> wp.vec3:
    """A velocity along a surface that friction has slowed by `loss` [m/s]; it stops, and never turns round."""
    speed = wp.length(along)
    return along * wp.max(1.0 - loss / wp.max(speed, 1.0e-12), 0.0)
