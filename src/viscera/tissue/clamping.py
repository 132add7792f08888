"""Clips and staples on a lattice: two points of the surface that are drawn together and held, up to a force.

Each has two legs that hang on masses, as the holes of a thread do (sewing.py), and a length between them. It closes
from how far they were apart to its own length, and then keeps ℓ ≤ L: what is between is pressed, edges are held
together.
When the force that this takes passes what it holds, it slips: it is gone, and the tissue is free.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Stage
from viscera.errors import InputError
from viscera.tissue import loose_kernels, thread_kernels, touch_kernels
from viscera.tissue.sewing import Sewing, make_threads
from viscera.tissue.thread_kernels import HOLES

if TYPE_CHECKING:
    from viscera.tissue.tissue import Tissue

CLAMPS = HOLES // 2
"""Clips and staples that a tissue has room for."""
_COUNT, _FIRST, _CLAMPED = int(thread_kernels.COUNT), int(thread_kernels.FIRST), int(thread_kernels.CLAMPED)


def let_clamp(tissue: Tissue) -> Sewing:
    """From now on this tissue can have clips and staples; before its first tick."""
    if tissue.slabs is not None:
        raise InputError("clamping: a lattice in slabs has no clips.", "Make the lattice with `slabs=1`.")
    if not tissue.need_touching().samples.gauged:
        raise InputError("clamping: the tissue has no surface.", "Make an organ of it first.")
    if tissue.clamps is None:
        tissue.forget_programs()
        tissue.clamps = make_threads(tissue)
    return tissue.clamps


def need_clamps(tissue: Tissue) -> Sewing:
    if tissue.clamps is None:
        raise InputError("this tissue can have no clips.", "Call `let_clamp` on it when it is made.")
    return tissue.clamps


def add_clamp(tissue: Tissue, legs: tuple[int, int], *, closed: float, hold: float) -> bool:
    """A clip whose legs are at these two points of the surface (numbers of `Touching.samples`), which closes to a
    length [m] and slips beyond a force [N]; between two ticks. False where there is no room for it."""
    if not (closed > 0.0 and hold > 0.0 and legs[0] != legs[1]):
        raise InputError(f"a clip from {legs[0]} to {legs[1]}, {closed:g} m, {hold:g} N.", "Give two points, m and N.")
    threads, samples = need_clamps(tissue).threads, tissue.need_touching().samples
    kind, counts = threads.kind.numpy().copy(), threads.counts.numpy().copy()
    free = [pair for pair in range(CLAMPS) if kind[2 * pair] != _CLAMPED]
    if not free:
        return False
    first = 2 * free[0]
    place, weight = samples.places.numpy().reshape(-1, 8), samples.weights.numpy().reshape(-1, 8)
    rest, far = samples.rest.numpy(), 0.0
    ends = [rest[leg] + weight[leg] @ _displacement(tissue)[place[leg]] for leg in legs]
    far = float(np.linalg.norm(ends[1] - ends[0]))
    kind[first], kind[first + 1] = _CLAMPED, int(thread_kernels.FREE)
    counts[[_COUNT, _FIRST]] = max(int(counts[_COUNT]), first + 2)
    threads.kind.assign(kind)
    threads.counts.assign(counts)
    _put(threads.start, first, [first, first])
    _put(threads.rest, first, rest[list(legs)])
    _put(threads.places, 8 * first, place[list(legs)].ravel())
    _put(threads.weights, 8 * first, weight[list(legs)].ravel())
    _put(threads.length, first, [max(far, closed), 0.0])
    _put(threads.goal, first, [closed, 0.0])
    _put(threads.hold, first, [hold, 0.0])
    _put(threads.tension, first, [0.0, 0.0])
    _put(threads.at, first, np.array(ends))
    return True


def _displacement(tissue: Tissue) -> NDArray[np.float32]:
    """u of every place [m], shape (slots, 3)."""
    slots, tau = tissue.layout.slots, np.float32(tissue.viscous_time)
    position = tissue.state.position[tissue.current].numpy().reshape(3, slots)
    return np.asarray((position - tau * tissue.state.velocity.numpy().reshape(3, slots)).T)


def _put(array: wp.array[Any], begin: int, values: Any) -> None:
    whole = array.numpy().copy()
    whole[begin : begin + len(values)] = values
    array.assign(whole)


def clamped(tissue: Tissue) -> NDArray[np.bool_]:
    """Which clips hold, shape (CLAMPS,)."""
    return need_clamps(tissue).threads.kind.numpy()[::2] == _CLAMPED


def record_clamp(stage: Stage, tissue: Tissue, substep: int, there: wp.array[Any]) -> None:
    """After a substep: clips press."""
    if tissue.clamps is None:
        return
    state, device = tissue.state, tissue.device.warp
    args = [tissue.constants, tissue.need_touching().samples, substep, state.live.array, state.tools.array]
    args += [touch_kernels.TIPS, tissue.clamps.threads, state.velocity, there, state.force.array]
    stage.once(lambda: wp.launch(thread_kernels.pull_threads, dim=1, inputs=args, device=device))


def record_clamps(stage: Stage, tissue: Tissue) -> None:
    """At the end of a tick: clips close, or slip."""
    if tissue.clamps is None:
        return
    args = [tissue.constants, tissue.clamps.threads]
    stage.once(lambda: wp.launch(loose_kernels.advance_clamps, dim=1, inputs=args, device=tissue.device.warp))
