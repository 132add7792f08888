"""Jaws in a batch open and close as those of one tool."""

from __future__ import annotations

import numpy as np
import pytest

from viscera import batch
from viscera.device import Device
from viscera.errors import InputError
from viscera.inputs import ToolInput
from viscera.timing import TICK

pytestmark = pytest.mark.slow

LEFT_OUT = (
    "heat", "burns", "stiffening", "smoke", "wounds", "rest", "drops", "pools", "stains", "film", "ledger",
    "film_picture", "gauze", "dressing",
)  # fmt: skip
"""Of `bleeding`: all but what only shows something."""


def test_jaws_follow_the_grip_as_those_of_one_tool(cpu: Device) -> None:
    """In the air, where nothing holds a tool back: ends of all bars against `Tool`, over closing and opening half way.
    Both are float64; NumPy may fuse a product into a sum: 10⁻¹² m."""
    worlds = batch.make("bleeding", worlds=2, device=cpu, detail=0.1, tools=["forceps"], without=LEFT_OUT)
    (tool,) = (one.copy() for one in worlds.template.contents.tools if one.instrument.name == "forceps")
    home = np.asarray(tool.instrument.home)
    poses = np.zeros((2, 1, 3))
    poses[:, 0] = home + np.array([0.004, 0.0, 0.01])
    spread = []
    for tick in range(200):
        grip = 1.0 if 30 <= tick < 110 else 0.5 if tick >= 110 else 0.0
        worlds.set_tools(poses, grips=[[0.0], [grip]])
        worlds.step(1)
        x, y, z = poses[1, 0].tolist()
        tool.take(ToolInput(tool.number, (x, y, z), grip=grip))
        tool.follow(TICK)
        ends = worlds.hand_rows.ends.numpy()[1, 0].reshape(-1, 2, 3)[: tool.bars.count]
        np.testing.assert_allclose(ends, tool.end[: tool.bars.count], atol=1e-12)
        spread.append(float(np.linalg.norm(ends[0, 1] - ends[1, 1])))
    assert min(spread) < 0.7 * spread[0], "they never closed"
    assert min(spread) < spread[-1] < spread[0]
    with pytest.raises(InputError, match="grips"):
        worlds.set_tools(poses, grips=[[2.0], [0.0]])
    with pytest.raises(InputError, match="no tool"):
        batch.make("bleeding", worlds=1, device=cpu, detail=0.1, tools=["spoon"], without=LEFT_OUT)
    with pytest.raises(InputError, match="no system"):
        batch.make("bleeding", worlds=1, device=cpu, detail=0.1, without=("weather",))
    worlds.close()
