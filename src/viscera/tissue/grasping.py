"""Jaws hold what is between them: masses go with a closed grasper, as far as its force reaches.

A pair of jaws that begins to close takes the masses in its mouth, the space between its jaws, half a cell around
included. Each is held at an anchor a in the mouth's frame, which goes with the hand; across the jaws it is squeezed
with them, by s. After each substep, a mass at x with inverse mass w gets the force that takes it to its anchor,

    f = (a − x) / (w Δt²),

which is what the tissue pulls with where it is held already, bounded by what the n masses of a pair share equally:

    |f across| ≤ 2 N/n,   |f along| ≤ μ · 2 N/n,

with the force N that the jaws close with, one from each side, and their friction μ: Coulomb's law. Where a bound is
reached the anchor slips to where the mass is. So pulled along its jaws a grasper holds 2 μ N, and pulled across them
2 N, and no more; a mass whose anchor has slipped out of the mouth, by a cell, is free. A force that is bounded and
never takes a mass past its anchor gives back no more than the hand put in. The hand feels the sum of all −f.

Jaws close until what is between them pushes back with N, or is squeezed to `FLATTEST` (`Grasping.stops`).

Differs from a grasper of steel: what is between the jaws is held as masses, at the resolution of the lattice, and each
carries the same share of N.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Port, Stage
from viscera.errors import InputError
from viscera.tissue import grasp_kernels
from viscera.tissue.grasp_kernels import HELD, JAW_FLOATS, JAWS, REPORT

if TYPE_CHECKING:
    from viscera.tissue.tissue import Tissue

FLATTEST = 0.4
"""What is held is squeezed to no less than this share of its width: cells that are pressed flat turn inside out."""

UNITS = 2.0**30
"""Integer steps per newton, and per 1, in what jaws report."""


@dataclass(frozen=True)
class Mouth:
    """The space between two jaws."""

    length: float
    """From the tip to the hinge [m]."""
    width: float
    """Of a jaw [m]."""
    gap: float
    """From the middle to a jaw that is closed [m]."""
    opening: float
    """How far each jaw stands open, at most [rad]."""


@dataclass(eq=False)
class Grasping:
    """What jaws hold of one lattice. Made by `let_grasp`."""

    grasp: Any
    """`Grasp` of grasp_kernels.py."""
    jaws: Port
    """Where they are, float32, shape (JAWS · JAW_FLOATS,)."""
    report: Port
    """What they hold, as of the last tick, int64, shape (JAWS · REPORT,)."""

    def arrays(self) -> dict[str, Any]:
        """All that changes."""
        names = ("owner", "listed", "mass", "anchor", "taken", "report", "jaws")
        return {f"grasping/{name}": getattr(self.grasp, name) for name in names}

    def held(self, jaw: int) -> int:
        """Masses that a pair holds."""
        return int(self.report.host[REPORT * jaw])

    def squeeze(self, jaw: int) -> float:
        """Width of what a pair holds over what it was."""
        return float(self.report.host[REPORT * jaw + 2]) / UNITS

    def load(self, jaw: int, substeps: int) -> float:
        """What each jaw of a pair presses with, mean over the last tick [N]."""
        return float(self.report.host[REPORT * jaw + 1]) / (UNITS * substeps)

    def loaded(self, arrays: dict[str, NDArray[Any]]) -> None:
        """After a state was put back: what the host reads, too."""
        self.report.host[:] = arrays["grasping/report"]
        self.jaws.host[:] = arrays["grasping/jaws"]


def let_grasp(tissue: Tissue) -> Grasping:
    """From now on jaws hold this lattice; before its first tick."""
    if tissue.slabs is not None:
        raise InputError("grasping: a lattice in slabs is not held.", "Make the lattice with `slabs=1`.")
    if tissue.params.rest_skipping is not None:
        raise InputError("grasping: a lattice that skips rest is not held.", "Leave `rest_skipping` out.")
    if tissue.grasping is None:
        tissue.forget_programs()
        tissue.grasping = _make(tissue)
    return tissue.grasping


def _make(tissue: Tissue) -> Grasping:
    params, device = tissue.params, tissue.device
    free = np.flatnonzero(~params.anchored)
    rest = (params.nodes[free] * params.spacing).astype(np.float32)
    jaws, report = device.port(JAWS * JAW_FLOATS, wp.float32), device.port(JAWS * REPORT, wp.int64)

    def zeros(count: int, dtype: Any = wp.int32) -> wp.array[Any]:
        return wp.zeros(count, dtype=dtype, device=device.warp)

    made: Any = grasp_kernels.Grasp()
    made.masses = len(free)
    made.place = wp.array(tissue.layout.slot_of_node[free], dtype=wp.int32, device=device.warp)
    made.rest = wp.array(rest, dtype=wp.vec3, device=device.warp)
    made.jaws, made.report = jaws.array, report.array
    made.owner, made.seen, made.listed = zeros(tissue.layout.slots), zeros(2 * JAWS), zeros(JAWS)
    made.mass, made.anchor = zeros(JAWS * HELD), zeros(JAWS * HELD, wp.vec3)
    made.taken = zeros(JAWS, wp.float32)
    return Grasping(made, jaws, report)


def need_grasping(tissue: Tissue) -> Grasping:
    if tissue.grasping is None:
        raise InputError("this tissue cannot be held.", "Call `let_grasp` on it when it is made.")
    return tissue.grasping


def set_jaws(
    tissue: Tissue,
    jaw: int,
    tool: int,
    mouth: Mouth,
    frames: NDArray[np.float64],
    closed: tuple[float, float],
    *,
    grip: float,
    friction: float,
    takes: bool,
) -> None:
    """Where a pair of jaws of the tool in place `tool` is in the next tick, its handle pressed.

    `frames`, shape (2, 3, 3): as the tick starts and ends, its tip [m], the unit vector from jaw to jaw and the one
    from the tip to the hinge, world frame. `closed`: how far it is closed as the tick starts and ends. `grip`: what its
    jaws close with [N]. `takes`: whether it takes what is between its jaws, if it holds nothing."""
    grasping = need_grasping(tissue)
    if not 0 <= jaw < JAWS:
        raise InputError(f"jaw = {jaw} is not there.", f"A lattice knows {JAWS} pairs, counted from 0.")
    if not (np.isfinite(frames).all() and np.isfinite(grip) and grip >= 0.0 and friction >= 0.0):
        raise InputError("a jaw's place or force is not finite.", "Give finite frames [m], and forces from 0 on [N].")
    row = grasping.jaws.host[jaw * JAW_FLOATS : (jaw + 1) * JAW_FLOATS]
    row[:7] = 1.0, float(takes), float(tool), grip, friction, *closed
    row[7:11] = mouth.length, 0.5 * mouth.width, mouth.gap, mouth.opening
    row[12:18] = (frames[:, 0] - np.asarray(tissue.params.origin)).ravel()
    row[18:24], row[24:30] = frames[:, 1].ravel(), frames[:, 2].ravel()


def open_jaws(tissue: Tissue, jaw: int) -> None:
    """A pair lets go of what it holds."""
    need_grasping(tissue).jaws.host[jaw * JAW_FLOATS] = 0.0


def stops(tissue: Tissue, jaw: int, grip: float) -> bool:
    """Whether what a pair holds keeps its jaws from closing further."""
    grasping = need_grasping(tissue)
    if grasping.held(jaw) == 0:
        return False
    return grasping.load(jaw, tissue.substeps) >= grip or grasping.squeeze(jaw) <= FLATTEST


def record_take(stage: Stage, tissue: Tissue, here: wp.array[Any]) -> None:
    """As a tick begins: jaws that close take what is between them."""
    if tissue.grasping is not None:
        stage.once(lambda: _take(tissue, here))


def _take(tissue: Tissue, here: wp.array[Any]) -> None:
    grasp, device = need_grasping(tissue).grasp, tissue.device
    args = [tissue.constants, tissue.state.live.array, here, tissue.state.velocity, grasp]
    if not device.is_cuda:
        wp.launch(grasp_kernels.take_serial, dim=1, inputs=args, device=device.warp)
        return
    wp.launch(grasp_kernels.forget_slipped, dim=JAWS, inputs=[grasp], device=device.warp)
    wp.launch(grasp_kernels.count_in_reach, dim=grasp.masses, inputs=args, device=device.warp)
    wp.launch(grasp_kernels.take_in_reach, dim=grasp.masses, inputs=args, device=device.warp)
    wp.launch(grasp_kernels.end_taking, dim=JAWS, inputs=[grasp], device=device.warp)


def record_hold(stage: Stage, tissue: Tissue, substep: int, there: wp.array[Any]) -> None:
    """After a substep: what is held goes with its jaws."""
    if tissue.grasping is None:
        return
    state, device, serial = tissue.state, tissue.device, not tissue.device.is_cuda
    args = [tissue.constants, substep, int(serial), state.live.array]
    args += [tissue.grasping.grasp, state.velocity, there, state.force.array]
    count = 1 if serial else JAWS * HELD
    stage.once(lambda: wp.launch(grasp_kernels.hold_masses, dim=count, inputs=args, device=device.warp))
