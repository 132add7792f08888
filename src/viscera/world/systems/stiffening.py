"""Burnt tissue is stiffer, and tears sooner: the springs under a burn follow its level.

Reads `ORGAN.burn_level`, writes the stiffness of the organ's lattice: in its shadow first, in force when it lands.
"""

from __future__ import annotations

import numpy as np

from viscera.device import Stage
from viscera.heat.burn import Burn
from viscera.tissue.burning import Burning, make_burning, make_sampling, sample_burn, step_burning, tear_burnt
from viscera.tissue.burnt_faces import make_face_sampling, sample_faces, set_faces
from viscera.units import SQUARE_MILLIMETRE
from viscera.view import Measure
from viscera.world.organ import Organ
from viscera.world.system import Kept, Moment, System, Watch

TORN = Measure(
    "torn", "Torn", "mm²", "Cross-section of burnt tissue that was pulled apart: it bears half as much.", grows=True
)


def stiffening(organ: Organ, burn: Burn, *, every: int = 1) -> System[Burning]:
    """After `burning` in the order of a frame, at the same turns."""
    real, shadow, skin = organ.tissue, organ.shadow.tissue, organ.need_skin()
    device = shadow.device
    level = organ.read_field("burn_level")
    burnt = Watch(level)
    springs = make_burning(shadow)
    sampling = make_sampling(shadow, skin)
    faces = make_face_sampling(skin) if skin.spare else None
    if faces is not None and organ.cuts is not None:
        cuts = organ.cuts
        cuts.follow_with(lambda triangles: set_faces(faces, cuts.masses_behind()))
    masses = len(shadow.params.nodes)
    due = np.zeros(1, dtype=np.bool_)
    """Whether springs have changed that are not in force yet."""

    def record_sampling(stage: Stage) -> None:
        sample_burn(stage, springs, sampling, level.array)
        if faces is not None:
            sample_faces(stage, springs, faces, level.array)

    def record(stage: Stage) -> None:
        record_sampling(stage)
        step_burning(stage, springs)

    tears = device.record(lambda stage: tear_burnt(stage, springs, shadow.current), work=masses)
    stiffen = device.record(lambda stage: step_burning(stage, springs), work=masses)
    follow = device.record(record, work=skin.count)
    sample = device.record(record_sampling, work=skin.count)
    follow.run()
    device.synchronize()
    organ.shadow.land()

    def frame(now: Moment) -> None:
        if burnt.changed():
            follow.run()
            device.synchronize()
            due[0] = True
        if burn.area.host[0][0] > 0.0:
            tear()

    def tear() -> None:
        before = int(springs.torn.host[0])
        tears.run()
        device.synchronize()
        if springs.torn.host[0] != before:
            stiffen.run()
            device.synchronize()
            due[0] = True

    def land() -> None:
        if due[0]:
            organ.shadow.land()
            due[0] = False

    def loaded() -> None:
        sample.run()
        device.synchronize()

    # The lattice saves its springs itself, but not its cells.
    cells = {"bulk": shadow.bulk, "bulk_now": real.bulk}
    kept = Kept({"torn": springs.torn, "due": due, "stiffness": shadow.constants.stiffness, **cells}, loaded)
    return System(
        name="stiffening",
        organ=organ.name,
        frame=frame,
        lands=land,
        every=every,
        phase=every - 1,
        reads=(f"{organ.name}.burn_level",),
        save=kept.save,
        load=kept.load,
        measures=lambda: [(TORN, springs.torn_area / SQUARE_MILLIMETRE)],
        holds=springs,
    )
