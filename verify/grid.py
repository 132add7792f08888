"""Flows on a grid: what the solver leaves of the divergence, how vortices die and beat, how a plume rises."""

from __future__ import annotations

import numpy as np

from verify.framework import Measured, figure
from verify.grid_cases import STROUHAL, laminar_plume, vortex_street
from viscera import grid
from viscera.bench.grid import whirl
from viscera.device import open_device
from viscera.grid import GridParams

AREA = "grid"


@figure(area=AREA, claim="Taylor and Green's vortex dies at its rate at 128²", bound="within 2 %")
def vortex_decay() -> Measured:
    device, n, viscosity = open_device(), 128, 0.05
    h = np.pi / n
    params = GridParams((n, n, 1), h, dt=0.5 * h, viscosity=viscosity, diffusion_sweeps=20)
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
    left = {}
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
        left[solver] = worst
    detail = f"worst of 12 steps; 20 sweeps of Gauss–Seidel leave {left['gauss_seidel']:.2g}"
    return Measured(left["multigrid"], "", left["multigrid"] <= 1e-4, detail)


@figure(area=AREA, claim="vortices leave a cylinder at Re 100 with f D/U = 0.165", bound="within 10 %")
def strouhal() -> Measured:
    found = vortex_street(open_device()).strouhal
    return Measured(found, "", abs(found / STROUHAL - 1.0) <= 0.1, "16 cells across, blockage 5 %")


@figure(area=AREA, claim="a plume's axis speed over √(B/2πν), at Pr 1", bound="within 20 %")
def plume() -> Measured:
    found = laminar_plume(open_device())
    good = abs(found.axis - 1.0) <= 0.2 and abs(found.width - 1.0) <= 0.2
    return Measured(found.axis, "", good, f"half-speed radius over 2.23 √(νz/w): {found.width:.3f}")
