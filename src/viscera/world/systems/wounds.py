"""Open vessels on an organ: they bleed with the heart's beat, and are closed by clips, by burns, or by a clot.

Reads `ORGAN.burn_level` where something burns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from viscera.blood import wounds
from viscera.blood.wounds.kernels import WoundView
from viscera.blood.wounds.vessels import VesselParams
from viscera.blood.wounds.wounds import (
    CAPACITY,
    CLIPPED,
    Wounds,
    add_wound,
    find_texels,
    set_clip,
    step_cautery,
    step_wounds,
)
from viscera.device import Stage
from viscera.instruments import Clips, Pushes
from viscera.timing import FRAME
from viscera.tissue.heartbeat import pulse
from viscera.units import MILLILITRE, MINUTE
from viscera.view import Markers, Measure
from viscera.world.organ import Organ
from viscera.world.system import Kept, Moment, Show, System

wp.set_module_options({"enable_backward": False})

PRESSES_BESIDE = 1.5e-3
"""A tip presses on a vessel this far beside it too [m]: tissue hands the pressure on."""

CLIP_SIZE = 2.5e-3
"""Half the length of a closed clip [m]; a small ligating clip is about 5 mm long."""

BLEEDING = Measure("bleeding", "Bleeding", "mL/min", "What leaves the vessels now.", digits=1)
OPEN_VESSELS = Measure("open_vessels", "Open vessels", "", "Neither clipped nor burnt shut.", digits=0)


@dataclass(frozen=True)
class Wound:
    """A vessel that is open on an organ's surface."""

    point: tuple[float, float, float]
    """[m]"""
    vessel: VesselParams
    opening: float
    """Radius [m]."""
    fluid: str = "blood"
    oozes: bool = False
    """It stands for the small vessels of a stretch of tissue, and is not counted as one."""


class Openings:
    """Wounds of one organ before the world runs, in groups: each system that opens some has its own numbers."""

    def __init__(self) -> None:
        self.all: list[Wound] = []

    def add(self, wounds: Iterable[Wound]) -> range:
        """Their numbers among all."""
        first = len(self.all)
        self.all += wounds
        return range(first, len(self.all))


@wp.kernel
def show_wounds(
    # in
    wounds: WoundView,
    vertices: wp.array(dtype=wp.vec3),
    triangles: wp.array(dtype=wp.vec3i),
    # out
    place_out: wp.array(dtype=wp.vec3),
    clip_out: wp.array2d(dtype=wp.float32),
    status_out: wp.array(dtype=wp.vec3d),
):
    """Per wound: where it is; its clip as `Markers` has it, lying across the world's x axis as far as the tissue lets
    it; its rate, how it is sealed, whether it bleeds blood."""
    w = wp.tid()
    if w >= wounds.count[0]:
        return
    corner = triangles[wounds.face[w]]
    a = vertices[corner[0]]
    e = vertices[corner[1]] - a
    f = vertices[corner[2]] - a
    here = wounds.barycentric[w]
    x = a + here[0] * e + here[1] * f
    place_out[w] = x
    up = wp.normalize(wp.cross(e, f))
    across = wp.vec3(1.0, 0.0, 0.0) - up[0] * up
    if wp.length(across) < 1.0e-3:
        across = wp.vec3(0.0, 1.0, 0.0) - up[1] * up
    across = wp.normalize(across)
    turn = wp.quat_from_matrix(wp.matrix_from_cols(across, wp.cross(up, across), up))
    for k in range(3):
        clip_out[w, k] = x[k]
    for k in range(4):
        clip_out[w, 3 + k] = turn[k]
    clip_out[w, 7] = wp.where(wounds.sealed[w] & CLIPPED != 0, 1.0, 0.0)
    status_out[w] = wp.vec3d(wounds.rate[w], wp.float64(wounds.sealed[w]), wp.float64(wounds.is_blood[w]))


