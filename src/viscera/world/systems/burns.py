"""Burns on an organ's skin: what heat does to tissue, how far it has gone, and how that looks.

Reads `ORGAN.temperature`, writes `ORGAN.burn_level`: 0 healthy, 1 coagulated, 2 charred.
"""

from __future__ import annotations

import numpy as np

from viscera.device import Stage
from viscera.heat import burns
from viscera.heat.burn import Burn, measure_burn, step_burn
from viscera.heat.stages import DEFAULT_STAGES, BurnStage, check_stages, make_texture, step_texture
from viscera.units import SQUARE_MILLIMETRE
from viscera.view import Column, Measure, Table, Texture
from viscera.world.organ import Organ
from viscera.world.system import Kept, LiveTable, Moment, Rows, Show, System, Watch

CHARRED = Measure("charred", "Charred", "mm²", "Surface that has turned black. A good burn leaves none.", grows=True)
COAGULATED = Measure(
    "coagulated", "Coagulated", "mm²", "Surface that has turned white or darker.", digits=0, better="as it is"
)


def burning(organ: Organ, burn: Burn, *, every: int = 1) -> System[Burn]:
    """What the heat on an organ does to its skin; after `heating` in the order of a frame. With the same `every` as
    that: it takes its turn in the last of so many frames, the one before heat's next."""
    skin, device = organ.need_skin(), burn.heat.skin.device
    warmed = Watch(organ.read_field("temperature"))
    level = organ.write_field("burn_level", burn.burn_level)
    picture = make_texture(burn)
    texture = Texture(f"{organ.name}.burn", organ.name, "burn", skin.width, skin.height)

    def record(stage: Stage) -> None:
        step_burn(stage, burn)
        measure_burn(stage, burn)
        step_texture(stage, picture)

    program = device.record(record, work=skin.count)
    paint = device.record(lambda stage: step_texture(stage, picture), work=skin.count)
    paint.run()
    device.synchronize()

    due = np.zeros(1, dtype=np.bool_)
    """Whether there was a step of heat that has not burnt yet: kept, as a frame may end between the two."""

    def frame(now: Moment) -> None:
        due[0] |= warmed.changed()
        if due[0] and now.frame % every == every - 1:
            due[0] = False
            program.run()
            device.synchronize()
            level.changes += 1

    def loaded() -> None:
        paint.run()
        device.synchronize()

    kept = Kept({"due": due}, loaded, (lambda: burns.save(burn), lambda saved: burns.load(burn, saved)))

    def areas() -> list[tuple[Measure, float]]:
        coagulated, charred = burn.area.host[0].tolist()
        return [(CHARRED, charred / SQUARE_MILLIMETRE), (COAGULATED, coagulated / SQUARE_MILLIMETRE)]

    return System(
        name="burns",
        organ=organ.name,
        frame=frame,
        reads=(f"{organ.name}.temperature",),
        writes=(f"{organ.name}.burn_level",),
        save=kept.save,
        load=kept.load,
        shows=[Show(texture, {texture.name: picture.pixels})],
        measures=areas,
        # Only the page looks at it; the world keeps it, so that it is recorded and checked.
        tables=[LiveTable(STAGES, check=check_table)],
        holds=burn,
    )


def _colour(stage: BurnStage) -> float:
    """Linear RGB as one number, sRGB, 0 to 255 each."""
    linear = np.asarray(stage.colour)
    screen = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1.0 / 2.4) - 0.055)
    red, green, blue = np.rint(255.0 * screen).astype(int).tolist()
    return float(65536 * red + 256 * green + blue)


def check_table(rows: Rows) -> None:
    check_stages([
        BurnStage(level, f"row {number}", (0.0, 0.0, 0.0), cover, roughness, wetness)
        for number, (level, _, cover, roughness, wetness) in enumerate(rows)
    ])  # fmt: skip


STAGES = Table(
    "burn_stages",
    "Stages of a burn",
    "How tissue looks at each burn level: 0 is healthy, 1 coagulated, 2 charred; in between it is mixed.",
    (
        Column("level", "Level", "", "number", 0.0, 2.0, "Burn level from which on tissue looks like this row."),
        Column("colour", "Colour", "", "colour", 0.0, 16777215.0, "Of the burnt tissue."),
        Column("cover", "Cover", "", "number", 0.0, 1.0, "How much this colour hides the organ's own; 1 hides it all."),
        Column("roughness", "Matt", "", "number", 0.0, 1.0, "0 shines like a mirror, 1 is dull like soot."),
        Column("wetness", "Wet", "", "number", 0.0, 1.0, "How wet it gleams; less where water has boiled off."),
    ),
    tuple((s.level, _colour(s), s.cover, s.roughness, s.wetness) for s in check_stages(DEFAULT_STAGES)),
    row_names=tuple(s.name for s in DEFAULT_STAGES),
    fixed=((0, 0),),
)
