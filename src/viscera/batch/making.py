"""From a scenario to the arrays of many worlds.

One world is made as always and gives what all of them share. A batch computes ticks: hands, tools, tissue and contact.
What a scenario has besides (heat, blood, cutting, grasping) it cannot, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.batch import reset
from viscera.batch.kit import Ends, Hands, Kit
from viscera.batch.worlds import Worlds
from viscera.device import Device
from viscera.errors import InputError
from viscera.instruments import Pushes, Tool
from viscera.instruments.bars import MOST_BARS, parts_of
from viscera.timing import TICK
from viscera.tissue import kernels, touch_kernels
from viscera.tissue.layout import TILE
from viscera.tissue.tissue import Tissue
from viscera.world import World
from viscera.world.floor import Floor

IDLE_SYSTEMS = frozenset({"search", "goals", "lattice_view", "ink"})
"""Systems that do nothing to tissue or tools: what they show and measure a batch leaves out."""


def check_world(world: World, without: Sequence[str] = ()) -> None:
    """Refuses what a batch cannot compute, but for the systems that it is to leave out."""
    name, contents = world.scenario, world.contents
    names = [system.name for system in contents.systems]
    unknown = sorted(set(without) - set(names))
    if unknown:
        raise InputError(f"{name} has no system {unknown[0]!r}.", f"It has: {', '.join(names)}.")
    busy = sorted(one for one in names if one.split(".")[-1] not in IDLE_SYSTEMS and one not in without)
    if len(contents.organs) != 1 or contents.motions or contents.rubbing is not None or busy:
        what = f"the systems {', '.join(busy)}" if busy else f"{len(contents.organs)} organs, or what moves by itself"
        raise InputError(
            f"{name}: a batch cannot compute {what}.",
            "A batch has hands, round tools and one organ: use `palpation`, leave systems out (`without`) and add what "
            "batches have of them (`batch.burns`, `batch.film`), or use single worlds.",
        )
    tissue = contents.organs[0].tissue
    lacks = {
        "slabs": tissue.slabs is not None,
        "cutting": tissue.cutting is not None,
        "grasping": tissue.grasping is not None,
        "sewing": tissue.sewing is not None,
        "clips": tissue.clamps is not None,
        "driven anchors": tissue.driven_places.size > 0,
        "torsion springs": tissue.params.remedies.torsion > 0.0,
        "several viscous times": tissue.viscosity is not None,
        "creep or rest skipping": bool(tissue.constants.features & ~kernels.EXTRA),
    }
    for what, there in lacks.items():
        if there:
            raise InputError(f"{name}: a batch knows no {what}.", "Use single worlds (`viscera.make`) for it.")


def check_stiffness(low: float, high: float, young: float, stiffest: float) -> None:
    """Refuses factors that the lattice's substeps cannot carry."""
    if not 0.0 < low <= high or high * young > stiffest * (1.0 + 1e-6):
        raise InputError(
            f"stiffness from {low:g} to {high:g} times {young:g} Pa is not possible.",
            f"Stay above 0 and at most {stiffest / young:g}: the lattice has its substeps for {stiffest:g} Pa.",
        )


def pushing_tools(world: World, names: Sequence[str] | None = None) -> list[Tool]:
    """Those that push tissue with round bars, of these names; the others do nothing in a batch."""
    found = []
    known = [tool.instrument.name for tool in world.contents.tools]
    for name in names or ():
        if name not in known:
            raise InputError(f"{world.scenario} has no tool {name!r}.", f"It has: {', '.join(known)}.")
    for tool in world.contents.tools:
        if names is not None and tool.instrument.name not in names:
            continue
        pushes = tool.instrument.effect(Pushes)
        if pushes is None:
            continue
        if pushes.solid:
            raise InputError(
                f"{world.scenario}: {tool.instrument.name} has a shape of its own.", "A batch has round tools."
            )
        found.append(tool)
    if not found or len(found) > touch_kernels.TOOLS:
        raise InputError(
            f"{world.scenario} has {len(found)} tools that push.", f"A batch has 1 to {touch_kernels.TOOLS}."
        )
    return found


