"""How a lattice lies in memory: tiles, neighbour tables, bricks; docs/decisions/002-lattice-storage.md decides by it.

Each storage steps the same springs (bench/_storage_kernels.py) from the same start, in a box, a liver-like lump and
the thin wall of a winding tube that fills a seventieth of its box. `ms` is the median time of one step inside a
recorded program, `bytes_per_mass` counts every array the step uses, `places_per_mass` the places it computes. All
storages must end in the same positions, or the benchmark stops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.bench._shapes import SHAPES, Nodes
from viscera.bench._storage_kernels import EMPTY_BRICK, KERNELS, Store
from viscera.bench.registry import Row, benchmark, median_ms, pick, timed
from viscera.device import Device, Stage
from viscera.tissue.layout import TILE, make_layout
from viscera.tissue.springs import DIRECTIONS, NodeIndex, cells_around, length_ratio, mass_share, spring_share

SPACING = 0.002
"""[m]"""
STEP = 2.0e-4
"""Δt [s]; far below what the springs allow."""
RATE2 = 4.0e5
"""k_ref over a whole mass [1/s²]."""

AGREE = 1e-4
"""Largest difference between storages, relative to the largest displacement: float32 in another order."""


@dataclass
class Springs:
    """A lattice before it is stored: per mass, in the order of memory (z, y, x)."""

    nodes: Nodes
    index: NodeIndex
    stiffness: NDArray[np.float16]
    """Of the spring in each of the 13 directions, shape (13, masses)."""
    push: NDArray[np.float32]
    start: NDArray[np.float32]
    """First displacement [m], shape (3, masses)."""


def make_springs(nodes: Nodes) -> Springs:
    nodes = nodes[np.lexsort(nodes.T)]
    index = NodeIndex(nodes)
    cells = cells_around(nodes, index)
    stiffness = np.zeros((len(DIRECTIONS), len(nodes)), dtype=np.float16)
    for row, direction in enumerate(DIRECTIONS):
        other = index.find(nodes + np.array(direction, dtype=np.int32))
        share = length_ratio(direction) * spring_share(cells, direction, other)
        stiffness[row] = np.where(other >= 0, share, 0.0)
    push = np.where(nodes[:, 2] == nodes[:, 2].min(), 0.0, STEP * RATE2 / mass_share(cells)).astype(np.float32)
    start = np.random.default_rng(0).normal(0.0, 1e-2 * SPACING, (3, len(nodes))).astype(np.float32)
    return Springs(nodes, index, stiffness, push, start)


@dataclass
class Stored:
    """A lattice in one storage, ready to step."""

    kernel: Any
    count: int
    """Elements of a launch: tiles, masses, bricks or places."""
    block: int
    computed: int
    """Places that a step computes."""
    place: NDArray[np.int64]
    """Of each mass."""
    store: Any
    position: tuple[Any, Any]
    velocity: Any
    kept: list[Any] = field(default_factory=list)

    def bytes(self) -> int:
        return sum(array.capacity for array in (*self.kept, *self.position, self.velocity))

    def launch(self, stage: Stage, steps: int) -> None:
        here, there = self.position
        for _ in range(steps):
            stage.launch(self.kernel, self.count, [self.store, here, self.velocity, there], block=self.block)
            here, there = there, here

    def result(self) -> NDArray[np.float32]:
        """Displacements after an even number of steps, shape (3, masses)."""
        return self.position[0].numpy().reshape(3, -1)[:, self.place]


def put(
    device: Device, springs: Springs, name: str, places: int, place: NDArray[np.int64], near: NDArray[np.int64],
    group: NDArray[np.int64], edge: int = 0,
) -> Stored:  # fmt: skip
    """Uploads a lattice whose masses have these places; what differs by kernel is worked out here."""
    both = name.startswith("native") and "tiles" not in name and not device.is_cuda
    per_mass = springs.stiffness if not both else _both_ways(springs)
    stiffness = np.zeros((len(per_mass), places), dtype=np.float16)
    stiffness[:, place] = per_mass
    push = np.zeros(places, dtype=np.float32)
    push[place] = springs.push
    start = np.zeros((3, places), dtype=np.float32)
    start[:, place] = springs.start
    store = Store()
    store.places, store.spacing, store.dt, store.edge = places, SPACING, STEP, edge
    arrays = {
        "near": wp.array(near.ravel(), dtype=wp.int32, device=device.warp),
        "group": wp.array(group, dtype=wp.int32, device=device.warp),
        "stiffness": wp.array(stiffness.ravel(), dtype=wp.float16, device=device.warp),
        "push": wp.array(push, dtype=wp.float32, device=device.warp),
    }
    for key, array in arrays.items():
        setattr(store, key, array)
    here, there = (wp.array(start.ravel(), dtype=wp.float32, device=device.warp) for _ in range(2))
    velocity = wp.zeros(3 * places, dtype=wp.float32, device=device.warp)
    computed = _computed(name, places, len(group), edge)
    vector = name.startswith("native") and not device.is_cuda
    width = 1 if not vector else edge**3 if edge else TILE
    return Stored(
        KERNELS[name], computed // width, max(1, 1024 // width), computed, place, store, (here, there), velocity,
        list(arrays.values()),
    )  # fmt: skip


def _computed(name: str, places: int, groups: int, edge: int) -> int:
    if "tiles" in name:
        return groups * TILE
    return places - edge**3 if edge else places


def _both_ways(springs: Springs) -> NDArray[np.float16]:
    """Rows 2d and 2d + 1: the spring up and the spring down in direction d."""
    rows = np.zeros((2 * len(DIRECTIONS), len(springs.nodes)), dtype=np.float16)
    for d, direction in enumerate(DIRECTIONS):
        rows[2 * d] = springs.stiffness[d]
        below = springs.index.find(springs.nodes - np.array(direction, dtype=np.int32))
        rows[2 * d + 1] = np.where(below >= 0, springs.stiffness[d, below], 0.0)
    return rows


def tiles(device: Device, springs: Springs, name: str) -> Stored:
    layout = make_layout(springs.nodes)
    return put(device, springs, name, layout.slots, layout.slot_of_node.astype(np.int64), layout.rows.astype(np.int64),
               layout.tile_slot.astype(np.int64))  # fmt: skip


def table(device: Device, springs: Springs, name: str) -> Stored:
    masses = len(springs.nodes)
    places = -(-masses // TILE) * TILE
    near = np.tile(np.arange(places, dtype=np.int64), (2 * len(DIRECTIONS), 1))
    for d, direction in enumerate(DIRECTIONS):
        for side in (0, 1):
            other = springs.index.find(springs.nodes + (1 - 2 * side) * np.array(direction, dtype=np.int32))
            # A missing neighbour is read as the last place, whose own stiffness upwards is 0.
            near[2 * d + side, :masses] = np.where(other >= 0, other, _springless(springs))
    return put(device, springs, name, places, np.arange(masses), near, np.zeros(1, dtype=np.int64))


def _springless(springs: Springs) -> int:
    """A mass without springs upwards: the last in memory has no neighbour above it."""
    return len(springs.nodes) - 1


def bricks(device: Device, springs: Springs, name: str, edge: int) -> Stored:
    local = springs.nodes.astype(np.int64) - springs.nodes.min(axis=0)
    cell = local // edge
    size = cell.max(axis=0) + 3

    def key(at: NDArray[np.int64]) -> NDArray[np.int64]:
        return ((at[..., 2] + 1) * size[1] + at[..., 1] + 1) * size[0] + at[..., 0] + 1

    keys = np.unique(key(cell))

    def number(wanted: NDArray[np.int64]) -> NDArray[np.int64]:
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[at] == wanted, at + 1, EMPTY_BRICK)

    inner = local % edge
    place = number(key(cell)) * edge**3 + (inner[:, 2] * edge + inner[:, 1]) * edge + inner[:, 0]
    steps = [(z * size[1] + y) * size[0] + x for z in (-1, 0, 1) for y in (-1, 0, 1) for x in (-1, 0, 1)]
    near = np.zeros((len(keys) + 1, 27), dtype=np.int64)
    near[1:] = np.stack([number(keys + step) for step in steps], axis=1)
    return put(device, springs, name, (len(keys) + 1) * edge**3, place, near, np.zeros(1, dtype=np.int64), edge)


def storages(device: Device, springs: Springs, quick: bool) -> Iterator[tuple[str, Stored]]:
    yield "native tiles", tiles(device, springs, "native tiles")
    yield "native table", table(device, springs, "native table")
    yield "native bricks of 4³", bricks(device, springs, "native bricks 4", 4)
    yield "native bricks of 8³", bricks(device, springs, "native bricks 8", 8)
    if not quick:
        yield "plain tiles", tiles(device, springs, "plain tiles")
        yield "plain table", table(device, springs, "plain table")
        yield "plain bricks of 4³", bricks(device, springs, "plain bricks", 4)


def headline(device: Device) -> Row:
    return pick(_measure(device, "box", make_springs(SHAPES["box"](20_000)), quick=True), "tiles")


@benchmark("tissue_storage", title="Lattice: tiles, neighbour tables and bricks", headline=headline)
def run(device: Device, quick: bool) -> Iterator[Row]:
    sizes = {(True, True): [200_000], (True, False): [1_000_000, 10_000_000], (False, True): [20_000]}
    for masses in sizes.get((device.is_cuda, quick), [20_000, 200_000]):
        for shape, make in SHAPES.items():
            if masses > 1_000_000 and shape == "tube":
                continue  # making it takes minutes, and a million shows the same
            yield from _measure(device, shape, make_springs(make(masses)), quick)


def _measure(device: Device, shape: str, springs: Springs, quick: bool) -> Iterator[Row]:
    masses = len(springs.nodes)
    steps = 10 if masses < 500_000 else 4
    first: NDArray[np.float32] | None = None
    for name, stored in storages(device, springs, quick):
        program = device.record(stored.launch, work=steps * masses, arguments=[steps])
        program.run()
        device.synchronize()
        got = stored.result()
        first = got if first is None else first
        error = float(np.abs(got - first).max() / np.abs(first).max())
        if not error < AGREE:
            raise RuntimeError(f"{name}: positions differ by {error:.1e} from those of tiles")
        ms = median_ms(program.run, device, repeats=7 if quick else 25) / steps
        yield timed(
            "tissue_storage", f"{shape}, {name}", masses, device, ms,
            extra={"bytes_per_mass": stored.bytes() / masses, "places_per_mass": stored.computed / masses,
                   "masses_x_steps_per_ms": masses / ms},
        )  # fmt: skip
        del program, stored
