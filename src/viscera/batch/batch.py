"""Many worlds of one scenario in one set of arrays, stepped by one recorded program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import ArrayLike, NDArray

from viscera.batch import blocks, kernels, reset
from viscera.batch.anatomies import Anatomies
from viscera.batch.kit import Hands
from viscera.batch.making import (
    check_stiffness,
    check_world,
    make_episodes,
    make_hands,
    make_kit,
    make_samples,
    make_worlds,
    pushing_tools,
    world_seeds,
)
from viscera.batch.worlds import Worlds
from viscera.device import Device, Program, Stage, open_device
from viscera.errors import InputError
from viscera.scenarios import LARGEST_SEED, Scenario, check_seed
from viscera.scenarios import make as make_world
from viscera.tissue.tissue import Tissue
from viscera.world import World

MOST_WORLDS = 1 << 20
"""More is a slip."""
MOST_TICKS = 1_000
"""Of an action: one second."""
ANATOMIES = 32
"""That the worlds of a batch draw from, unless told."""
THREADS = 256
"""Of a world on cuda."""
ACTION_TICKS = 10

SHARED = ("stiffness", "bulk", "poses", "direct")
"""Arrays without a row for each world."""

Range = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Forces:
    """What tools felt over the last action: arrays on the device, force [N] first, then torque about the tip [N·m]."""

    last: wp.array[Any]
    """Of its last tick, shape (worlds, tools, 6)."""
    mean: wp.array[Any]
    """Over its ticks, shape (worlds, tools, 6)."""
    peak: wp.array[Any]
    """Largest force and largest torque of a tick, shape (worlds, tools, 2)."""
    strongest: wp.array[Any]
    """Of the tick with the largest force, shape (worlds, tools, 6)."""


class Batch:
    """Many worlds. Make one with `viscera.batch.make`.

    Its arrays are Warp's: `.numpy()` is a view on cpu, `wp.to_torch(array)` or `torch.from_dlpack(array)` one on any
    device. Row w is world w's."""

    def __init__(self, template: World, device: Device, tools: list[str], parts: dict[str, Any], fused: bool) -> None:
        self.template, self.device, self.tools = template, device, tools
        """`template` is the single world that gave what all share, as it was made; `tools` are names in the order of
        the arrays."""
        self.tissue: Tissue = template.contents.organs[0].tissue
        """The lattice that all worlds share, at rest."""
        self._samples, self._kit, self._begin = parts["samples"], parts["kit"], parts["begin"]
        self._worlds, self._hands, self._episodes = parts["worlds"], parts["hands"], parts["episodes"]
        self.seeds: NDArray[np.int64] = parts["seeds"]
        """Of each anatomy: a single world of this seed has the same one."""
        self._anatomies: Anatomies = parts["anatomies"]
        self.count = len(self._worlds.anatomy)
        self.ticks = 0
        """So far."""
        self.fused = fused
        """Whether an action is one launch; else each phase of a tick is one."""
        self.forces = Forces(self._hands.last, self._hands.mean, self._hands.peak, self._hands.strongest)
        self._plan = device.port(1, wp.int32)
        self._mask = wp.zeros(self.count, dtype=wp.int32, device=device.warp)
        self._record()
        self.reset()

    # --- what goes in ---

    @property
    def hands(self) -> wp.array[Any]:
        """What hands ask for, float64, shape (worlds, tools, 7): position [m] and quaternion x, y, z, w. `set_tools`
        checks and writes it; a policy on the device may write it itself."""
        return self._hands.asked

    @property
    def active(self) -> wp.array[Any]:
        """Which tools are in the body, int32, shape (worlds, tools)."""
        return self._hands.active

    @property
    def grips(self) -> wp.array[Any]:
        """How far hands close their handles, 0 to 1, float64, shape (worlds, tools); 0 after a reset. Jaws follow."""
        return self._hands.grip

    def set_tools(
        self,
        poses: ArrayLike,
        active: ArrayLike | None = None,
        *,
        grips: ArrayLike | None = None,
        direct: bool = False,
    ) -> None:
        """Where hands want the tools from now on: position [m] and quaternion (x, y, z, w), shape (worlds, tools, 7),
        or positions alone, shape (worlds, tools, 3), for tools held upright. `active` says which tools are in the body,
        all unless told; `grips` how far handles are closed, 0 to 1, shape (worlds, tools), else they stay as they are.
        Tools follow as in one world; with `direct` without lag."""
        shape = (self.count, len(self.tools))
        given = np.asarray(poses, dtype=np.float64)
        if given.shape not in ((*shape, 7), (*shape, 3)):
            raise InputError(f"poses have shape {given.shape}.", f"Give {(*shape, 7)}, or {(*shape, 3)} for positions.")
        if not np.isfinite(given).all():
            raise InputError("poses are not finite everywhere.", "Send finite positions [m] and unit quaternions.")
        if given.shape[-1] == 3:
            upright = np.broadcast_to(np.array([0.0, 0.0, 0.0, 1.0]), (*shape, 4))
            given = np.concatenate([given, upright], axis=-1)
        length = np.linalg.norm(given[..., 3:], axis=-1)
        if not ((length > 0.5) & (length < 2.0)).all():
            raise InputError("an orientation is not a unit quaternion.", "Send x, y, z, w of length 1.")
        there = np.ones(shape, dtype=np.int32) if active is None else np.asarray(active, dtype=np.int32)
        if there.shape != shape:
            raise InputError(f"active has shape {there.shape}.", f"It must be {shape}.")
        if grips is not None:
            closed = np.asarray(grips, dtype=np.float64)
            if closed.shape != shape or not ((closed >= 0.0) & (closed <= 1.0)).all():
                raise InputError(f"grips have shape {closed.shape}, or are not 0 to 1.", f"Give shape {shape}.")
            self._hands.grip.assign(closed)
        self._hands.asked.assign(given)
        self._hands.active.assign(there)
        self._hands.direct.fill_(int(direct))

    def set_materials(
        self, *, stiffness: ArrayLike | None = None, friction: ArrayLike | None = None, anatomy: ArrayLike | None = None
    ) -> None:
        """Factors on Young's modulus and on friction, and the anatomy, of each world, until its next reset."""
        params = self.tissue.params
        given = (("stiffness", stiffness, self._episodes.stiffness), ("friction", friction, self._episodes.friction))
        for name, values, array in given:
            if values is not None:
                factors = self._row(name, values, np.float32)
                if not (np.isfinite(factors).all() and (factors >= 0.0).all()):
                    raise InputError(
                        f"{name} is not finite and at least 0 everywhere.", "Give a factor for each world."
                    )
                if name == "stiffness":
                    check_stiffness(float(factors.min()), float(factors.max()), self.tissue.young, params.stiffest)
                array.assign(factors)
        if anatomy is not None:
            chosen = self._row("anatomy", anatomy, np.int32)
            if chosen.min() < 0 or chosen.max() >= len(self.seeds):
                raise InputError("anatomy: there is none of that number.", f"Allowed are 0 to {len(self.seeds) - 1}.")
            self._worlds.anatomy.assign(chosen)
        self._put_on.run()

    def set_anatomy(self, number: int, seed: int) -> None:
        """The anatomy of this number becomes that of a single world of this seed."""
        check_seed(seed)
        if not 0 <= number < len(self.seeds):
            raise InputError(f"anatomy: there is none of number {number}.", f"Allowed are 0 to {len(self.seeds) - 1}.")
        springs, bulk = self._anatomies.row(seed)
        self._worlds.stiffness[number].assign(springs)
        self._worlds.bulk[number].assign(bulk)
        self.seeds[number] = seed

    def _row(self, name: str, values: ArrayLike, dtype: Any) -> NDArray[Any]:
        given = np.asarray(values, dtype=dtype)
        if given.shape != (self.count,):
            raise InputError(f"{name} has shape {given.shape}.", f"It must be ({self.count},).")
        return given

    # --- time ---

    def step(self, ticks: int = ACTION_TICKS) -> None:
        """All worlds go on by so many ticks of 1 ms. On cuda it returns before they have; reading an array waits."""
        if not 1 <= ticks <= MOST_TICKS:
            raise InputError(f"ticks = {ticks} is not possible.", f"Allowed are 1 to {MOST_TICKS}.")
        if self._plan.host[0] != ticks:
            self.device.synchronize()  # an earlier action may not have read it yet
            self._plan.host[0] = ticks
        if self._tick is None:
            self._action.run()
        else:
            self._action.run()
            self._tick.run(ticks)
        self.ticks += ticks

    def reset(self, mask: Any = None, *, seed: int | None = None) -> None:
        """Another episode of the worlds in the mask, shape (worlds,), or of all. The mask may be an array on the
        device. With a `seed`, they begin with the first episode of a batch of that seed."""
        self.write_mask(mask, self._mask)
        if seed is not None:
            check_seed(seed)
            chosen = self._mask.numpy() != 0
            seeds, numbers = self._episodes.seed, self._episodes.number
            seeds.assign(np.where(chosen, world_seeds(seed, self.count), seeds.numpy()))
            numbers.assign(np.where(chosen, -1, numbers.numpy()).astype(np.int32))
        self._reset.run()

    # --- what comes out ---

    @property
    def poses(self) -> wp.array[Any]:
        """Where tools are, float32, shape (worlds, tools, 7)."""
        return self._hands.pose

    @property
    def position(self) -> wp.array[Any]:
        """p = u + τ·v of every place [m], float32, shape (worlds, 3·slots); `tissue.layout` has the place of each mass.
        The view is of the newest of two buffers: ask again after a step."""
        return self._worlds.position[:, self._now]

    @property
    def velocity(self) -> wp.array[Any]:
        """[m/s], float32, shape (worlds, 3·slots)."""
        return self._worlds.velocity

    @property
    def anatomy(self) -> wp.array[Any]:
        """Which anatomy each world has, int32, shape (worlds,); `seeds` are theirs."""
        return self._worlds.anatomy

    @property
    def stiffness(self) -> wp.array[Any]:
        """Factor on Young's modulus of each world, float32."""
        return self._episodes.stiffness

    @property
    def friction(self) -> wp.array[Any]:
        """Factor on friction of each world, float32."""
        return self._episodes.friction

    @property
    def broken(self) -> wp.array[Any]:
        """Worlds whose state is no longer finite, int32, shape (worlds, 1). They disturb no other; reset them."""
        return self._worlds.broken

    def ages(self) -> NDArray[np.int32]:
        """Ticks since each world was reset; a copy."""
        return self._worlds.clock.numpy()[:, 0] - self._episodes.born.numpy()

    def displacements(self) -> NDArray[np.float32]:
        """u of every mass [m], shape (worlds, masses, 3); a copy."""
        slots, places = self.tissue.layout.slots, self.tissue.layout.slot_of_node
        p = self._worlds.position.numpy()[:, self._now].reshape(self.count, 3, slots)[:, :, places]
        v = self._worlds.velocity.numpy().reshape(self.count, 3, slots)[:, :, places]
        return np.ascontiguousarray((p - np.float32(self.tissue.viscous_time) * v).transpose(0, 2, 1))

    @property
    def _now(self) -> int:
        return self.ticks * self.tissue.substeps % 2

    @property
    def bytes_per_world(self) -> int:
        """Memory that each world adds [B]."""
        structs: list[tuple[Any, Any]] = [
            (Worlds, self._worlds),
            (Hands, self._hands),
            (reset.Episodes, self._episodes),
        ]
        arrays = [getattr(made, name) for kind, made in structs for name in kind.vars if name not in SHARED]
        own = (self._worlds.stiffness, self._worlds.bulk) if len(self._worlds.stiffness) > len(self.seeds) else ()
        rows = sum(one.capacity * self.count // len(one) for one in own)
        return (rows + sum(one.capacity for one in arrays if isinstance(one, wp.array))) // self.count

    def close(self) -> None:
        """Lets go of the device's worker threads."""
        self.device.close()

    # --- for what works on many worlds besides ---

    def give_own_springs(self) -> int:
        """Room for springs and cells of each world's own, after those of the anatomies; the row of world 0. Call it
        before others record programs with these arrays."""
        worlds, first = self._worlds, len(self.seeds)
        if len(worlds.stiffness) == first:
            for name in ("stiffness", "bulk"):
                shared = getattr(worlds, name).numpy()
                rows = np.zeros((first + self.count, shared.shape[1]), dtype=shared.dtype)
                rows[:first] = shared
                setattr(worlds, name, wp.array(rows, dtype=wp.float16, device=self.device.warp))
            self._record()
        return first

    def write_mask(self, mask: Any, out: wp.array[Any]) -> None:
        """A mask of worlds, one bool for each on the host or one int32 on the device, or all where it is None, into
        `out`, int32."""
        if mask is None:
            out.fill_(1)
        elif isinstance(mask, wp.array):
            if mask.shape != (self.count,) or mask.dtype is not wp.int32:
                raise InputError("the mask is not one int32 for each world.", f"Give shape ({self.count},).")
            wp.copy(out, mask)
        else:
            out.assign(self._row("mask", mask, np.bool_).astype(np.int32))

    @property
    def rows(self) -> Any:
        """The struct `Worlds` of worlds.py, for kernels."""
        return self._worlds

    @property
    def hand_rows(self) -> Any:
        """The struct `Hands` of kit.py, for kernels."""
        return self._hands

    @property
    def kit(self) -> Any:
        """The struct `Kit` of kit.py, for kernels."""
        return self._kit

    # --- recording ---

    def _record(self) -> None:
        device, count = self.device, self.count
        device.load([reset, kernels if self.fused and not device.is_cuda else blocks])
        self._action = device.record(self._record_action, work=None if count > 1 else 0)
        self._tick: Program | None = None if self.fused else device.record(self._record_tick)
        self._reset = device.record(self._record_reset, work=None if count > 1 else 0)
        args = [self._begin, self._episodes, self._worlds, self._hands]
        self._put_on = device.record(lambda stage: stage.launch(reset.put_on_materials, count, args), work=0)

    def _record_action(self, stage: Stage) -> None:
        stage.upload(self._plan)
        if not self.fused:
            stage.launch(blocks.begin_actions, self.count, [self._kit, self._hands])
            return
        shared = [self.tissue.constants, self._samples, self._kit]
        changing = [self._plan.array, self._worlds, self._hands]
        if not stage.device.is_cuda:
            stage.launch(kernels.run_worlds, self.count, [*shared, *changing], block=1)
            return
        inputs = [*shared, THREADS, *changing]
        _launch_blocks(stage, blocks.run_blocks, self.count * THREADS, THREADS, inputs)

    def _record_tick(self, stage: Stage) -> None:
        lattice, samples, worlds, kit = self.tissue.constants, self._samples, self._worlds, self._kit
        count = self.count
        _launch_blocks(stage, blocks.start_ticks, count, blocks.TOOL_THREADS, [kit, worlds, self._hands])
        few = blocks.LISTING_THREADS if stage.device.is_cuda else 1
        _launch_blocks(stage, blocks.look_near, count * few, few, [lattice, samples, few, worlds])
        few = blocks.CONTACT_THREADS if stage.device.is_cuda else 1
        for substep in range(self.tissue.substeps):
            if worlds.cells:
                stage.launch(blocks.press, count * worlds.cells, [lattice, worlds.cells, substep, worlds])
                stage.launch(blocks.gather, count * worlds.cells, [lattice, worlds.cells, worlds])
            stage.launch(blocks.step, count * worlds.steps, [lattice, worlds.steps, substep, worlds])
            _launch_blocks(stage, blocks.touch, count * few, few, [lattice, samples, few, substep, worlds])
        _launch_blocks(
            stage, blocks.end_ticks, count, blocks.TOOL_THREADS, [kit, self._plan.array, worlds, self._hands]
        )

    def _record_reset(self, stage: Stage) -> None:
        threads = THREADS if stage.device.is_cuda else 1
        stage.launch(
            reset.reset_masses, self.count * threads, [self._begin, threads, self._mask, self._worlds], block=1
        )
        args = [self._kit, self._begin, self._mask, self._episodes, self._worlds, self._hands]
        stage.launch(reset.reset_worlds, self.count, args, block=1)


def _launch_blocks(stage: Stage, kernel: Any, count: int, block: int, args: list[Any]) -> None:
    """On cuda in blocks of so many threads."""
    if not stage.device.is_cuda:
        stage.launch(kernel, count, args)
        return
    warp = stage.device.warp
    stage.once(lambda: wp.launch(kernel, dim=count, inputs=[0, *args], block_dim=block, device=warp))


def make(  # noqa: PLR0913
    scenario: str | Scenario,
    *,
    worlds: int,
    device: str | Device | None = None,
    seed: int = 0,
    detail: float = 1.0,
    anatomies: int | None = None,
    stiffness: Range = (1.0, 1.0),
    friction: Range = (1.0, 1.0),
    parameters: Mapping[str, float] | None = None,
    cores: int | None = None,
    fused: bool | None = None,
    tools: Sequence[str] | None = None,
    without: Sequence[str] = (),
) -> Batch:
    """So many worlds of a scenario, ready to step.

    `scenario`, `device`, `detail` and `parameters` are as for `viscera.make`. Each reset of a world draws one of the
    `anatomies` (those of the seeds from `seed` on) and a factor on Young's modulus and on friction from these ranges;
    world w draws by the seed `seed + w`. `fused` chooses one launch per action, or one for each phase of a tick; by
    default what is faster on the device. `tools` names those that the worlds have, all unless told; `without` names
    systems of the scenario that a batch does not compute and is to leave out.
    """
    if not 1 <= worlds <= MOST_WORLDS:
        raise InputError(f"worlds = {worlds} is not possible.", f"Allowed are 1 to {MOST_WORLDS}.")
    if not 0.0 <= friction[0] <= friction[1] < np.inf:
        raise InputError(f"friction = {friction} is not a range.", "Give (least, most), both at least 0.")
    whole = device if isinstance(device, Device) else open_device(device, cores)
    world = make_world(scenario, device=whole, seed=seed, detail=detail, parameters=parameters)
    check_world(world, without)
    tissue, held = world.contents.organs[0].tissue, pushing_tools(world, tools)
    check_stiffness(*stiffness, tissue.young, tissue.params.stiffest)
    most = min(ANATOMIES, worlds) if anatomies is None else anatomies
    if not 1 <= most <= worlds or seed + max(most, worlds) > LARGEST_SEED:
        raise InputError(f"anatomies = {most} is not possible.", f"Allowed are 1 to {worlds}, one for each world.")
    anatomy = Anatomies(world)
    tables = anatomy.rows(seed, most)
    samples = make_samples(tissue, min(float(tool.bars.radii.min()) for tool in held))
    world.close()
    wp.synchronize_device(whole.warp)  # ticks of the single world have a stream of their own
    begin = reset.Begin()
    begin.position, begin.velocity = tissue.state.position[tissue.current], tissue.state.velocity
    begin.live = wp.array(tissue.state.live.host, dtype=wp.float32, device=whole.warp)
    begin.anatomies = len(tables[0])
    begin.softest, begin.stiffest = stiffness
    begin.smoothest, begin.roughest = friction
    parts = {
        "samples": samples,
        "kit": make_kit(world, held, whole),
        "begin": begin,
        "worlds": make_worlds(tissue, samples, worlds, tables, whole),
        "hands": make_hands(worlds, len(held), whole),
        "episodes": make_episodes(worlds, seed, whole),
        "seeds": seed + np.arange(len(tables[0]), dtype=np.int64),
        "anatomies": anatomy,
    }
    names = [tool.instrument.name for tool in held]
    return Batch(world, whole, names, parts, not whole.is_cuda if fused is None else fused)
