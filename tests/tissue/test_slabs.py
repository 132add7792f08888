"""A lattice in slabs is the lattice in one piece, bit for bit; what crosses the cuts is counted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest
import warp as wp
from numpy.typing import NDArray

from viscera import tissue
from viscera.device import Device, Stage, open_device
from viscera.errors import InputError, StateError
from viscera.geometry.distance import distance_field
from viscera.geometry.primitives import box as box_mesh
from viscera.tissue import kernels, slab_cuts
from viscera.tissue.burning import make_burning
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.layout import TILE
from viscera.tissue.materials import Material
from viscera.tissue.params import Creep, LatticeParams, Remedies, RestSkipping
from viscera.tissue.slabs import Slabs, make_slabs

SPACING = 0.004
TICKS = 100


def organ(*, ragged: bool = True) -> NDArray[np.int32]:
    """A lump with holes, a thin waist and a tip of one mass, in no order: nothing about it is regular."""
    rng = np.random.default_rng(7)
    nodes = np.stack(np.meshgrid(*(np.arange(n) for n in (37, 11, 13)), indexing="ij"), axis=-1).reshape(-1, 3)
    if ragged:
        x, y, z = nodes.T
        kept = ((x - 18) / 19.0) ** 2 + ((y - 5) / 6.0) ** 2 + ((z - 6) / 8.0) ** 2 < 1.0
        nodes = nodes[kept & (rng.random(len(nodes)) < 0.95) & ~((z == 6) & (x < 12))]
        nodes = np.concatenate([nodes, [[18, 5, 14], [18, 5, 15]]])
    return (nodes[rng.permutation(len(nodes))] - [40, 3, 5]).astype(np.int32)


def params_of(nodes: NDArray[np.int32], **more: Any) -> LatticeParams:
    options: dict[str, Any] = {
        "spacing": SPACING,
        "origin": (0.3, -0.2, 0.1),
        "anchored": nodes[:, 2] == nodes[:, 2].min(),
        "material": Material("test", 3_000.0, 1_060.0),
        "stiffest": 3_000.0,
        "poisson": 0.25,
        "viscous_time": 0.0,
    }
    return LatticeParams(nodes=nodes, **(options | more))


def shaken(nodes: NDArray[np.int32], anchored: NDArray[np.bool_]) -> NDArray[np.float64]:
    return np.where(anchored[:, None], 0.0, np.random.default_rng(3).normal(0.0, 2e-4, nodes.shape))


def poke(body: Tissue, tick: int, at: NDArray[np.float64]) -> None:
    """A ball slides along the surface and into it at `at`, and a capsule lies across all layers beside it."""
    speed = np.array([1e-5, 2e-5, 0.0])
    start = np.tile(at + tick * speed, (2, 1))
    body.set_tool(0, start=start, end=start + speed, radius=0.007, friction=0.3)
    high = np.array([at - np.array([0.02, 0.0, 0.03]), at - np.array([0.02, 0.0, -0.03])])
    body.set_tool(1, start=high, end=high, radius=0.004, friction=0.1)


def assert_same(cut: Tissue, whole: Tissue) -> None:
    np.testing.assert_array_equal(cut.displacement(), whole.displacement())
    np.testing.assert_array_equal(cut.velocities(), whole.velocities())
    for tool in (0, 1):
        assert cut.tool_force(tool) == whole.tool_force(tool)


def slabs_of(cut: Tissue) -> Slabs:
    assert cut.slabs is not None
    return cut.slabs


def at_cut(cut: Tissue) -> NDArray[np.float64]:
    """The middle of the lattice's near side (low y), half way between the two layers of the first cut."""
    z = cut.params.nodes[slabs_of(cut).cuts[1].masses, 2].min()
    layer = cut.rest_positions()[cut.params.nodes[:, 2] == z]
    return np.array([layer[:, 0].mean(), layer[:, 1].min(), layer[0, 2] - 0.5 * SPACING])


