"""How many substeps a tick needs: as many as the fastest ringing and the strongest damping of this lattice ask for.

With ω the highest frequency and σ the largest rate of damping, a step Δt is stable while Δt²ω² + 2Δt·σ < 4. Where the
viscous time is the same everywhere, σ = τω².
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from viscera.timing import TICK
from viscera.tissue import kernels
from viscera.tissue.params import cautious_step, checked_substeps
from viscera.tissue.stepping import record_probe

if TYPE_CHECKING:
    from viscera.tissue.tissue import Tissue

PROBE_ROUNDS = 60
"""Of power iteration for the highest frequency."""
PROBE_SIZE = 1e-3
"""Largest displacement in it, in spacings: small enough to be linear, large enough for float32."""
PROBE_MARGIN = 1.04
"""It nears ω² from below and is a few percent short after these rounds."""
PROBE_MOST = {False: 200_000, True: 2_000_000}
"""Masses up to which it is done, on cpu and on cuda; it takes seconds there. Larger lattices take the endless lattice's
step over `RAGGED`."""
RAGGED = 1.4
"""How much faster than the bulk the most ragged lattices made of whole cells ring: 1.29, and 1.35 at ν = 0.49."""


def settle_substeps(tissue: Tissue) -> None:
    """Finds the number of substeps that this very lattice needs at its stiffest, and sets it.

    Ragged surfaces, mixed materials and remedies ring faster than the bulk, so the highest frequency is measured: power
    iteration with the kernel itself. From rest, one substep gives a = −ω²·u for the modes in u; the fastest outgrows
    the others.
    """
    params, constants = tissue.params, tissue.constants
    if len(params.nodes) > PROBE_MOST[tissue.device.is_cuda]:
        set_substeps(tissue, checked_substeps(params, cautious_step(params) / RAGGED))
        return
    tissue.set_young(params.stiffest)
    live = tissue.state.live.host
    live[4], live[5] = 0.0, 1.0
    live[7] = params.remedies.shape**2
    features, constants.features = constants.features, constants.features & ~kernels.SKIP_REST
    probe = tissue.device.record(lambda stage: record_probe(stage, tissue), work=len(params.nodes))
    still = np.zeros((len(params.nodes), 3))

    def ring(u: NDArray[np.float64]) -> NDArray[np.float64]:
        """−a of masses that rest at u."""
        tissue.set_motion(u, still)
        probe.run()
        tissue.device.synchronize()
        return -tissue.velocities().astype(np.float64) / constants.dt

    def damp(u: NDArray[np.float64]) -> NDArray[np.float64]:
        """−a of masses that are at home and move so fast that the longest τ takes them to u in it."""
        velocity = (u / tau).astype(np.float32).astype(np.float64)
        tissue.set_motion(still, velocity)
        probe.run()
        tissue.device.synchronize()
        return tau * (velocity - tissue.velocities()) / constants.dt

    omega2 = PROBE_MARGIN * _largest(tissue, ring)
    tau = params.most_viscous_time
    if tissue.viscosity is None or tau == 0.0:
        step = np.inf if omega2 == 0.0 else np.sqrt(tau**2 + 4.0 / omega2) - tau
    else:
        start = tissue.viscous_time
        tissue.viscous_time = live[4] = tau
        sigma = PROBE_MARGIN * _largest(tissue, damp)
        tissue.viscous_time = start
        step = np.inf if omega2 == 0.0 else (math.sqrt(sigma**2 + 4.0 * omega2) - sigma) / omega2
    constants.features = features
    set_substeps(tissue, checked_substeps(params, step))
    tissue.set_motion(still, still)
    tissue.state.broken.host[0] = 0


def _largest(tissue: Tissue, apply: Callable[[NDArray[np.float64]], NDArray[np.float64]]) -> float:
    """Largest eigenvalue of a linear map over the free masses, by power iteration."""
    params = tissue.params
    free = tissue.mass * ~params.anchored
    u = np.random.default_rng(0).normal(size=(len(params.nodes), 3)) * (free > 0)[:, None]
    found = 0.0
    for _ in range(PROBE_ROUNDS if free.any() else 0):
        size = float(np.sqrt(free @ (u * u).sum(axis=1)))
        if size == 0.0:
            break
        u *= PROBE_SIZE * params.spacing / np.abs(u).max()
        size = float(np.sqrt(free @ (u * u).sum(axis=1)))
        u = apply(u)
        found = float(np.sqrt(free @ (u * u).sum(axis=1))) / size
    return found


def set_substeps(tissue: Tissue, substeps: int) -> None:
    """So many per tick; before its first one. More than it needs are possible."""
    constants = tissue.constants
    tissue.substeps = constants.substeps = substeps
    constants.dt = TICK / substeps
    keep = np.ones(tissue.layout.slots, dtype=np.float32)
    keep[tissue.layout.slot_of_node] = 1.0 / (1.0 + tissue.params.drag_of() * constants.dt)
    constants.keep.assign(keep)
