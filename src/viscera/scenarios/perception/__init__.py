"""Perception: do people see which water is adaptive? A blind comparison in the page (Elmasdotter §6.4)."""

from __future__ import annotations

from collections.abc import Iterable

from viscera.gaze.perception import Study
from viscera.inputs import Input
from viscera.scenarios import Scenario, Setting
from viscera.scenarios._adaptive.pools import PACED, fill_pool, find_pool
from viscera.scenarios._adaptive.scenario import FLOOR, pool_scenery
from viscera.scenarios.perception.comparing import TRIALS, Pair, comparing, model_viewer
from viscera.timing import FRAME, TICKS_PER_FRAME
from viscera.water import adaptive
from viscera.world import Contents, World
from viscera.world.systems.adaptive_water import Refined, seeded_looks

BASE = 4_000
"""Particles of the largest size: so few that both keep pace on two cores, since slow water would be told by it."""
POOL = "dambreak"
MODEL_SEES = 0.8
"""Of the trials, without a window: a model stands in for the viewer."""

INSTRUCTIONS = """\
Choose Watch. Twenty-four times you see a dam of water break twice, in an order that nobody knows.
One of both is fine everywhere, the other where you look: your pointer, or your eye by webcam or eye tracker.
Say which was finer. If you cannot tell, guess. The result comes at the end.
The seed is the number of the viewer: give each one another.
With two viewers the gaze of the one who holds the instruments counts: let nobody else watch."""


def build(setting: Setting) -> Contents:
    pool, base = find_pool(POOL), setting.count(BASE)
    regular = fill_pool(pool, setting.device, "stiff", regular=True, base=base)
    other = fill_pool(pool, setting.device, "stiff", base=base)
    fine = adaptive.make(other.fluid, PACED)
    refined = Refined(other.fluid, fine, round(FRAME / other.dt), pool.camera, 0.5 * pool.box[1])
    pair = Pair(regular.fluid, refined, Study(TRIALS, setting.seed, (POOL,)), setting.seed)
    looks, says = seeded_looks(setting.seed, pool.camera), model_viewer(pair, MODEL_SEES)

    def script(world: World, tick: int) -> Iterable[Input]:
        return [*looks(world, tick), *(says() if tick % TICKS_PER_FRAME == 0 else [])]

    return Contents(
        systems=[comparing(pair)],
        camera=pool.camera,
        bounds=((0.0, 0.0, -FLOOR), pool.box),
        scenery=pool_scenery(pool),
        script=script,
    )


SCENARIO = Scenario(
    "perception", build, "Which is finer?", "A blind comparison of regular and adaptive water, with a test at the end.",
    INSTRUCTIONS, takes_mesh=False, no_tissue=True,
)  # fmt: skip