def make_kit(world: World, tools: Sequence[Tool], device: Device) -> Any:
    """The struct `Kit`: what tools are, and what keeps them out."""
    organ = world.contents.organs[0]
    floor, tissue = organ.floor, organ.tissue
    local = np.zeros((len(tools), 2 * MOST_BARS, 3))
    radius, swing = np.zeros((len(tools), MOST_BARS)), np.zeros((len(tools), MOST_BARS))
    for number, tool in enumerate(tools):
        parts = parts_of(tool.instrument)
        local[number, : 2 * len(parts)] = [end for part in parts for end in (part.start, part.end)]
        radius[number, : len(parts)] = [part.radius for part in parts]
        swing[number, : len(parts)] = [part.swing for part in parts]

    def put(values: Any, dtype: Any) -> wp.array[Any]:
        return wp.array(np.array(values), dtype=dtype, device=device.warp)

    instruments = [tool.instrument for tool in tools]
    made: Any = Kit()
    vector: Any = wp.vec3d
    made.tools, made.substeps = len(tools), tissue.substeps
    made.home = put([tool.tip for tool in tools], wp.vec3d)
    made.home_turn = put([tool.orientation for tool in tools], wp.vec4d)
    made.local, made.radius = put(local, wp.vec3d), put(radius, wp.float64)
    made.swing = put(swing, wp.float64)
    made.bars = put([tool.bars.count for tool in tools], wp.int32)
    made.thinnest = put([float(tool.bars.radii.min()) for tool in tools], wp.float64)
    made.friction = put([_pushes(tool).friction for tool in tools], wp.float64)
    made.length = put([one.length for one in instruments], wp.float64)
    made.trocar = put([one.trocar or (0.0, 0.0, 0.0) for one in instruments], wp.vec3d)
    made.through = put([int(one.trocar is not None) for one in instruments], wp.int32)
    made.follow = put([_share(tool.follow_time) for tool in tools], wp.float64)
    made.low, made.high = vector(*world.room.low), vector(*world.room.high)
    made.origin = vector(*tissue.params.origin)
    _put_floor(made, floor, put)
    made.table = max(floor.table, -math.inf if world.contents.table is None else world.contents.table, -1.0e30)
    return made


def _pushes(tool: Tool) -> Pushes:
    found = tool.instrument.effect(Pushes)
    assert found is not None
    return found


def _share(follow_time: float) -> float:
    """Of the way to its hand, what a tool goes in a tick."""
    return 1.0 - math.exp(-TICK / follow_time) if follow_time > 0.0 else 1.0


def _put_floor(made: Any, floor: Floor, put: Any) -> None:
    grid = floor.grid()
    made.held_top, made.held_spacing = max(floor.top, -1.0e30), 1.0
    made.held, made.held_origin = put(np.zeros((1, 1, 1)), wp.float64), wp.vec3d()
    if grid is not None:
        values, origin, spacing = grid
        made.held, made.held_origin, made.held_spacing = put(values, wp.float64), wp.vec3d(*origin), spacing


def make_samples(tissue: Tissue, thinnest: float) -> Any:
    """The points that tools touch, without those that only parts thinner than any of these tools would touch. The
    middle of a bundle stays, behind the others, as others are found by it."""
    whole = tissue.need_touching().samples
    begin, middle = whole.begin.numpy(), whole.middle.numpy()
    felt = whole.thickest.numpy() > np.float32(thinnest)
    order, begins, middles = [], [0], []
    for number, at in enumerate(middle.tolist()):
        points = np.arange(begin[number], begin[number + 1])
        kept = points[felt[points]]
        if not felt[at]:
            kept = np.append(kept, at)
        middles.append(begins[-1] + int(np.flatnonzero(kept == at)[0]))
        begins.append(begins[-1] + len(kept))
        order.append(kept)
    chosen, device = np.concatenate(order), tissue.device.warp

    def rows(array: wp.array[Any], width: int = 1) -> wp.array[Any]:
        values = array.numpy()
        values = values.reshape(len(felt), width)[chosen].ravel() if width > 1 else values[chosen]
        return wp.array(np.ascontiguousarray(values), dtype=array.dtype, device=device)

    made = touch_kernels.Samples()
    for name in (
        "corners",
        "gauged",
        "soft",
        "stray",
        "radius",
        "group_radius",
        "under",
        "under_places",
        "under_weights",
        "parted",
    ):
        setattr(made, name, getattr(whole, name))
    made.rest, made.thickest = rows(whole.rest), rows(whole.thickest)
    made.normal = rows(whole.normal) if whole.gauged else whole.normal
    made.places, made.weights = rows(whole.places, whole.corners), rows(whole.weights, whole.corners)
    made.begin = wp.array(np.array(begins, dtype=np.int32), dtype=wp.int32, device=device)
    made.middle = wp.array(np.array(middles, dtype=np.int32), dtype=wp.int32, device=device)
    return made


