"""Sums over the texels of a skin: blocks of `FAN` in order, then blocks of blocks. The same bits on any device and any
number of cores; float64, so millions of small areas add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import warp as wp

from viscera.device import Device, Stage

wp.set_module_options({"enable_backward": False})

FAN = 64
"""Numbers that one thread adds: few enough to keep a large device busy, many enough for three or four passes."""

_FAN = wp.constant(FAN)


@dataclass(frozen=True, eq=False)
class TreeSum:
    """Made by `make_sum`. A pair of sums: whoever uses it writes the first level, `levels[0]`."""

    count: int
    levels: tuple[Any, ...]
    """vec2d arrays, each `FAN` times shorter than the one before; the last has one element, the sums."""

    @property
    def total(self) -> Any:
        return self.levels[-1]


def make_sum(count: int, device: Device) -> TreeSum:
    """For `count` elements."""
    levels = []
    while count > 1 or not levels:
        count = -(-count // FAN)
        levels.append(wp.zeros(count, dtype=wp.vec2d, device=device.warp))
    return TreeSum(count, tuple(levels))


@wp.func
def first_of_block(block: int):
    return block * _FAN


@wp.func
def end_of_block(block: int, count: int):
    return wp.min((block + 1) * _FAN, count)


@wp.kernel
def add_blocks(
    first: int,
    # in
    part: wp.array(dtype=wp.vec2d),
    # out
    sum_out: wp.array(dtype=wp.vec2d),
):
    block = first + wp.tid()
    total = wp.vec2d()
    for i in range(first_of_block(block), end_of_block(block, part.shape[0])):
        total += part[i]
    sum_out[block] = total


def finish_sum(stage: Stage, tree: TreeSum) -> None:
    """From the first level to the total."""
    for part, whole in zip(tree.levels, tree.levels[1:], strict=False):
        stage.launch(add_blocks, whole.shape[0], [part, whole])
