"""Numbers of the drops, each with its unit and where it comes from."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from viscera.blood.film.params import LARGEST_VOLUME, LITTLE
from viscera.errors import InputError

_ZERO = ("spread", "seed", "crowded", "jet_volume", "drag", "bounce_speed", "restitution", "friction", "hysteresis")
_ZERO = (*_ZERO, "scatter", "joins", "cohesion", "cohesion_damping", "merge_speed")
"""Fields that may be 0."""


@dataclass(frozen=True)
class DropParams:
    hanging: float = 0.26e-3
    """[m]. Tuned to the film, whose particles cannot stack: at rest it is 0.24 mm thick and holds, where it gathers it
    drips; blood would gather to ℓ."""
    overflow: float = 0.8e-3
    """[m]. Tuned in the same way: three times the film's thickness at rest."""
    detach_time: float = 0.015
    """τ [s]."""
    box: float = 0.15
    """Drops farther from the organs than this are lost [m]: they have reached the drape."""
    highest: float = 0.8
    """Against gravity they are kept up to here above the organs [m]: what spurts up comes down again. A jet of 4 m/s,
    the speed of 65 mmHg (Bernoulli), rises u²/2g = 0.8 m."""
    crowded: float = 0.7
    """Part of the film's room: from here to `fullest` the film hangs on less and less. Tuned."""
    fullest: float = 0.9
    """Part of the film's room that landing drops fill; the rest is for wounds."""
    jet_volume: float = 0.0
    """Of a drop that a nozzle lets out [m³]; 0: as a particle of the film."""
    spread: float = 0.05
    """Sideways speed over forward speed of a nozzle's jet. Tuned."""
    drag: float = 1.0
    """Part of a ball's drag in still air that acts; 0: none. Inside a dense jet drops fly in each other's wake."""
    bounce_speed: float = 1.0
    """Speed against a surface above which a drop bounces [m/s]. Tuned for appearance: slower blood wets tissue."""
    restitution: float = 0.2
    """Part of that speed with which it comes back. Tuned for appearance."""
    friction: float = 0.3
    """Coulomb's, of a drop that hits or slides. Tuned for appearance."""
    hysteresis: float = 0.3
    """cos θ_r − cos θ_a of a drop's contact line. Our choice: 72° to 90°, wet tissue."""
    children: int = 4
    """Pieces of a splash (Murta and Miller: 4 to 6); 1: none."""
    least_volume: float = 1.0e-11
    """Of a piece [m³]: what would make smaller ones stays whole."""
    scatter: float = 0.5
    """Most sideways speed of a splash's pieces over the speed of the impact. Tuned for appearance."""
    cohesion: float = 0.0
    """c_e: how hard drops in the air hold together [m/s], see `coupling`; 0: not at all."""
    cohesion_damping: float = 20.0
    """c: how fast they come to rest against each other [1/s]. Tuned."""
    merge_speed: float = 0.0
    """Drops that touch and differ by less in velocity merge [m/s]; 0: never."""
    largest_volume: float = 2.0e-9
    """No drop grows beyond this by merging [m³]: a pendant drop of blood."""
    substeps: int = 1
    """Of a step, where drops hold together."""
    joins: bool = True
    """Whether drops become film where they land; else they slide, and come to rest, as drops (Andersson §3.2)."""
    seed: int = 2

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            zero = f.name in _ZERO
            if not math.isfinite(value) or value < 0.0 or (value == 0.0 and not zero):
                allowed = "of 0 or more" if zero else "above 0"
                raise InputError(f"{f.name} = {value} is not possible.", f"It must be a finite number {allowed}.")
        if not self.crowded < self.fullest <= 1.0:
            raise InputError(
                f"crowded = {self.crowded} and fullest = {self.fullest} are not possible.",
                "They are parts of the film's room: 0 ≤ crowded < fullest ≤ 1.",
            )
        if self.restitution**2 + self.scatter**2 > 1.0 or self.drag > 1.0:
            raise InputError(
                f"restitution = {self.restitution}, scatter = {self.scatter}, drag = {self.drag} is not possible.",
                "restitution² + scatter² is at most 1, or a splash would gain energy; drag is at most 1.",
            )
        if not self.jet_volume <= LARGEST_VOLUME * LITTLE:
            raise InputError(
                f"jet_volume = {self.jet_volume} is not possible.", f"Allowed is up to {LARGEST_VOLUME * LITTLE:g} m³."
            )
