"""The scope's lens fogs in warm, moist gas while it is cold, and is wiped.

    dT/dt = (T_gas − T)/τ
    df/dt = k (1 − f) max(T_dew − T, 0) − k f max(T − T_dew, 0)

with the lens's temperature T and the share f of it that is fogged. Wiping takes the fog away and warms the lens, as a
bath of warm saline does. Numbers are estimated: a scope from a cold table fogs within some ten seconds, one that is
as warm as the body does not.

A scope that goes through a trocar (`Camera.trocar`) looks along its shaft, or 30° aside of it. With the trocar at T,
the place looked at at P, D = |T − P|, and the lens at the distance r from P, the lens is where the angle between shaft
and view is that of the lens, α: at P + r (cos ϑ e + sin ϑ n), with e = (T − P)/D, sin β = r sin α/D and ϑ = α − β, by
the law of sines; n is any direction across e: the shaft is turned. The page does this (web/src/scope.ts).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from viscera.timing import FRAME
from viscera.view import Camera, Measure, Overlay, Parameter
from viscera.world.system import Kept, LiveParameter, Moment, Show, System

GAS, DEW, TABLE, BATH = 36.5, 35.0, 30.0, 42.0
"""Of the gas in the abdomen, of its dew point, of a scope from the table and of one from a warm bath [°C]."""
WARMS = 60.0
"""τ [s]"""
FOGS = 0.008
"""k [1/(s·K)]"""
ANGLE = 30.0
"""Of the lens that looks aside [degrees]."""
VEIL = 0.9
"""How much of the picture a lens that is all fogged hides."""

FOG = Measure("fog", "Fog on the lens", "%", "Wipe it with the setting “Wipe the lens”.", digits=0)
WIPE = Parameter(
    "wipe", "Wipe the lens", "", 0.0, 1.0, 0.0, "Either one wipes and warms it, each time you change it.",
    choices=("Wipe", "Wipe again"), group="Scope",
)  # fmt: skip

LENS = Parameter(
    "lens", "Lens", "", 0.0, 2.0, 2.0, "How it looks, relative to its shaft; a free one goes through no trocar.",
    choices=("Free", "0°", "30°"), group="Scope",
)  # fmt: skip


class Scope:
    """`state` is the lens's temperature [°C], how far it is fogged, 0 to 1, and how the setting stood."""

    def __init__(self) -> None:
        self.state = np.array([TABLE, 0.0, WIPE.default])
        self._shown = np.array([[0.5, 0.5, 0.75, 0.0]], dtype=np.float32)

    def frame(self, now: Moment) -> None:
        self.advance(FRAME)
        self.draw()

    def advance(self, dt: float) -> None:
        """By dt [s]."""
        temperature, fog, _ = self.state.tolist()
        fog += FOGS * dt * ((1.0 - fog) * max(DEW - temperature, 0.0) - fog * max(temperature - DEW, 0.0))
        self.state[:2] = GAS + (temperature - GAS) * math.exp(-dt / WARMS), min(max(fog, 0.0), 1.0)

    def wipe(self, value: float) -> None:
        """When the setting changes."""
        if value != self.state[2]:
            self.state[:] = BATH, 0.0, value

    def draw(self) -> None:
        self._shown[0, 3] = VEIL * self.state[1]

    def system(self) -> System[Scope]:
        kept = Kept({"state": self.state}, self.draw)
        look = Overlay("fog", "veil", 1)
        return System(
            name="scope",
            frame=self.frame,
            save=kept.save,
            load=kept.load,
            shows=[Show(look, {look.name: self._shown}, lambda: {look.name: 1})],
            measures=lambda: [(FOG, 100.0 * float(self.state[1]))],
            parameters=[LiveParameter(WIPE, self.wipe), LiveParameter(LENS, _seen_by_the_page)],
            holds=self,
        )


def _seen_by_the_page(value: float) -> None:
    """Nothing in the world depends on it."""


def through_trocar(camera: Camera, away: float) -> Camera:
    """The same view through a trocar so far from what is looked at [m], with a lens of 30°: the shaft comes from higher
    up than the view."""
    p, target, up = (np.asarray(one) for one in (camera.position, camera.target, camera.up))
    back = p - target
    r = float(np.linalg.norm(back))
    ahead = back / r
    across = np.asarray(up) - float(np.asarray(up) @ ahead) * ahead
    across /= np.linalg.norm(across)
    angle = math.radians(ANGLE) - math.asin(r * math.sin(math.radians(ANGLE)) / away)
    x, y, z = (target + away * (math.cos(angle) * ahead + math.sin(angle) * across)).tolist()
    return replace(camera, trocar=(x, y, z))


def scope() -> System[Scope]:
    """Anywhere in the order of a frame."""
    return Scope().system()