@pytest.mark.parametrize("native", [True, False], ids=["native", "plain"])
@pytest.mark.parametrize("count", [2, 3])
def test_slabs_on_one_device_equal_one_lattice(device: Device, count: int, native: bool) -> None:
    nodes = organ()
    params = params_of(nodes, drag=5.0, viscous_time=1e-4, longest_viscous_time=2e-4)
    whole, cut = make_lattice(device, params, native=native), make_slabs([device] * count, params, native=native)
    u = shaken(nodes, params.anchored)
    at = at_cut(cut)
    felt = np.zeros(3)
    for body in (whole, cut):
        body.set_motion(u, np.zeros_like(u))
    for tick in range(TICKS):
        for body in (whole, cut):
            poke(body, tick, at)
            if tick == 40:
                body.set_gravity((0.0, 0.0, -9.81))
                body.set_young(2_000.0)
                body.set_viscous_time(2e-4)
            body.step()
        felt = np.maximum(felt, np.abs(cut.tool_force(0)[0]))
    assert_same(cut, whole)
    assert felt.max() > 1e-3
    # The tool is felt on both sides of the cut, or the sum over slabs is not tested.
    touched = [np.abs(part.state.force.host).max() > 0 for part in slabs_of(cut).parts]
    assert sum(touched) >= 2


@pytest.mark.slow
def test_volume_torsion_creep_and_materials_cross_the_cuts(device: Device) -> None:
    nodes = organ()
    rng = np.random.default_rng(5)
    params = params_of(
        nodes,
        poisson=0.4,
        creep=Creep(0.5, 0.05),
        remedies=Remedies(surface_stiffness=2.0, shape=20.0, torsion=0.05),
        further=(Material("hard", 6_000.0, 1_200.0),),
        material_of=rng.integers(0, 2, len(nodes)).astype(np.uint8),
        relative_young=rng.uniform(0.5, 1.5, len(nodes)),
    )
    whole, cut = make_lattice(device, params), make_slabs([device] * 3, params)
    u = shaken(nodes, params.anchored)
    for body in (whole, cut):
        body.set_motion(u, np.zeros_like(u))
        for tick in range(TICKS):
            poke(body, tick, at_cut(cut))
            body.step()
    assert_same(cut, whole)


def test_viscous_times_that_differ_cross_the_cuts(device: Device) -> None:
    """There halos need velocities too: a slab that lacked them would damp its border layers as if the others stood."""
    nodes = organ()
    rng = np.random.default_rng(6)
    params = params_of(
        nodes,
        poisson=None,
        viscous_time=None,
        longest_viscous_time=4e-4,
        material=Material("thin", 3_000.0, 1_060.0, poisson=0.35, viscous_time=2e-4),
        further=(Material("thick", 2_000.0, 1_060.0, poisson=0.4, viscous_time=1e-3),),
        material_of=rng.integers(0, 2, len(nodes)).astype(np.uint8),
    )
    whole, cut = make_lattice(device, params), make_slabs([device] * 3, params)
    u, v = shaken(nodes, params.anchored), 50.0 * shaken(nodes, params.anchored)
    for body in (whole, cut):
        body.set_motion(u, v)
        for tick in range(40):
            if tick == 20:
                body.set_viscous_time(4e-4)
            poke(body, tick, at_cut(cut))
            body.step()
    assert_same(cut, whole)


def test_slabs_are_asked_for_with_a_field_and_serve_as_any_tissue(device: Device) -> None:
    """`LatticeParams(slabs=…)` is all: the same arrays, saved from one and loaded into the other, in either direction,
    at a tick that is no frame's; and what a world draws from is up to date at each frame."""
    nodes = organ()
    plain = params_of(nodes, drag=5.0, creep=Creep(0.5, 0.05), viscous_time=1e-4)
    sliced = replace(plain, slabs=3)
    whole, cut = make_lattice(device, plain), make_lattice(device, sliced)
    assert len(slabs_of(cut).parts) == 3
    at = at_cut(cut)
    for tick in range(37):
        for body in (whole, cut):
            poke(body, tick, at)
            body.step()
        if cut.ticks % 16 == 0 and not device.is_cuda:
            for one in ("position", "velocity"):
                drawn = (getattr(body.state, one) for body in (whole, cut))
                mine, theirs = (buffers[whole.current] if one == "position" else buffers for buffers in drawn)
                np.testing.assert_array_equal(mine.numpy(), theirs.numpy())
    assert_same(cut, whole)
    kept = [{name: array.numpy().copy() for name, array in body.arrays().items()} for body in (whole, cut)]
    assert set(kept[0]) == set(kept[1])
    if not device.is_cuda:  # there a lattice in one piece orders its places by bricks
        for name in kept[0]:
            np.testing.assert_array_equal(kept[0][name], kept[1][name])
        others = make_lattice(device, plain), make_lattice(device, sliced)
        others[0].load(kept[1], 37)
        others[1].load(kept[0], 37)
        for body in (whole, cut, *others):
            for tick in range(37, 70):
                poke(body, tick, at)
                body.step()
        for body in (cut, *others):
            assert_same(body, whole)


