"""Needle and thread in a lattice: holes that hang on masses, and thread of a given length that runs through them.

A **hole** is a point of the tissue: it hangs on up to eight masses, x = X + Σ w_i u_i, where the needle went in, where
it came out, and every cell or so on its way between. From one hole to the next leads a **length** of thread, L. Taut,
it is the shortest way ℓ between its ends over what it lies on; ℓ ≤ L is kept after each substep by moving the masses of
its ends, and of the tissue it lies on, along the slope of ℓ: position-based dynamics, with the thread's own stretch,

    λ = (ℓ − L) / (Σ |∇ℓ|² Σ w_i²/m_i + L/(EA·Δt²)),   Δx_i = −λ w_i/m_i ∇ℓ,   Δv_i = Δx_i/Δt,   T = λ/Δt².

T pulls both ends alike, so momentum stays. At a hole thread slides from the side that pulls less to the one that pulls
more, T⁺ > e^(μθ) T⁻ + T₀ (Euler and Eytelwein, θ the angle it turns by). Behind the first hole it ends in a bead, which
does not pass.

The **needle** is three eighths of a circle. While the handle is pressed it turns about the circle's middle, as a wrist
turns it. Where its point meets the surface, tissue is pushed along until the force to pierce is reached; after that the
hole slides along the needle, held across it, with friction. Let go with its point out, the needle is drawn through and
thread takes its place; let go before that, it goes back, and nothing has happened.

A **knot**: thread is laid from the last hole back to the first one, shortened while the handle of the knot tyer is
pressed, up to a given pull, and stays so when it is let go. What remains of the thread stays on the needle.

Thread outside the tissue is a chain of free points between its ends (Verlet, position-based). They are pushed out of
the tissue along the surface's normal, and so is the middle between two of them; what lies on the surface bends a taut
thread around it, and is pressed by it.

Sources: Müller, Heidelberger, Hennix and Ratcliff, "Position based dynamics", 2007; the compliance after Macklin,
Müller and Chentanez, "XPBD", 2016; sliding of thread between holes after Guébert, Duriez, Cotin, Allard and Grisoni,
"Suturing simulation based on complementarity constraints", 2009. Differs: no global solve, one pass after the other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Port, Stage
from viscera.errors import InputError
from viscera.tissue import loose_kernels, needle_kernels, thread_kernels, touch_kernels
from viscera.tissue.cutting import let_cut, need_cutting
from viscera.tissue.thread_kernels import HAND_FLOATS, HOLES, POINTS, TAIL

if TYPE_CHECKING:
    from viscera.tissue.tissue import Tissue

SHORTEST_THREAD, LONGEST_THREAD = 0.03, 0.5
"""That a needle may have [m]: shorter makes no stitch; longer would need more free points than there are."""
THREAD_RADIUS = float(loose_kernels.THREAD_RADIUS)
NEEDLE_ARC = float(thread_kernels.NEEDLE_ARC)

_SAVED = (
    "counts", "numbers", "rest", "places", "weights", "kind", "held", "start", "angle", "length", "tension", "goal",
    "hold", "slack", "point", "before", "bundle", "near", "touch", "off", "normal", "at",
)  # fmt: skip


@dataclass(eq=False)
class Sewing:
    """Threads of one lattice. Made by `let_sew`."""

    threads: Any
    """`Threads` of thread_kernels.py."""
    hand: Port
    """What hands do, float32, shape (HAND_FLOATS,)."""

    def arrays(self, prefix: str = "sewing") -> dict[str, Any]:
        """All that changes."""
        found = {f"{prefix}/{name}": getattr(self.threads, name) for name in _SAVED}
        return found | {f"{prefix}/hand": self.hand.array}


def let_sew(tissue: Tissue, length: float = 0.15) -> Sewing:
    """From now on a needle with so much thread [m] sews this lattice; before its first tick."""
    if not (np.isfinite(length) and SHORTEST_THREAD <= length <= LONGEST_THREAD):
        raise InputError(
            f"a thread of {length:g} m is not possible.", f"Give {SHORTEST_THREAD:g} to {LONGEST_THREAD:g} m."
        )
    if tissue.sewing is None:
        let_cut(tissue)
        if not tissue.need_touching().samples.gauged:
            raise InputError("sewing: the tissue has no surface.", "Make an organ of it first (viscera.cuttable).")
        tissue.forget_programs()
        tissue.sewing = _make(tissue, length)
    return tissue.sewing


def _make(tissue: Tissue, length: float) -> Sewing:
    made = make_threads(tissue)
    numbers = np.zeros(8, dtype=np.float32)
    numbers[int(thread_kernels.ANGLE)] = float(needle_kernels.ANGLE_HOME)
    numbers[int(thread_kernels.LEFT)] = numbers[int(thread_kernels.TAIL_LENGTH)] = length
    made.threads.numbers.assign(numbers)
    made.hand.host[12:16] = 0.0, 0.0, 1.0, 1.0e-3
    return made


def make_threads(tissue: Tissue) -> Sewing:
    """Empty."""
    device = tissue.device
    hand = device.port(HAND_FLOATS, wp.float32)

    def zeros(count: int, dtype: Any) -> wp.array[Any]:
        return wp.zeros(count, dtype=dtype, device=device.warp)

    made: Any = thread_kernels.Threads()
    free = (HOLES + 1) * POINTS
    made.counts, made.numbers, made.hand = zeros(16, wp.int32), zeros(8, wp.float32), hand.array
    made.rest, made.at = zeros(HOLES, wp.vec3), zeros(HOLES, wp.vec3)
    made.places, made.weights = zeros(8 * HOLES, wp.int32), zeros(8 * HOLES, wp.float32)
    made.kind, made.held, made.start = (zeros(HOLES, wp.int32) for _ in range(3))
    made.slack = zeros(HOLES + 1, wp.int32)
    made.angle, made.length, made.tension, made.sum = (zeros(HOLES, wp.float32) for _ in range(4))
    made.goal, made.hold = zeros(HOLES, wp.float32), zeros(HOLES, wp.float32)
    made.point, made.before, made.off, made.normal = (zeros(free, wp.vec3) for _ in range(4))
    made.bundle, made.near, made.touch = (zeros(free, wp.int32) for _ in range(3))
    made.bundle.fill_(-1)
    made.touch.fill_(-1)
    made.path, made.on = zeros(POINTS + 2, wp.vec3), zeros(POINTS + 2, wp.int32)
    return Sewing(made, hand)


def need_sewing(tissue: Tissue) -> Sewing:
    if tissue.sewing is None:
        raise InputError("this tissue cannot be sewn.", "Call `let_sew` on it when it is made.")
    return tissue.sewing


def set_needle(
    tissue: Tissue, tool: int, middles: NDArray[np.float64], across: NDArray[np.float64], up: NDArray[np.float64], *,
    radius: float, pierce: float, friction: float, pressed: bool,
) -> None:  # fmt: skip
    """Where the needle's circle is in the next tick: its middle as the tick starts and ends (world frame [m], shape
    (2, 3)), two unit vectors in its plane, its radius [m]; the force to pierce [N], its friction per hole [N]."""
    host = need_sewing(tissue).hand.host
    host[0:3] = 1.0, float(pressed), float(tool)
    host[3:9] = (middles - np.asarray(tissue.params.origin)).ravel()
    host[9:12], host[12:15] = across, up
    host[15:18] = radius, pierce, friction


def remove_needle(tissue: Tissue) -> None:
    """Nobody holds it: thread that is on it ends free."""
    need_sewing(tissue).hand.host[0:2] = 0.0


def set_tyer(tissue: Tissue, tip: NDArray[np.float64], *, reach: float, pull: float, pressed: bool) -> None:
    """Where a knot is tied (world frame [m]), how near to it thread must be [m], and how hard it is drawn [N]."""
    host = need_sewing(tissue).hand.host
    host[18] = float(pressed)
    host[19:22] = tip - np.asarray(tissue.params.origin)
    host[22:24] = reach, pull


def record_sew(stage: Stage, tissue: Tissue, substep: int, there: wp.array[Any]) -> None:
    """After a substep: what is taut pulls."""
    if tissue.sewing is None:
        return
    state, device = tissue.state, tissue.device.warp
    args = [tissue.constants, tissue.need_touching().samples, substep, state.live.array, state.tools.array]
    args += [touch_kernels.TIPS, tissue.sewing.threads, state.velocity, there, state.force.array]
    stage.once(lambda: wp.launch(thread_kernels.pull_threads, dim=1, inputs=args, device=device))


def record_threads(stage: Stage, tissue: Tissue, there: wp.array[Any]) -> None:
    """At the end of a tick: the needle turns, free thread falls."""
    if tissue.sewing is None:
        return
    touching, state, device = tissue.need_touching(), tissue.state, tissue.device.warp
    args = [tissue.constants, touching.samples, touching.bundles, state.live.array, there, state.velocity]
    args += [need_cutting(tissue).blades, tissue.sewing.threads]
    stage.once(lambda: wp.launch(loose_kernels.advance_threads, dim=1, inputs=args, device=device))


# --- what can be asked between ticks ---


def thread_count(tissue: Tissue, which: Any) -> int:
    """One of `counts`, see thread_kernels.py."""
    return int(need_sewing(tissue).threads.counts.numpy()[int(which)])


def tensions(tissue: Tissue) -> NDArray[np.float32]:
    """In the thread that leads on from each hole [N]."""
    threads = need_sewing(tissue).threads
    return threads.tension.numpy()[: thread_count(tissue, thread_kernels.COUNT)].copy()


__all__ = [
    "TAIL", "Sewing", "let_sew", "need_sewing", "record_sew", "record_threads", "remove_needle", "set_needle",
    "set_tyer", "tensions", "thread_count",
]  # fmt: skip
