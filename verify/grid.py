"""Flows on a grid: what the solver leaves of the divergence, how vortices die and beat, how a plume rises."""

from __future__ import annotations

import numpy as np

from verify.framework import Measured, figure
from verify.grid_cases import STROUHAL, carried_dye, laminar_plume, moving_piston, vortex_street
from viscera import grid
from viscera.bench.grid import whirl
from viscera.device import open_device
from viscera.grid import GridParams

AREA = "grid"


@figure(area=AREA, claim="Taylor and Green's vortex dies at its rate at 128²", bound="within 2 %")
def vortex_decay() -> Measured:
    device, n, viscosity = open_device(), 128, 0.05
    h = np.pi / n
    params = GridParams((n, n, 1), h, dt=0.5 * h, viscosity=viscosity)
    flow = grid.make(params, device=device)
    x, c = np.arange(n + 1) * h, (np.arange(n) + 0.5) * h
    grid.set_velocity(flow, (np.sin(x) * np.cos(c)[:, None])[None], (-np.cos(c) * np.sin(x)[:, None])[None])
    device.record(lambda stage: grid.follow(stage, flow)).run()
    before = float((grid.velocity(flow)[0].astype(np.float64) ** 2).sum())
    device.record(lambda stage: grid.step(stage, flow), work=grid.work(flow)).run(100)
    after = float((grid.velocity(flow)[0].astype(np.float64) ** 2).sum())
    off = -np.log(after / before) / (100 * params.dt) / (4.0 * viscosity) - 1.0
    return Measured(100.0 * off, "%", abs(off) <= 0.02, "energy over 100 steps, MacCormack")


@figure(area=AREA, claim="divergence after projection over before, a bar moving through 64³", bound="≤ 1e-4")
def divergence() -> Measured:
    device = open_device()
    left, smooth = {}, 0.0
    for solver in ("multigrid", "gauss_seidel"):
        flow = whirl(device, (64, 64, 64), solver=solver)
        follow = device.record(lambda stage, flow=flow: grid.follow(stage, flow), work=grid.work(flow))
        step = device.record(lambda stage, flow=flow: grid.step(stage, flow), work=grid.work(flow))
        worst = 0.0
        for number in range(12):
            angle = 0.1 * number
            place = np.array([0.5 + 0.2 * np.cos(angle), 0.5 + 0.2 * np.sin(angle), 0.3])
            speed = 0.2 * 0.1 / flow.params.dt * np.array([-np.sin(angle), np.cos(angle), 0.0])
            grid.set_bars(flow, [[place, place + np.array([0.0, 0.0, 2.0])]], [0.06], [[speed, speed]])
            follow.run()
            step.run()
            before, after = grid.divergence(flow)
            worst = max(worst, after / before)
            if solver == "gauss_seidel":
                rest = flow.layout.box(flow.levels[0].needed.numpy()).astype(np.float64)
                means = rest.reshape(32, 2, 32, 2, 32, 2).mean(axis=(1, 3, 5))
                smooth = max(smooth, float(np.sqrt(8.0 * (means**2).sum())) / before)
        left[solver] = worst
    detail = (
        f"worst of 12 steps; 20 sweeps of Gauss–Seidel leave {left['gauss_seidel']:.2f}, all of it in the cells of one "
        f"colour, {smooth:.2f} as means over both"
    )
    return Measured(left["multigrid"], "", left["multigrid"] <= 1e-4, detail)


@figure(area=AREA, claim="no flow through an obstacle that moves through a channel of 96 × 16 × 16", bound="≤ 1e-3")
def flux() -> Measured:
    worst, steps = moving_piston(open_device())
    detail = f"flow at both open ends against what the bar pushes, worst of {steps} steps, 0.6 cells each"
    return Measured(worst, "of the flow", worst <= 1e-3, detail)


@figure(
    area=AREA,
    claim="dye that semi-Lagrangian and MacCormack's schemes lose, sum kept, with a bar that stirs",
    bound="≤ 1e-3",
)
def dye() -> Measured:
    lost = carried_dye(open_device())
    kept = max(abs(lost[f"{name}, kept"]) for name in ("semi_lagrangian", "maccormack"))
    detail = "; ".join(f"{name}: {value:+.2g}" for name, value in lost.items())
    return Measured(kept, "of all", kept <= 1e-3 and lost["conservative"] == 0.0, f"60 steps, 20 with a bar; {detail}")


@figure(area=AREA, claim="vortices leave a cylinder at Re 100 with f D/U = 0.165", bound="within 10 %")
def strouhal() -> Measured:
    found = vortex_street(open_device()).strouhal
    return Measured(found, "", abs(found / STROUHAL - 1.0) <= 0.1, "16 cells across, blockage 5 %")


@figure(area=AREA, claim="a plume's axis speed over √(B/2πν), at Pr 1", bound="within 20 %")
def plume() -> Measured:
    found = laminar_plume(open_device())
    good = abs(found.axis - 1.0) <= 0.2 and abs(found.width - 1.0) <= 0.2
    return Measured(found.axis, "", good, f"half-speed radius over 2.23 √(νz/w): {found.width:.3f}")
