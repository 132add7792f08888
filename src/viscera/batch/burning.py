"""Heat and burns of many worlds: the functions of `viscera.heat`, with an offset for each world.

Round tools are electrodes: what is within reach of one of their bars takes current, shared as heat/electrode.py has it.
"""

from __future__ import annotations

import warp as wp

from viscera.batch.kit import Hands, Kit
from viscera.batch.metal import Metal, Placed, near_metal
from viscera.heat.arrays import Conductances, Rates
from viscera.heat.burn import HALF, BurnRates, burn_texel, char_of, coagulation_of
from viscera.heat.conduction import gather_to_body, spread_from_body
from viscera.heat.native import stage_of_texel, stage_of_tile
from viscera.heat.sums import end_of_block, first_of_block
from viscera.instruments.bars import MOST_BARS

wp.set_module_options({"enable_backward": False})

SAMPLES = 4
"""Poses on a tool's way through a step, as heat/electrode.py has them."""
_SAMPLES = wp.constant(SAMPLES)
_BARS = wp.constant(MOST_BARS)


@wp.struct
class Hot:
    """A row for each world, a place in it for each texel."""

    temperature: wp.array2d(dtype=wp.float32)
    """Above the body's [K]."""
    spare: wp.array2d(dtype=wp.float32)
    power: wp.array2d(dtype=wp.float32)
    """[W]"""
    damage: wp.array2d(dtype=wp.float32)
    charring: wp.array2d(dtype=wp.float32)
    water: wp.array2d(dtype=wp.float32)
    level: wp.array2d(dtype=wp.float32)
    sums: wp.array2d(dtype=wp.vec2d)
    """ΣG and the touched area of each block of texels [m²]."""
    delivered: wp.array2d(dtype=wp.float32)
    """Power [W] and touched area [m²], shape (worlds, 2)."""
    scale: wp.array(dtype=wp.float32)
    """V² of each world [W/m²]."""
    pedal: wp.array(dtype=wp.int32)
    """Whether the tool of each world is under current."""
    start: wp.array2d(dtype=wp.vec3)
    """Both ends of each of its bars as the last step ended [m]."""
    was: wp.array(dtype=wp.int32)
    """Whether it was in the body then; else it comes from nowhere."""
    marks: wp.array2d(dtype=wp.uint8)
    """Bits that a task gave each texel; one element where none did."""
    areas: wp.array2d(dtype=wp.vec4d)
    """Of each block of texels at rest [m²]: coagulated, charred, coagulated with the first and with the second bit."""


@wp.struct
class Generator:
    """The same in every world; see heat/electrode.py."""

    tool: int
    power: float
    """[W]"""
    reach: float
    """[m]"""
    most_flux: float
    """[W/m²]"""
    dry: float


@wp.struct
class Sheet:
    """What all worlds' skins share."""

    texels: wp.array(dtype=wp.int32)
    face: wp.array(dtype=wp.int32)
    barycentric: wp.array(dtype=wp.vec2)
    corner: wp.array(dtype=wp.vec3i)
    area: wp.array(dtype=wp.float32)
    """At rest [m²]."""


@wp.func
def is_inside(hands: Hands, world: int, tool: int):
    return hands.active[world, tool] != 0 and hands.inside[world, tool] != 0


@wp.func
def bar_end(hands: Hands, world: int, tool: int, end: int):
    ends = hands.ends[world, tool]
    return wp.vec3(float(ends[end, 0]), float(ends[end, 1]), float(ends[end, 2]))


@wp.func
def nearness(kit: Kit, hands: Hands, hot: Hot, generator: Generator, world: int, x: wp.vec3):
    """Share of the poses in which a bar of the tool is within reach of x."""
    tool = generator.tool
    count = float(0.0)
    for pose in range(_SAMPLES):
        share = (float(pose) + 0.5) / float(_SAMPLES)
        if hot.was[world] == 0:
            share = 1.0
        near = float(0.0)
        for bar in range(kit.bars[tool]):
            a0 = hot.start[world, 2 * bar]
            b0 = hot.start[world, 2 * bar + 1]
            a = a0 + share * (bar_end(hands, world, tool, 2 * bar) - a0)
            b = b0 + share * (bar_end(hands, world, tool, 2 * bar + 1) - b0)
            axis = b - a
            along = wp.clamp(wp.dot(x - a, axis) / wp.max(wp.length_sq(axis), 1.0e-20), 0.0, 1.0)
            if wp.length(x - (a + along * axis)) < float(kit.radius[tool, bar]) + generator.reach:
                near = 1.0
        count += near
    return count / float(_SAMPLES)


@wp.kernel
def conduct_worlds(
    first: int,
    # params
    kit: Kit,
    generator: Generator,
    metal: Metal,
    sheet: Sheet,
    rates: wp.array(dtype=BurnRates),
    blocks: int,
    # in
    hands: Hands,
    vertex: wp.array2d(dtype=wp.vec3),
    placed: Placed,
    # out
    hot: Hot,
):
    """Conductance of each texel into `power`, and its sum over a block of them."""
    index = first + wp.tid()
    world = index // blocks
    block = index % blocks
    total = wp.vec2d()
    tool = generator.tool
    on = hot.pedal[world] != 0 and is_inside(hands, world, tool)
    for i in range(first_of_block(block), end_of_block(block, sheet.texels.shape[0])):
        t = sheet.texels[i]
        through = float(0.0)
        if on:
            corner = sheet.corner[sheet.face[t]]
            weight = sheet.barycentric[t]
            x = (1.0 - weight[0] - weight[1]) * vertex[world, corner[0]]
            x += weight[0] * vertex[world, corner[1]] + weight[1] * vertex[world, corner[2]]
            near = float(0.0)
            if metal.parts > 0:
                near = near_metal(metal, placed, world, x)
            else:
                near = nearness(kit, hands, hot, generator, world, x)
            if near > 0.0:
                touched = near * sheet.area[t]
                wet = hot.water[world, t]
                bare = 1.0 - char_of(rates[0].model, hot.damage[world, t], hot.charring[world, t])
                through = touched * (wet + generator.dry * (1.0 - wet) * bare)
                total += wp.vec2d(wp.float64(through), wp.float64(touched))
        hot.power[world, t] = through
    hot.sums[world, block] = total


