"""Drops: the film lets go of them, wounds spurt them, a nozzle sprays them; they fly, land, and are sucked up."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import warp as wp

from viscera.blood import drops as sprays
from viscera.blood.drops.drops import Drops, set_tools, step_drops
from viscera.blood.views import DropView
from viscera.device import Stage
from viscera.instruments import Rinses, Sucks, Tool
from viscera.view import Particles
from viscera.world.system import Kept, Moment, Show, System
from viscera.world.systems.resting import Rest, awake
from viscera.world.systems.stains import Aim

wp.set_module_options({"enable_backward": False})

AnyEffect = TypeVar("AnyEffect")


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
        red = float(0.0)
        if blood >= 0:
            red = drops.fluid[i][blood]
        shown_out[i] = wp.vec4(x[0], x[1], x[2], red)


def flying(name: str, drops: Drops, rest: Rest | None = None, aim: Aim | None = None) -> System[Drops]:
    """Drops around the organ called `name`, which hit tools where `aim` says. After `bleeding`, before `flowing`."""
    device, capacity = drops.device, drops.state.position.shape[0]
    shown = wp.zeros(capacity, dtype=wp.vec4, device=device.warp)
    airborne = device.port(1, wp.int32)
    fluids = [fluid.name for fluid in drops.film.fluids]
    blood = fluids.index("blood") if "blood" in fluids else -1

    def record_show(stage: Stage) -> None:
        stage.launch(show_drops, capacity, [blood, drops.state.view, shown])
        stage.once(lambda: wp.copy(airborne.array, drops.state.count))
        stage.download(airborne)

    def record(stage: Stage) -> None:
        step_drops(stage, drops)
        record_show(stage)

    program = device.record(record, work=capacity)
    show = device.record(record_show, work=capacity)

    def frame(now: Moment) -> None:
        if aim is not None:
            aim.take(now)
        if not awake(rest):
            return
        suction, nozzle = _turn(now, Sucks), _turn(now, Rinses) if "saline" in fluids else None
        given = {}
        if suction is not None:
            tool, sucks = suction
            given |= {"suction": tool.tip, "reach": sucks.reach, "suction_rate": sucks.rate}
        if nozzle is not None:
            tool, rinses = nozzle
            shaft = np.array(tool.shaft)
            given |= {"nozzle": tool.tip + rinses.outlet * shaft, "nozzle_rate": rinses.rate}
            given |= {"nozzle_velocity": -rinses.speed * shaft}
        set_tools(drops, **given)
        program.run()
        device.synchronize()

    def redraw() -> None:
        show.run()
        device.synchronize()

    redraw()
    radius = (3.0 * drops.film.particle_volume / (4.0 * np.pi)) ** (1.0 / 3.0)
    look = Particles(f"{name}.drops", "blood", float(radius), capacity, "share", stretched=True)
    names = tuple(look.arrays())

    def counts() -> dict[str, int]:
        return dict.fromkeys(names, int(airborne.host[0]))

    kept = Kept({}, redraw, (lambda: sprays.save(drops), lambda saved: sprays.load(drops, saved)))
    return System(
        name="drops",
        organ=name,
        frame=frame,
        # Without saline there is nothing to rinse with, and the world says so.
        uses=(Rinses, Sucks) if "saline" in fluids else (Sucks,),
        after=("wounds", "rest"),
        save=kept.save,
        load=kept.load,
        shows=[Show(look, dict(zip(names, (shown, drops.state.velocity), strict=True)), counts)],
        holds=drops,
    )


def _turn(now: Moment, effect: type[AnyEffect]) -> tuple[Tool, AnyEffect] | None:
    """The tool whose turn it is among those that work: two that share a pump take turns, frame by frame."""
    working = now.using(effect)
    return working[now.frame % len(working)] if working else None