def make_worlds(tissue: Tissue, samples: Any, count: int, anatomies: tuple[Any, Any], device: Device) -> Any:
    """The struct `Worlds`: what changes, a row for each world."""
    slots, tiles = tissue.layout.slots, len(tissue.layout.tile_slot)
    points, bundles = len(samples.rest), len(samples.middle)
    places, pairs = (tiles * TILE, tiles * TILE // 2) if device.is_cuda else (tiles, tiles)
    volume = tissue.params.has_volume

    def rows(size: int, dtype: Any) -> wp.array[Any]:
        return wp.zeros((count, size), dtype=dtype, device=device.warp)

    made = Worlds()
    made.tiles, made.bundles, made.cells, made.steps = tiles, bundles, places if volume else 0, pairs
    made.position = wp.zeros((count, 2, 3 * slots), dtype=wp.float32, device=device.warp)
    made.velocity = rows(3 * slots, wp.float32)
    made.extra, made.push = rows(3 * slots if volume else 1, wp.float32), rows(9 * slots if volume else 1, wp.float32)
    made.live, made.tools = rows(kernels.LIVE_FLOATS, wp.float32), rows(touch_kernels.TOOL_FLOATS, wp.float32)
    made.poses = wp.zeros(touch_kernels.ROWS * touch_kernels.POSE_FLOATS, dtype=wp.float32, device=device.warp)
    made.force = rows(touch_kernels.TOOLS * kernels.FORCE_PARTS, wp.int64)
    made.broken, made.clock, made.counts = rows(1, wp.int32), rows(1, wp.int32), rows(3, wp.int32)
    made.anatomy, made.springs = (wp.zeros(count, dtype=wp.int32, device=device.warp) for _ in range(2))
    made.stiffness = wp.array(anatomies[0], dtype=wp.float16, device=device.warp)
    made.bulk = wp.array(anatomies[1], dtype=wp.float16, device=device.warp)
    for name in ("near", "bars", "fields"):
        setattr(made, name, rows(bundles, wp.int32))
    for name in ("listed", "owner", "met", "row"):
        setattr(made, name, rows(points, wp.int32))
    for name in ("change", "move", "arm"):
        setattr(made, name, rows(points, wp.vec3))
    made.depth, made.part, made.turn = rows(points, wp.float32), rows(points, wp.float32), rows(bundles, wp.quat)
    made.share, made.touched = rows(slots, wp.int64), rows(slots // TILE, wp.int32)
    made.pushed, made.shift = rows(3 * slots, wp.int64), rows(3 * slots, wp.int64)
    made.gauge = rows(2 * touch_kernels.TOOLS, wp.int32)
    return made


def make_hands(count: int, tools: int, device: Device) -> Any:
    """The struct `Hands`."""

    def rows(dtype: Any, *size: int) -> wp.array[Any]:
        return wp.zeros((count, *size), dtype=dtype, device=device.warp)

    made = Hands()
    made.asked, made.active = rows(wp.float64, tools, 7), rows(wp.int32, tools)
    made.grip, made.jaws = rows(wp.float64, tools), rows(wp.float64, tools)
    made.direct, made.friction = wp.zeros(1, dtype=wp.int32, device=device.warp), rows(wp.float64)
    made.inside, made.tip = rows(wp.int32, tools), rows(wp.vec3d, tools)
    made.turn, made.held, made.ends = rows(wp.vec4d, tools), rows(wp.vec4d, tools), rows(Ends, tools)
    made.bound, made.pose = rows(wp.float64, tools, 9), rows(wp.float32, tools, 7)
    made.way, made.work = rows(wp.vec3d, tools), rows(wp.float64, tools, 6)
    made.last, made.mean, made.peak = (rows(wp.float32, tools, size) for size in (6, 6, 2))
    made.strongest = rows(wp.float32, tools, 6)
    return made


def world_seeds(seed: int, worlds: int) -> NDArray[np.int32]:
    """By which each world draws what its episodes are like."""
    return ((seed + np.arange(worlds, dtype=np.int64)) % 2**31).astype(np.int32)


def make_episodes(worlds: int, seed: int, device: Device) -> Any:
    """The struct `Episodes`: none has begun."""
    made = reset.Episodes()
    made.seed = wp.array(world_seeds(seed, worlds), dtype=wp.int32, device=device.warp)
    made.number = wp.full(worlds, -1, dtype=wp.int32, device=device.warp)
    made.born = wp.zeros(worlds, dtype=wp.int32, device=device.warp)
    made.stiffness = wp.zeros(worlds, dtype=wp.float32, device=device.warp)
    made.friction = wp.zeros(worlds, dtype=wp.float32, device=device.warp)
    return made