@wp.kernel
def measure_worlds(first: int, sheet: Sheet, rates: wp.array(dtype=BurnRates), blocks: int, hot: Hot):
    """Burnt areas of each block of texels, as heat/burn.py counts them."""
    index = first + wp.tid()
    world = index // blocks
    block = index % blocks
    model = rates[0].model
    total = wp.vec4d()
    for i in range(first_of_block(block), end_of_block(block, sheet.texels.shape[0])):
        t = sheet.texels[i]
        damage = hot.damage[world, t]
        if damage > 0.0:
            size = wp.float64(sheet.area[t])
            mark = wp.uint8(0)
            if hot.marks.shape[1] > 1:
                mark = hot.marks[world, t]
            if coagulation_of(model, damage) >= HALF:
                total[0] = total[0] + size
                if mark & wp.uint8(1) != wp.uint8(0):
                    total[2] = total[2] + size
                if mark & wp.uint8(2) != wp.uint8(0):
                    total[3] = total[3] + size
            if char_of(model, damage, hot.charring[world, t]) >= HALF:
                total[1] = total[1] + size
    hot.areas[world, block] = total


@wp.kernel
def drive_worlds(first: int, generator: Generator, blocks: int, hands: Hands, hot: Hot):
    """What each world's generator gives to tissue of this conductance."""
    world = first + wp.tid()
    total = wp.vec2d()
    for block in range(blocks):
        total += hot.sums[world, block]
    through = float(total[0])
    scale = generator.most_flux
    if generator.power < scale * through:
        scale = generator.power / through
    hot.scale[world] = scale
    hot.delivered[world, 0] = scale * through
    hot.delivered[world, 1] = float(total[1])
    for end in range(2 * _BARS):
        hot.start[world, end] = bar_end(hands, world, generator.tool, end)
    hot.was[world] = int(is_inside(hands, world, generator.tool))


@wp.kernel
def power_worlds(first: int, sheet: Sheet, hot: Hot):
    index = first + wp.tid()
    count = sheet.texels.shape[0]
    world = index // count
    t = sheet.texels[index % count]
    hot.power[world, t] = hot.scale[world] * hot.power[world, t]


@wp.kernel
def gather_worlds(first: int, net: Conductances, rates: wp.array(dtype=Rates), bodies: int, hot: Hot):
    index = first + wp.tid()
    world = index // bodies
    gather_to_body(index % bodies, net, rates, hot.power[world], hot.temperature[world])


@wp.kernel
def stage_worlds(
    first: int,
    # params
    momentum: float,
    weight: float,
    elements: int,
    net: Conductances,
    rates: wp.array(dtype=Rates),
    # in
    power: wp.array2d(dtype=wp.float32),
    now: wp.array2d(dtype=wp.float32),
    # out
    before_out: wp.array2d(dtype=wp.float32),
):
    """One stage of conduction; the first of the two is nothing on cuda, the second nothing on cpu."""
    index = first + wp.tid()
    world = index // elements
    element = index % elements
    stage_of_tile(element, momentum, weight, net, rates, power[world], now[world], before_out[world])
    stage_of_texel(element, momentum, weight, net, rates, power[world], now[world], before_out[world])


@wp.kernel
def spread_worlds(first: int, net: Conductances, bodies: int, hot: Hot):
    index = first + wp.tid()
    spread_from_body(index % bodies, net, hot.temperature[index // bodies])


@wp.kernel
def burn_worlds(
    first: int, sheet: Sheet, rates: wp.array(dtype=BurnRates), one_tissue: wp.array(dtype=wp.float32), hot: Hot
):
    index = first + wp.tid()
    count = sheet.texels.shape[0]
    world = index // count
    burn_texel(
        sheet.texels[index % count], rates, one_tissue, one_tissue, hot.temperature[world], hot.damage[world],
        hot.charring[world], hot.water[world], hot.level[world],
    )  # fmt: skip


@wp.kernel
def heal_worlds(first: int, mask: wp.array(dtype=wp.int32), hot: Hot):
    """Worlds in the mask are cold, wet and whole."""
    size = hot.damage.shape[1]
    index = first + wp.tid()
    world = index // size
    t = index % size
    if mask[world] != 0:
        hot.temperature[world, t] = 0.0
        hot.spare[world, t] = 0.0
        hot.power[world, t] = 0.0
        hot.damage[world, t] = 0.0
        hot.charring[world, t] = 0.0
        hot.water[world, t] = 1.0
        hot.level[world, t] = 0.0
        if t < 2:
            hot.delivered[world, t] = 0.0
        if t < hot.areas.shape[1]:
            hot.areas[world, t] = wp.vec4d()
        if t == 0:
            hot.was[world] = 0
            hot.pedal[world] = 0
