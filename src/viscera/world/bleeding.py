"""Bleeding: vessels feed a film of blood on an organ; it runs, drips, clots; it is rinsed, sucked off, and stopped.

Once a frame, in order: the surface follows the tissue; the heart drives the vessels; wounds seal where tissue is
coagulated, and bleed; suction and nozzle work, drops let go, fly and land; the film takes its eight steps of 2 ms; all
volumes are counted; the picture is painted.
"""

# Warp's stubs know neither its own dtypes nor the fields of a struct.
# pyright: reportArgumentType=false, reportCallIssue=false, reportIndexIssue=false, reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from viscera.blood.balance import Balance, check_balance, make_ledger, read_balance, step_ledger
from viscera.blood.drops.drops import DropParams, make_drops, set_tools, step_drops
from viscera.blood.film.border import arrays as film_arrays
from viscera.blood.film.border import check_film
from viscera.blood.film.border import load as load_film
from viscera.blood.film.film import make_film, step_film
from viscera.blood.film.params import FilmParams
from viscera.blood.film.surface import make_surface, refresh_surface
from viscera.blood.picture.image import make_film_image, step_film_image
from viscera.blood.views import DropView
from viscera.blood.wounds.kernels import WoundView
from viscera.blood.wounds.vessels import VesselParams
from viscera.blood.wounds.wounds import (
    CAPACITY,
    CLIPPED,
    add_wound,
    find_texels,
    make_wounds,
    set_clip,
    step_cautery,
    step_wounds,
)
from viscera.device import Stage
from viscera.instruments import Tool
from viscera.tissue.heartbeat import pulse
from viscera.view import Measure, Particles, Texture
from viscera.world.world import TICK, TICKS_PER_FRAME, Organ, World

wp.set_module_options({"enable_backward": False})

FRAME = TICK * TICKS_PER_FRAME
"""[s]"""

PRESSED = 0.5
"""From this grip on a nozzle, a suction or a clip applier works."""

PAINTING = 2
"""Frames from one picture of the film to the next: 31 pictures a second, for a quarter of a frame's work less."""

MILLILITRES = 1e6
"""In a cubic metre."""

_WOUND_STATE = ("opening", "sealed", "clot", "rate", "owed", "given", "held", "speed", "leaving")
_DROP_STATE = ("count", "position", "velocity", "volume", "fluid", "fate", "face", "barycentric")
_IMAGE_STATE = ("height", "kept", "wet", "words", "tiles", "frame")

MIXING = 4
"""Every so many steps of the film, fluids mix and clot: that takes as long as all the rest of a step on cpu."""

CLIP_REACH = 4.0e-3
"""A clip closes vessels whose opening is this near to the applier's tip [m]."""

CLIP_SIZE = 2.5e-3
"""Half the length of a closed clip [m]; a small ligating clip is about 5 mm long."""

STEM = 5.0e-3
"""Between the two points that say where a clip is and which way is up [m]."""

OUTLET = 8.0e-3
"""From an irrigator's tip back to its outlet, along the shaft [m]: such tubes have holes along their end, free
while the tip is pressed into tissue."""

NOZZLE_SPEED = 0.8
"""Of saline out of an irrigator [m/s]; tuned: a jet that reaches and does not bounce."""

NOZZLE_RATE = 2.0e-6
"""Of saline out of an irrigator [m³/s]; about a syringe's. Twice as much is a flood that the film has no room for."""

RINSING = DropParams(jet_volume=0.4e-9)
"""Saline comes in drops of 0.4 µL, twice a particle of blood, so that rinsing takes half as many [m³]."""

BLOOD_LOST = Measure("blood_lost", "Blood lost", "mL", "All that has left the vessels so far.", digits=2)
BLEEDING = Measure("bleeding", "Bleeding", "mL/min", "What leaves the vessels now.", digits=1)
OPEN_VESSELS = Measure("open_vessels", "Open vessels", "", "Neither clipped nor burnt shut.", digits=0)
ON_ORGAN = Measure("on_organ", "On the organ", "mL", "Blood and saline that lie on it.", digits=2)
SUCKED = Measure("sucked", "Sucked off", "mL", "What the suction has taken.", digits=2)


@dataclass(frozen=True)
class Wound:
    """A vessel that is open on the organ's surface."""

    point: tuple[float, float, float]
    """[m]"""
    vessel: VesselParams
    opening: float
    """Radius [m]."""
    fluid: str = "blood"


@wp.kernel
def show_drops(
    first: int,
    # params
    blood: int,
    # in
    drops: DropView,
    # out
    shown_out: wp.array(dtype=wp.vec4),
):
    """Position, and how red it is."""
    i = first + wp.tid()
    if i < drops.count[0]:
        x = drops.position[i]
        shown_out[i] = wp.vec4(x[0], x[1], x[2], drops.fluid[i][blood])


