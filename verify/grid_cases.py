"""Flows on a grid at full size: a street of vortices behind a cylinder, and a plume over a small heater."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viscera import grid
from viscera.device import Device
from viscera.grid import GridParams, Substance

DIAMETER = 16
"""Of the cylinder [cells]; the tunnel is twenty times as high: a blockage of 5 %."""
REYNOLDS = 100.0
STROUHAL = 0.165
"""At Re 100 (Williamson 1996, Annu. Rev. Fluid Mech. 28: 0.164 to 0.166)."""


@dataclass(frozen=True)
class Street:
    strouhal: float
    """f D / U"""
    curl: NDArray[np.float32]
    """At the end, shape (y, x), times D/U."""
    beats: NDArray[np.float64]
    """Speed across the stream behind the cylinder, over U, step by step."""


def vortex_street(device: Device, periods: float = 26.0) -> Street:
    """Lengths in diameters, speeds in that of the stream. The cylinder is pushed aside for a moment at first, so that
    one side begins."""
    d, x, y = DIAMETER, 20 * DIAMETER, 20 * DIAMETER
    h, dt = 1.0 / d, 0.8 / d
    params = GridParams(
        (x, y, 1), h, dt=dt, open_sides=("+x",), inflow=1.0, viscosity=1.0 / REYNOLDS, no_slip=True, cycles=4
    )
    flow = grid.make(params, device=device)
    grid.set_velocity(flow, np.ones((1, y, x + 1)), np.zeros((1, y + 1, x)))
    follow = device.record(lambda stage: grid.follow(stage, flow), work=grid.work(flow))
    step = device.record(lambda stage: grid.step(stage, flow), work=grid.work(flow))
    steps = round(periods / STROUHAL / dt)
    beats = np.zeros(steps)
    place = grid.corners(params)[0, :-1, :-1, :2]
    column = int(np.argmin(np.abs(place[0, :, 0] - 8.0)))
    for number in range(steps):
        if number in (0, 60):
            aside = 0.3 if number == 0 else 0.0
            ends = [(5.5, 10.0, -9.0), (5.5, 10.0, 9.0)]
            grid.set_bars(flow, [ends], [0.5], [[(0.0, aside, 0.0)] * 2])
            follow.run()
        step.run()
        beats[number] = flow.layout.box(flow.velocity[1].numpy(), (0, 1, 0))[0, y // 2, column]
    late = beats[steps // 2 :]
    rises = np.flatnonzero((late[:-1] < 0.0) & (late[1:] >= 0.0))
    rises = rises + late[rises] / (late[rises] - late[rises + 1])
    u, v, _ = grid.velocity(flow)
    curl = (np.diff(v[0, 1:-1], axis=1) - np.diff(u[0, :, 1:-1], axis=0)) / h
    return Street(float((len(rises) - 1) / ((rises[-1] - rises[0]) * dt)), curl, beats)


@dataclass(frozen=True)
class Plume:
    axis: float
    """Speed on the axis over √(B/2πν)."""
    width: float
    """Radius of half that speed over 2.23 √(νz/w)."""
    profile: NDArray[np.float64]
    """Radius over that of half speed, and speed over that on the axis."""


def laminar_plume(device: Device, size: int = 64, crossings: float = 5.0) -> Plume:
    """Over a point source of buoyancy B at Pr 1. The closed form (Yih 1951; Batchelor 1954) is

    w = √(B/2πν) / (1 + bη²)², half of it at r = 2.23 √(νz/w),

    checked by putting F = 6bη²/(1 + bη²), G = 96b²/(1 + bη²)³ into the equations of a boundary layer. Lengths in cells,
    axis speed 1 by the form."""
    height = size + size // 4
    nu = 0.005 * height
    buoyancy = 2.0 * np.pi * nu
    warm = Substance("warmth", "maccormack", diffusivity=nu, lift=1.0)
    params = GridParams(
        (size, size, height), 1.0, dt=0.8, viscosity=nu, substances=(warm,), diffusion_sweeps=6,
        open_sides=("-x", "+x", "-y", "+y", "+z"), cycles=4,
    )  # fmt: skip
    flow = grid.make(params, device=device)
    middle = 0.5 * size
    source = 4.0
    grid.put(flow, 0, (middle, middle, source), values={"warmth": buoyancy * params.dt})
    device.record(lambda stage: grid.follow(stage, flow), work=grid.work(flow)).run()
    step = device.record(lambda stage: grid.step(stage, flow), work=grid.work(flow))
    step.run(round(crossings * height / params.dt))
    device.synchronize()
    level = round(0.6 * height)
    w = grid.velocity(flow)[2][level].astype(np.float64)
    place = np.arange(size) + 0.5 - middle
    radius = np.hypot(place, place[:, None]).ravel()
    order = np.argsort(radius)
    speed = w.ravel()[order]
    axis = float(speed[:4].mean())
    half = float(radius[order][np.argmax(speed < 0.5 * axis)])
    z = level - source
    wanted = 2.23 * np.sqrt(nu * z / axis)
    return Plume(axis, half / wanted, np.stack([radius[order] / half, speed / axis]))


def moving_piston(device: Device, steps: int = 50) -> tuple[float, int]:
    """A round bar across a channel with open ends, thicker than the channel is high, moves along it with 0.6 cells a
    step and the default number of cycles. What leaves at either end must be its velocity times the channel's section;
    the worst share that is missing or too much, and of how many steps."""
    cells, h, dt, speed, radius = (96, 16, 16), 0.01, 0.03, 0.2, 0.1
    flow = grid.make(GridParams(cells, h, dt=dt, open_sides=("-x", "+x")), device=device)
    follow = device.record(lambda stage: grid.follow(stage, flow), work=grid.work(flow))
    step = device.record(lambda stage: grid.step(stage, flow), work=grid.work(flow))
    worst = 0.0
    for number in range(steps):
        x = 0.3 + speed * dt * number
        grid.set_bars(flow, [[(x, -1.0, 0.08), (x, 1.0, 0.08)]], [radius], [[(speed, 0.0, 0.0)] * 2])
        follow.run()
        step.run()
        u = grid.velocity(flow)[0].astype(np.float64)
        for end in (0, -1):
            worst = max(worst, abs(float(u[:, :, end].sum()) / (speed * cells[1] * cells[2]) - 1.0))
    return worst, steps


def carried_dye(device: Device, n: int = 64) -> dict[str, float]:
    """Share that is gained of a blob in a vortex, 40 steps alone and 20 with a bar that goes through it: by each scheme
    as it is, with its sum kept by scaling all of it, and in whole units."""
    h = np.pi / n
    schemes = ("semi_lagrangian", "maccormack")
    dyes = [Substance(name, name) for name in schemes]
    dyes += [Substance(f"{name}, kept", name, keeps_total=True) for name in schemes]
    params = GridParams((n, n, 1), h, dt=0.5 * h, substances=(*dyes, Substance("conservative", unit=1e-6)))
    flow = grid.make(params, device=device)
    x, c = np.arange(n + 1) * h, (np.arange(n) + 0.5) * h
    grid.set_velocity(flow, (np.sin(x) * np.cos(c)[:, None])[None], (-np.cos(c) * np.sin(x)[:, None])[None])
    blob = np.exp(-(((c / np.pi - 0.35) / 0.1) ** 2) - ((c[:, None] / np.pi - 0.5) / 0.1) ** 2)[None]
    for one in params.substances:
        grid.fill(flow, one.name, np.rint(1e6 * blob) if one.name == "conservative" else blob)
    names = [one.name for one in dyes]
    before = {name: float(grid.values(flow, name).sum(dtype=np.float64)) for name in names}
    begun = grid.amount(flow, "conservative")
    follow = device.record(lambda stage: grid.follow(stage, flow), work=grid.work(flow))
    step = device.record(lambda stage: grid.step(stage, flow), work=grid.work(flow))
    follow.run()
    step.run(40)
    for number in range(20):
        place = np.array([1.5 + 0.05 * number, 1.5, 0.0])
        ends = [place - np.array([0.0, 0.0, 1.0]), place + np.array([0.0, 0.0, 1.0])]
        grid.set_bars(flow, [ends], [0.3], [[(2.0, 0.0, 0.0)] * 2])
        follow.run()
        step.run()
    gained = {name: float(grid.values(flow, name).sum(dtype=np.float64)) / before[name] - 1.0 for name in names}
    return gained | {"conservative": grid.amount(flow, "conservative") / begun - 1.0}