def test_driven_anchors_move_in_halos_too(device: Device) -> None:
    """A wall of anchors through all layers: at a cut its masses are halo for the neighbour, and must already be where
    the substep takes them."""
    nodes = organ(ragged=False)
    wall = nodes[:, 0] == nodes[:, 0].min()
    direction = np.tile([1e-3, 0.0, 5e-4], (len(nodes), 1))
    params = params_of(nodes, anchored=wall, driven=wall, drive_direction=direction)
    whole, cut = make_lattice(device, params), make_slabs([device] * 2, params)
    for body in (whole, cut):
        for tick in range(30):
            body.set_drive(np.sin(0.2 * tick), np.sin(0.2 * (tick + 1)))
            body.step()
    assert np.abs(whole.displacement()).max() > 1e-4
    assert_same(cut, whole)


def test_an_instrument_with_a_distance_field_is_felt_by_all_slabs(device: Device) -> None:
    nodes = organ(ragged=False)
    params = params_of(nodes)
    whole, cut = make_lattice(device, params), make_slabs([device] * 2, params)
    shape = distance_field(box_mesh((0.03, 0.03, 0.03)), 0.003, device=device)
    at = at_cut(cut)
    whole.set_field(0, shape)
    cut.set_field(0, shape)
    pose = np.array([*at, 0.0, 0.0, 0.0, 1.0])
    for body in (whole, cut):
        for _ in range(20):
            body.set_field_tool(0, pose, pose, 0.2)
            body.step()
    assert np.abs(whole.tool_force(0)[0]).max() > 1e-3
    assert_same(cut, whole)


def test_slabs_on_several_devices_equal_one_lattice() -> None:
    """Two devices of the same kind stand in for two machines' worth of devices: programs and copies are apart."""
    nodes = organ()
    params = params_of(nodes)
    apart = [open_device("cpu", cores=1) for _ in range(3)]
    whole, cut = make_lattice(apart[0], params), make_slabs(apart, params)
    u = shaken(nodes, params.anchored)
    for body in (whole, cut):
        body.set_motion(u, np.zeros_like(u))
        for tick in range(20):
            poke(body, tick, at_cut(cut))
            body.step()
    assert_same(cut, whole)


@pytest.mark.cuda
def test_cpu_and_cuda_share_a_lattice() -> None:
    """Between devices of two kinds the last bits differ; a wrong halo would be seen at once."""
    nodes = organ()
    params = params_of(nodes)
    cpu, cuda = open_device("cpu"), open_device("cuda:0")
    whole, cut = make_lattice(cpu, params), make_slabs([cpu, cuda, cpu], params)
    u = shaken(nodes, params.anchored)
    for body in (whole, cut):
        body.set_motion(u, np.zeros_like(u))
        for _ in range(TICKS):
            body.step()
    error = np.linalg.norm(cut.displacement() - whole.displacement()) / np.linalg.norm(whole.displacement())
    assert error < 1e-4


@pytest.mark.slow
def test_many_cores_do_not_change_it() -> None:
    nodes = np.stack(np.meshgrid(*(np.arange(n) for n in (40, 30, 40)), indexing="ij"), axis=-1).reshape(-1, 3)
    params = params_of(nodes.astype(np.int32))
    u = shaken(params.nodes, params.anchored)
    results = []
    for cores in (1, 3):
        device = open_device("cpu", cores=cores)
        cut = make_slabs([device, device], params)
        cut.set_motion(u, np.zeros_like(u))
        for tick in range(10):
            poke(cut, tick, at_cut(cut))
            cut.step()
        results.append((cut.displacement(), cut.tool_force(0)))
        device.close()
    np.testing.assert_array_equal(results[0][0], results[1][0])
    assert results[0][1] == results[1][1]


