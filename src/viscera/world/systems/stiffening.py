"""Burnt tissue is stiffer, and tears sooner: the springs under a burn follow its level.

Reads `ORGAN.burn_level`, writes the stiffness of the organ's lattice.
"""

from __future__ import annotations

from viscera.device import Stage
from viscera.heat.burn import Burn
from viscera.tissue.burning import make_burning, make_sampling, sample_burn, step_burning, tear_burnt
from viscera.units import SQUARE_MILLIMETRE
from viscera.view import Measure
from viscera.world.organ import Organ
from viscera.world.system import Kept, Moment, System, Watch

TORN = Measure("torn", "Torn", "mm²", "Cross-section of burnt tissue that was pulled apart: it bears half as much.")


def stiffening(organ: Organ, burn: Burn, *, every: int = 1) -> System:
    """After `burning` in the order of a frame, at the same turns."""
    tissue, skin = organ.tissue, organ.need_skin()
    device = tissue.device
    level = organ.read_field("burn_level")
    burnt = Watch(level)
    springs = make_burning(tissue)
    sampling = make_sampling(tissue, skin)
    masses = len(tissue.params.nodes)

    def record(stage: Stage) -> None:
        sample_burn(stage, springs, sampling, level.array)
        step_burning(stage, springs)

    # Which buffer holds the present alternates with the substeps, so there is a program for each.
    tears = [
        device.record(lambda stage, buffer=buffer: tear_burnt(stage, springs, buffer), work=masses) for buffer in (0, 1)
    ]
    stiffen = device.record(lambda stage: step_burning(stage, springs), work=masses)
    follow = device.record(record, work=skin.count)
    follow.run()
    device.synchronize()

    def frame(now: Moment) -> None:
        if burnt.changed():
            follow.run()
            device.synchronize()
        if burn.area.host[0][0] > 0.0:
            tear()

    def tear() -> None:
        before = int(springs.torn.host[0])
        tears[tissue.current].run()
        device.synchronize()
        if springs.torn.host[0] != before:
            stiffen.run()
            device.synchronize()
            tissue.wake()

    def loaded() -> None:
        follow.run()
        device.synchronize()

    kept = Kept({"torn": springs.torn}, loaded)
    return System(
        name="stiffening",
        frame=frame,
        every=every,
        reads=(f"{organ.name}.burn_level",),
        save=kept.save,
        load=kept.load,
        measures=lambda: [(TORN, springs.torn_area / SQUARE_MILLIMETRE)],
        holds=springs,
    )
