"""A box of 64³ cells full of smoke that whirls without end, so that all of it changes in every step: what a volume
costs on the wire at most. `viscera serve verify/scenes/full_box.py`; verify/streaming.py measures it."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from viscera import grid
from viscera.device import Stage
from viscera.grid.shape import GridShape, Three, three
from viscera.heat.burn import make_burn
from viscera.heat.conduction import make_heat
from viscera.instruments import kit
from viscera.scenarios import Scenario, Setting
from viscera.scenarios._pad import above, liver_pad
from viscera.world import Contents, looking_down
from viscera.world.systems.burns import burning
from viscera.world.systems.heat import heating
from viscera.world.systems.smoke import DENSEST, EXTINCTION, UNIT, Smoke, smoking

wp.set_module_options({"enable_backward": False})

SIDE = 64
BLOW = 0.05
"""What the whirls gain in a step [m/s]."""


@wp.kernel
def blow(
    # params
    shape: GridShape,
    gain: float,
    # out
    velocity_out: Three,
):
    """Whirls of a third of the box, about all three axes."""
    c = shape.layer + wp.tid()
    waves = 6.0 * wp.pi / float(shape.nx)
    x = waves * float(c % shape.row)
    y = waves * float(c % shape.layer // shape.row)
    z = waves * float(c // shape.layer)
    velocity_out.x[c] = 0.9 * velocity_out.x[c] + gain * (wp.sin(z) + wp.cos(y))
    velocity_out.y[c] = 0.9 * velocity_out.y[c] + gain * (wp.sin(x) + wp.cos(z))
    velocity_out.z[c] = 0.9 * velocity_out.z[c] + gain * (wp.sin(y) + wp.cos(x))


def build(setting: Setting) -> Contents:
    organ = liver_pad(setting)
    camera, bounds = looking_down([organ], (0.05, -0.75, 0.95))
    tools = kit.hand_out([kit.hook()], above(organ.body))
    heat = make_heat(organ.need_skin())
    burn = make_burn(heat)
    systems = [heating(organ, heat, burn, tools), burning(organ, burn)]
    systems.append(smoking(organ, burn, tools, stated=(SIDE, SIDE, SIDE)))
    fill(systems[-1].holds, setting.seed)
    return Contents(
        organs=[organ],
        tools=tools,
        systems=systems,
        camera=camera,
        bounds=bounds,
    )


def fill(smoke: Smoke, seed: int) -> None:
    """Smoke of every density that is drawn, in all cells, and something that keeps it moving."""
    flow = smoke.flow
    densest = DENSEST * flow.params.cell_volume / (EXTINCTION * UNIT)
    shares = np.random.default_rng(seed).uniform(0.05, 0.95, (SIDE, SIDE, SIDE))
    grid.fill(flow, "smoke", np.rint(densest * shares).astype(np.int64))
    args: list[Any] = [flow.levels[0].shape, BLOW, three(flow.velocity)]

    def bring(stage: Stage) -> None:
        stage.once(lambda: wp.launch(blow, dim=flow.layout.count, inputs=args, device=flow.device.warp))

    flow.brings.append(bring)
    smoke.box.record()
    smoke.wake()


SCENARIO = Scenario("full_box", build, takes_mesh=False)
