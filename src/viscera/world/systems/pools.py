"""Pools on an organ: fluid that stands in its hollows, runs over their rims and moves with the tissue."""

from __future__ import annotations

from viscera.blood import pools as standing
from viscera.blood.pools.pools import Pools, step_pools
from viscera.world.system import Moment, System
from viscera.world.systems.resting import Rest, awake


def pooling(pools: Pools, rest: Rest | None = None) -> System[Pools]:
    """After `flying`, whose suction takes from it, and before `flowing`."""
    device = pools.device
    program = device.record(lambda stage: step_pools(stage, pools), work=pools.count)

    def frame(now: Moment) -> None:
        if not awake(rest):
            return
        program.run()
        device.synchronize()
        standing.check(pools, now.tick)

    return System(
        name="pools",
        skins=pools.surface.parts,
        frame=frame,
        after=("drops",),
        save=lambda: standing.save(pools),
        load=lambda saved: standing.load(pools, saved),
        holds=pools,
    )