@wp.kernel
def show_wounds(
    # in
    wounds: WoundView,
    vertices: wp.array(dtype=wp.vec3),
    triangles: wp.array(dtype=wp.vec3i),
    # out
    clip_out: wp.array(dtype=wp.vec4),
    status_out: wp.array(dtype=wp.vec3d),
):
    """Per wound: where it is, and `STEM` above it; the second point is the first where it has no clip. Its rate, how it
    is sealed, whether it bleeds blood."""
    w = wp.tid()
    if w >= wounds.count[0]:
        return
    corner = triangles[wounds.face[w]]
    a = vertices[corner[0]]
    e = vertices[corner[1]] - a
    f = vertices[corner[2]] - a
    here = wounds.barycentric[w]
    x = a + here[0] * e + here[1] * f
    top = x
    if wounds.sealed[w] & CLIPPED != 0:
        top = x + STEM * wp.normalize(wp.cross(e, f))
    clip_out[2 * w] = wp.vec4(x[0], x[1], x[2], 1.0)
    clip_out[2 * w + 1] = wp.vec4(top[0], top[1], top[2], 1.0)
    status_out[w] = wp.vec3d(wounds.rate[w], wp.float64(wounds.sealed[w]), wp.float64(wounds.is_blood[w]))


class Bleeding:
    """Blood on one organ. A system of a world. `suction`, `nozzle` and `clips` are numbers of the world's tools."""

    name = "blood"

    def __init__(
        self,
        organ: Organ,
        wounds: Sequence[Wound],
        film: FilmParams,
        capacity: int,
        drops: int = 2048,
        coagulation: Any = None,
        suction: int | None = None,
        nozzle: int | None = None,
        clips: int | None = None,
    ) -> None:
        """`coagulation` is a map of the organ's skin, from 0 to 1 or more: what heat has closed."""
        if organ.skin is None:
            raise ValueError(f"{organ.name} has no skin")
        skin = organ.skin
        self._device = device = skin.device
        self.surface = make_surface(skin)
        self.film = make_film(self.surface, film, capacity)
        self.drops = make_drops(self.surface, film, self.film.state, RINSING, FRAME, drops)
        self.wounds = make_wounds(self.surface, film, self.film.state, dt=FRAME, drops=self.drops.state)
        for wound in wounds:
            add_wound(self.wounds, wound.point, wound.vessel, wound.opening, wound.fluid)
        find_texels(self.wounds, skin)
        self.organ = organ.name
        self._coagulation = coagulation
        self.image = make_film_image(skin, film, self.film.state, dt=PAINTING * FRAME)
        self._pixels = self.image.pixels.reshape((skin.height, skin.width, 4))
        self._ledger = make_ledger(self.film.state, self.wounds, self.drops)
        self._balance = read_balance(self._ledger)
        self._airborne = device.port(1, wp.int32)
        """Drops in the air, as of the last frame."""
        self._shown = wp.zeros(drops, dtype=wp.vec4, device=device.warp)
        self._clip = device.port(2 * CAPACITY, wp.vec4)
        self._status = device.port(CAPACITY, wp.vec3d)
        """What `show_wounds` says, as of the last frame."""
        self._blood = film.fluid("blood")
        self._suction, self._nozzle, self._clips = suction, nozzle, clips
        self.heart_rate = 1.2
        """[beats/s]"""
        self._phase = np.zeros(1)
        self._steps = round(FRAME / film.dt)
        self._texture = Texture(f"{organ.name}.film", organ.name, "film", skin.width, skin.height)
        radius = (3.0 * film.particle_volume / (4.0 * np.pi)) ** (1.0 / 3.0)
        self._particles = Particles(f"{organ.name}.drops", "blood", float(radius), drops, "blood in it, 0 to 1")
        self._clip_look = Particles(f"{organ.name}.clips", "clip", CLIP_SIZE, 2 * CAPACITY)
        self._moves = device.record(self._record_moves, work=drops)
        self._mix = device.record(lambda stage: step_film(stage, self.film, MIXING), work=self.film.work)
        self._step = device.record(lambda stage: step_film(stage, self.film, 0), work=self.film.work)
        self._ends = device.record(self._record_ends, work=drops)
        self._paint = device.record(lambda stage: step_film_image(stage, self.image), work=skin.count)
        self._ends.run()
        device.synchronize()

    # --- a frame ---

    def frame(self, world: World) -> None:
        self._phase[0] = (self._phase[0] + self.heart_rate * FRAME) % 1.0
        self.wounds.drive.host[0] = pulse(float(self._phase[0]))
        self._use_tools(world)
        self._moves.run()
        for number in range(self._steps):
            (self._step if number % MIXING else self._mix).run()
        self._ends.run()
        if world.tick // TICKS_PER_FRAME % PAINTING == 0:
            self._paint.run()
        self._device.synchronize()
        check_film(self.film, tick=world.tick)
        self._balance = check_balance(self._ledger, world.tick)

    def _record_moves(self, stage: Stage) -> None:
        refresh_surface(stage, self.surface)
        if self._coagulation is not None:
            step_cautery(stage, self.wounds, self._coagulation)
        step_wounds(stage, self.wounds)
        step_drops(stage, self.drops)

    def _record_ends(self, stage: Stage) -> None:
        step_ledger(stage, self._ledger)
        stage.launch(show_drops, self._shown.shape[0], [self._blood, self.drops.state.view, self._shown])
        stage.once(lambda: wp.copy(self._airborne.array, self.drops.state.count))
        stage.download(self._airborne)
        places = [self.wounds.view, self.surface.vertices, self.surface.view.triangles]
        seen = [*places, self._clip.array, self._status.array]
        stage.once(lambda: wp.launch(show_wounds, dim=CAPACITY, inputs=seen, device=self._device.warp))
        stage.download(self._clip)
        stage.download(self._status)

    def _use_tools(self, world: World) -> None:
        suction, nozzle, clips = (_pressed(world, number) for number in (self._suction, self._nozzle, self._clips))
        set_tools(
            self.drops,
            suction=None if suction is None else suction.tip,
            nozzle=None if nozzle is None else nozzle.tip + OUTLET * shaft_of(nozzle),
            nozzle_velocity=(0.0, 0.0, 0.0) if nozzle is None else -NOZZLE_SPEED * shaft_of(nozzle),
            nozzle_rate=NOZZLE_RATE,
        )
        if clips is not None:
            for number in self.near(clips.tip, CLIP_REACH):
                # Only once: it waits for the device.
                if not int(self._status.host[number][1]) & CLIPPED:
                    set_clip(self.wounds, number)

    def near(self, point: ArrayLike, reach: float) -> list[int]:
        """Numbers of the wounds within `reach` [m] of a point, as of the last frame."""
        places = self._clip.host[: 2 * self.wounds.count : 2, :3]
        return np.flatnonzero(np.linalg.norm(places - np.asarray(point), axis=1) <= reach).tolist()

    # --- what is kept ---

    def arrays(self) -> dict[str, Any]:
        kept: dict[str, Any] = {f"film/{name}": array for name, array in film_arrays(self.film).items()}
        kept |= {f"wounds/{name}": getattr(self.wounds.view, name) for name in _WOUND_STATE}
        kept |= {f"drops/{name}": getattr(self.drops.state, name) for name in _DROP_STATE}
        kept |= {f"drops/gone_{name}": getattr(self.drops, f"gone_{name}") for name in ("count", "volume")}
        kept |= {f"image/{name}": getattr(self.image, name) for name in _IMAGE_STATE}
        # A struct, which files do not know: as its bytes.
        purse = self.drops.purse.numpy().view(np.uint8)
        kept |= {"drops/purse": purse, "drops/before": self.drops.tree.before}
        return kept | {"phase": self._phase}

    def load(self, arrays: dict[str, NDArray[Any]]) -> None:
        load_film(self.film, {name[5:]: array for name, array in arrays.items() if name.startswith("film/")})
        for name, mine in self.arrays().items():
            if isinstance(mine, wp.array):
                mine.assign(arrays[name])
        self.drops.purse.assign(arrays["drops/purse"].view(self.drops.purse.numpy().dtype))
        self._phase[:] = arrays["phase"]
        self._ends.run()
        self._device.synchronize()
        self._balance = read_balance(self._ledger)

    # --- what is seen ---

    @property
    def balance(self) -> Balance:
        """Where all fluid is, as of the last frame."""
        return self._balance

    def textures(self) -> list[tuple[Texture, Any]]:
        return [(self._texture, self._pixels)]

    def particles(self) -> list[tuple[Particles, Any, int]]:
        drops = (self._particles, self._shown, int(self._airborne.host[0]))
        return [drops, (self._clip_look, self._clip.array, 2 * self.wounds.count)]

    def measures(self) -> list[tuple[Measure, float]]:
        rates, sealed, blood = self._status.host[: self.wounds.count].T
        rate = float(rates[blood != 0.0].sum())
        is_open = (sealed == 0.0) & (blood != 0.0)
        balance = self._balance
        return [
            (BLOOD_LOST, MILLILITRES * balance.blood_lost),
            (BLEEDING, 60.0 * MILLILITRES * rate),
            (OPEN_VESSELS, float(is_open.sum())),
            (ON_ORGAN, MILLILITRES * (balance.film + balance.queue)),
            (SUCKED, MILLILITRES * balance.sucked),
        ]


def _pressed(world: World, number: int | None) -> Tool | None:
    """The tool of this number, while it is in the body and its handle is pressed."""
    if number is None:
        return None
    hand = world.hands[number]
    return hand if hand.active and hand.grip >= PRESSED else None


def shaft_of(tool: Tool) -> NDArray[np.float64]:
    """Unit vector from the tip along the shaft."""
    x, y, z, w = tool.orientation.tolist()
    return np.array([2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)])