class Vessels:
    """What bleeds. `heart_rate` may change while the world runs."""

    def __init__(self, organ: Organ, bleeders: Wounds, open_ones: Sequence[Wound], clips: bool = True) -> None:
        self._clips = clips
        for one in open_ones:
            add_wound(bleeders, one.point, one.vessel, one.opening, one.fluid)
        find_texels(bleeders, organ.need_skin())
        self.wounds = bleeders
        self._oozes = np.array([one.oozes for one in open_ones], dtype=np.bool_)
        self.heart_rate = 1.2
        """[beats/s]"""
        self._burns = organ.fields.get("burn_level")
        self._device = device = bleeders.surface.device
        self._phase = np.zeros(1)
        self._place = device.port(CAPACITY, wp.vec3)
        self._status = device.port(CAPACITY, wp.vec3d)
        """What `show_wounds` says, as of the last frame."""
        self._clip = wp.zeros((CAPACITY, 8), dtype=wp.float32, device=device.warp)
        self._bleed = device.record(self._record, work=CAPACITY)
        self._show = device.record(self._record_show, work=CAPACITY)
        self.name = organ.name
        self.shown()

    def frame(self, now: Moment) -> None:
        self._phase[0] = (self._phase[0] + self.heart_rate * FRAME) % 1.0
        self.wounds.drive.host[0] = pulse(float(self._phase[0]))
        self._press(now)
        for tool, clips in now.using(Clips) if self._clips else ():
            for number in self.near(tool.tip, clips.reach):
                # Only once: it waits for the device.
                if not int(self._status.host[number][1]) & CLIPPED:
                    set_clip(self.wounds, number)
        self._bleed.run()
        self._device.synchronize()

    def bleeds(self) -> bool:
        """Whether anything leaves a vessel now."""
        return bool((self._status.host[: self.wounds.count, 0] > 0.0).any())

    def _press(self, now: Moment) -> None:
        """A tool that presses on a wound holds back its pressure: force over the tip's cross-section, which is what
        touches at least. Where several press, the hardest counts."""
        host = self.wounds.press.host
        host[:] = 0.0
        for tool, felt in zip(now.tools, now.felt, strict=False):
            pushes = tool.instrument.effect(Pushes)
            force = float(np.linalg.norm(felt.force))
            if pushes is not None and force > 0.0:
                for number in self.near(tool.tip, pushes.radius + PRESSES_BESIDE):
                    host[number] = max(host[number], force / (np.pi * pushes.radius**2))

    def _record(self, stage: Stage) -> None:
        if self._burns is not None:
            step_cautery(stage, self.wounds, self._burns.array)
        step_wounds(stage, self.wounds)
        self._record_show(stage)

    def _record_show(self, stage: Stage) -> None:
        surface = self.wounds.surface
        args = [self.wounds.view, surface.vertices, surface.view.triangles]
        args += [self._place.array, self._clip, self._status.array]
        stage.once(lambda: wp.launch(show_wounds, dim=CAPACITY, inputs=args, device=self._device.warp))
        stage.download(self._place)
        stage.download(self._status)

    def shown(self) -> None:
        """Brings what is seen up to the state."""
        self._show.run()
        self._device.synchronize()

    def near(self, point: ArrayLike, reach: float) -> list[int]:
        """Numbers of the wounds within `reach` [m] of a point, as of the last frame."""
        places = self._place.host[: self.wounds.count]
        return np.flatnonzero(np.linalg.norm(places - np.asarray(point), axis=1) <= reach).tolist()

    def places(self) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Where the vessels are [m], shape (vessels, 3), and which are open, as of the last frame."""
        count = self.wounds.count
        return self._place.host[:count].astype(np.float64), self._status.host[:count, 1] == 0.0

    def system(self) -> System[Vessels]:
        own = (lambda: wounds.save(self.wounds), lambda saved: wounds.load(self.wounds, saved))
        kept = Kept({"phase": self._phase}, self.shown, own)
        clips = Markers(f"{self.name}.clips", "clip", CLIP_SIZE, CAPACITY)
        return System(
            name="wounds",
            organ=self.name,
            frame=self.frame,
            reads=(f"{self.name}.burn_level",) if self._burns is not None else (),
            uses=(Clips,) if self._clips else (),
            after=("cutting", "cut_vessel", "oozing", "tubes", "lumen"),
            save=kept.save,
            load=kept.load,
            shows=[Show(clips, {clips.name: self._clip})],
            measures=self.measures,
            holds=self,
        )

    def measures(self) -> list[tuple[Measure, float]]:
        rates, sealed, blood = self._status.host[: self.wounds.count].T
        rate = float(rates[blood != 0.0].sum())
        is_open = (sealed == 0.0) & (blood != 0.0)
        is_open[: len(self._oozes)] &= ~self._oozes
        return [(BLEEDING, rate * MINUTE / MILLILITRE), (OPEN_VESSELS, float(is_open.sum()))]


def bleeding(organ: Organ, bleeders: Wounds, open_ones: Sequence[Wound], *, clips: bool = True) -> System[Vessels]:
    """Vessels that are open on an organ; `bleeders` is made on the film's surface. Before `flying` and `flowing`.
    Without `clips` an applier does nothing here: clips are somebody else's (`tubes_through`)."""
    return Vessels(organ, bleeders, open_ones, clips).system()