def test_halo_bytes_are_what_crosses(device: Device) -> None:
    """Each cut carries one layer each way: three float32 per place, with an empty tile at both ends of a row."""
    nodes = organ(ragged=False)
    cut = make_slabs([device] * 3, params_of(nodes))
    layer = sum(1 for node in nodes if node[2] == nodes[:, 2].min())
    least = 2 * 2 * 3 * 4 * layer
    assert least <= slabs_of(cut).halo_bytes() <= least * (37 + 6 * TILE) / 37
    assert slabs_of(make_slabs([device], params_of(nodes))).halo_bytes() == 0


def test_slabs_share_the_work_evenly(device: Device) -> None:
    cut = make_slabs([device] * 3, params_of(organ(ragged=False)))
    counts = [len(one.masses) for one in slabs_of(cut).cuts]
    assert sum(counts) == len(cut.params.nodes)
    assert max(counts) <= 1.3 * min(counts)  # 13 layers in three: 4, 4 and 5


def test_as_many_slabs_as_layers(device: Device) -> None:
    nodes = organ()
    params = params_of(nodes)
    layers = len(np.unique(nodes[:, 2]))
    whole, cut = make_lattice(device, params), make_slabs([device] * layers, params)
    u = shaken(nodes, params.anchored)
    for body in (whole, cut):
        body.set_motion(u, np.zeros_like(u))
        for _ in range(10):
            body.step()
    assert_same(cut, whole)


def test_every_array_of_a_lattice_is_cut() -> None:
    """A field that kernels.Lattice gains and slabs do not know would be silently empty."""
    fields = set(cast(Any, kernels.Lattice).vars)
    assert fields == {*slab_cuts.PER_PLACE, *slab_cuts.PER_TILE, *slab_cuts.SAME, *slab_cuts.OWN}


def test_impossible_slabs_are_refused(device: Device) -> None:
    nodes = organ()
    layers = len(np.unique(nodes[:, 2]))
    with pytest.raises(InputError, match="layers") as refused:
        make_slabs([device] * (layers + 1), params_of(nodes))
    assert refused.value.hint
    with pytest.raises(InputError, match="slabs"):
        make_slabs([], params_of(nodes))
    rest = RestSkipping(1e-9, 1e-9)
    with pytest.raises(InputError, match="rest skipping"):
        make_slabs([device], params_of(nodes, rest_skipping=rest))
    for wrong, word in (({"slabs": 0}, "slabs = 0"), ({"slabs": 2, "rest_skipping": rest}, "slabs do not skip rest")):
        with pytest.raises(InputError, match=word) as refused:
            make_lattice(device, params_of(nodes, **wrong))
        assert refused.value.hint
    cut = make_lattice(device, params_of(nodes, slabs=2))
    with pytest.raises(InputError, match="do not burn"):
        make_burning(cut)
    with pytest.raises(InputError, match="programs of its own"):
        tissue.step(Stage(device, 0, 1, None), cut)


def test_a_broken_slab_stops_with_its_stage_and_tick(device: Device) -> None:
    nodes = organ()
    cut = make_slabs([device] * 2, params_of(nodes))
    u = np.zeros(nodes.shape)
    cut.step()
    u[5, 1] = np.nan
    cut.set_motion(u, np.zeros_like(u))
    with pytest.raises(StateError) as stopped:
        cut.step()
    assert (stopped.value.stage, stopped.value.tick) == ("tissue", 2)


def test_stepping_allocates_nothing(device: Device) -> None:
    cut = make_slabs([device] * 2, params_of(organ()))
    for _ in range(4):
        cut.step()
    before = wp.get_mempool_used_mem_current(device.warp) if device.is_cuda else 0
    programs = len(slabs_of(cut)._programs)
    for _ in range(20):
        cut.step()
    assert len(slabs_of(cut)._programs) == programs
    if device.is_cuda:
        assert wp.get_mempool_used_mem_current(device.warp) == before
