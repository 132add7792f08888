"""The lattice's loops in C beside their plain twins."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from viscera.device import Device, Stage
from viscera.native import Trial, Twin, register
from viscera.native.twins import Results
from viscera.tissue import (
    blade_cut_kernels,
    blade_drag_kernels,
    blade_near_kernels,
    hung_kernels,
    kernels,
    meeting_kernels,
    native,
    native_blades,
    native_meeting,
    partner_kernels,
    volume,
)
from viscera.tissue.cutting import cut_springs, let_cut, need_cutting, set_edge
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.meeting import make_meeting
from viscera.tissue.params import Creep, LatticeParams, Remedies, RestSkipping
from viscera.tissue.springs import partners
from viscera.tissue.stepping import record_extra, record_tick

SPACING = 0.004
"""[m]"""
_YOUNG = 2_000.0
"""[Pa]"""

_CASES: dict[str, dict[str, Any]] = {
    "springs": {},
    "viscous time": {"viscous_time": 1e-4, "longest_viscous_time": 1e-4},
    "shape springs": {"remedies": Remedies(shape=40.0)},
    "torsion springs": {"remedies": Remedies(torsion=0.05)},
    "volume force": {"poisson": 0.45},
    "creep": {"creep": Creep(0.5, 1.0)},
    "rest skipping": {"rest_skipping": RestSkipping(1e-6, 1e-6)},
}


def _lattice(device: Device, feature: str, native_loops: bool, size: int) -> Tissue:
    """A lump with a bite taken out of it, held below, its stiffness uneven, in motion."""
    side = max(5, round(size ** (1.0 / 3.0)))
    axes = [np.arange(side, dtype=np.int32)] * 3
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    nodes = nodes[((nodes - side) ** 2).sum(axis=1) > (0.4 * side) ** 2]
    rng = np.random.default_rng(11)
    # Springs alone unless a case says more: so the kernel without features is walked too.
    options: dict[str, Any] = {"poisson": 0.25, "viscous_time": 0.0} | _CASES[feature]
    params = LatticeParams(
        nodes=nodes, spacing=SPACING, origin=(0.0, 0.0, 0.0), anchored=nodes[:, 2] == 0,
        material=Material("lump", _YOUNG, 1_060.0), stiffest=_YOUNG,
        relative_young=rng.uniform(0.5, 1.0, len(nodes)), drag=5.0, **options,
    )  # fmt: skip
    tissue = make_lattice(device, params, native=native_loops)
    tissue.set_gravity((0.0, 0.0, -9.81))
    free = (~params.anchored)[:, None]
    tissue.set_motion(
        0.05 * SPACING * rng.normal(size=nodes.shape) * free, 0.05 * rng.normal(size=nodes.shape) * free
    )  # fmt: skip
    if feature == "creep":
        tissue.constants.creep.assign(rng.uniform(0.0, 0.05, tissue.constants.creep.size).astype(np.float32))
    return tissue


def _step(device: Device, feature: str, native_loops: bool, size: int) -> Trial:
    tissue = _lattice(device, feature, native_loops, size)
    state = tissue.state
    after = state.position[(tissue.current + tissue.substeps) % 2]

    def results() -> Results:
        return {"position": after.numpy(), "velocity": state.velocity.numpy()}

    masses = len(tissue.params.nodes)
    return Trial(lambda stage: record_tick(stage, tissue), results, masses, masses * tissue.substeps)


def _volume(device: Device, feature: str, native_loops: bool, size: int) -> Trial:
    tissue = _lattice(device, feature, native_loops, size)
    here = tissue.state.position[tissue.current]
    tissue.state.live.array.assign(tissue.state.live.host.copy())

    def results() -> Results:
        return {"push": tissue.state.push.numpy(), "extra": tissue.constants.extra.numpy()}

    masses = len(tissue.params.nodes)
    return Trial(lambda stage: record_extra(stage, tissue, here), results, masses, masses)


def _hanging(device: Device, feature: str, native_loops: bool, size: int) -> Trial:
    """Points on eight masses, of which some count nothing, or on one each; some masses are anchors."""
    rng, corners, slots = np.random.default_rng(5), 8 if feature == "points of a surface" else 1, size + 7
    weights = rng.normal(size=(size, corners)) * (rng.random((size, corners)) > 0.2)

    def array(values: Any, dtype: Any) -> Any:
        return wp.array(values, dtype=dtype, device=device.warp)

    hung: Any = hung_kernels.Hung()
    hung.corners, hung.slots, hung.tau, hung.part, hung.stray = corners, slots, 2e-4, 0.3, 50.0
    hung.places = array(rng.integers(0, slots, size * corners), wp.int32)
    hung.weights = array(weights.ravel(), wp.float32)
    hung.start = array(rng.normal(size=(size, 3)), wp.vec3)
    hung.position = array(0.01 * rng.normal(size=3 * slots), wp.float32)
    hung.velocity = array(rng.normal(size=3 * slots), wp.float32)
    hung.share = array(rng.integers(0, 2**33, slots), wp.int64)
    hung.inverse_mass = array(rng.random(slots) * (rng.random(slots) > 0.3) * 1e4, wp.float32)
    hung.keep = array(rng.random(slots), wp.float32)
    place, yields = (wp.zeros(size, dtype=kind, device=device.warp) for kind in (wp.vec3, wp.vec4))
    moving = wp.zeros((size, 6), dtype=wp.float32, device=device.warp)

    def results() -> Results:
        return {"place": place.numpy(), "moving": moving.numpy(), "yields": yields.numpy()}

    def step(stage: Stage) -> None:
        hung_kernels.record_hanging(stage, native_loops, hung, place, moving, yields)

    return Trial(step, results, size)


def _block(device: Device, origin: tuple[float, float, float], size: int, *, held: bool, poisson: float) -> Tissue:
    """About so many masses that can be cut, at rest."""
    side = max(4, round(size ** (1.0 / 3.0)))
    axes = [np.arange(side, dtype=np.int32)] * 3
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    material = Material("block", 20_000.0, 1_000.0, poisson=poisson, viscous_time=2e-4, toughness=40.0)
    params = LatticeParams(
        nodes=nodes, spacing=SPACING, origin=origin, anchored=(nodes[:, 2] == 0) & held, material=material,
        stiffest=material.young, drag=5.0,
    )  # fmt: skip
    tissue = make_lattice(device, params)
    let_cut(tissue)
    return tissue


def _draw(tissue: Tissue, edge: int, tick: int, height: float) -> None:
    """An edge goes at 0.4 m/s, askew, from before a block on into it."""
    side = (int(tissue.params.nodes.max()) + 1) * SPACING
    start = np.array([0.37 * SPACING - 0.0021 + 0.0004 * tick, -0.3 * SPACING, height])
    ends = np.array([start, start + np.array([0.3 * SPACING, 1.1 * side, 0.6 * SPACING])])
    origin = np.asarray(tissue.params.origin)
    set_edge(tissue, edge, edge, origin + ends, origin + ends + np.array([0.0004, 0.0, 0.0001]))


def _blades(device: Device, feature: str, native_loops: bool, size: int) -> Trial:
    """In the middle of a cut: tissue is dragged along, springs are cut, points seek their tissue."""
    tissue = _block(device, (0.1, 0.2, 0.3), size, held=True, poisson=0.4)
    cutting, edges = need_cutting(tissue), 2 if feature == "two edges" else 1
    if not native_loops:
        cutting.scan = None
    for tick in range(24):
        for edge in range(edges):
            _draw(tissue, edge, tick, (1.4 + 0.7 * edge) * SPACING)
        tissue.step()

    def results() -> Results:
        moving = {"velocity": tissue.state.velocity, "force": tissue.state.force.array, "bulk": tissue.bulk}
        return {name: array.numpy() for name, array in (cutting.arrays() | moving).items()}

    masses = len(tissue.params.nodes)
    return Trial(lambda stage: record_tick(stage, tissue), results, masses)


def _meeting(device: Device, feature: str, native_loops: bool, size: int) -> Trial:
    """A block that is cut through, or one that another one has been put into, in motion."""
    blocks = [_block(device, (0.0, 0.0, 0.0), size, held=True, poisson=0.25)]
    top = int(blocks[0].params.nodes.max()) * SPACING
    if feature == "organs":
        blocks.append(_block(device, (0.0031, 0.0023, top - 0.0006), size, held=False, poisson=0.25))
    meeting, rng = make_meeting(blocks, table=0.0), np.random.default_rng(3)
    springs = partners(blocks[0].params.nodes) >= 0
    meeting.in_c = native_loops
    for tick in range(40):
        if feature != "organs":
            _draw(blocks[0], 0, tick, 1.4 * SPACING)
        meeting.step()
        if tick % 10 == 5:
            meeting.pieces[0].hang(springs & ~cut_springs(blocks[0]))
            meeting.land()
    for block in blocks:
        shape = (len(block.params.nodes), 3)
        free = ~block.params.anchored[:, None]
        block.set_motion(0.1 * SPACING * rng.normal(size=shape) * free, 0.1 * rng.normal(size=shape) * free)
    meet = meeting.meet

    def results() -> Results:
        found = {"x": meet.x, "v": meet.v, "normal": meet.normal, "partners": meet.partners, "total": meet.total}
        found |= {"candidates": meet.candidates, "pushed": meet.pushed, "velocity": blocks[-1].state.velocity}
        return {name: array.numpy() for name, array in found.items()}

    def step(stage: Stage) -> None:
        stage.once(meeting.find_partners)
        stage.once(lambda: meeting.push_apart(0))

    return Trial(step, results, sum(len(block.params.nodes) for block in blocks))


register(Twin(
    "tissue.blades",
    (blade_near_kernels.keep_places_serial, blade_cut_kernels.cut_serial, blade_drag_kernels.drag_edges),
    {"cpu": (native_blades.keep_places_in_c, native_blades.cut_in_c, native_blades.drag_in_c)},
    ("an edge", "two edges"), 0.0, _blades, small=700, large=4_000,  # to the bit
))  # fmt: skip
register(Twin(
    "tissue.meeting",
    (
        partner_kernels.list_candidates, partner_kernels.find_normals, partner_kernels.find_partners,
        meeting_kernels.push_pairs,
    ),
    {"cpu": (
        native_meeting.list_candidates_in_c, native_meeting.find_normals_in_c, native_meeting.find_partners_in_c,
        native_meeting.push_pairs_in_c,
    )},
    ("halves of a cut", "organs"), 0.0, _meeting, small=500, large=4_000,  # to the bit
))  # fmt: skip
register(Twin(
    "tissue.hanging", (hung_kernels.hang_plainly,), dict.fromkeys(("cpu", "cuda"), (hung_kernels.hang_in_c,)),
    ("points of a surface", "masses"),
    1e-6,  # products may be fused into sums
    _hanging, small=300, large=20_000,
))  # fmt: skip
register(Twin(
    "tissue.step", (kernels.lattice_step,),
    {
        "cpu": (native.lattice_step_cpu, native.lattice_features_cpu),
        "cuda": (native.lattice_pair_cuda, native.lattice_features_cuda),
    },
    ("springs", "viscous time", "shape springs", "torsion springs", "volume force", "creep"),
    5e-5,  # a tick of several substeps; on cuda reciprocals and roots are good to two units in the last place
    _step, small=400, large=20_000, native_only=("rest skipping",),
))  # fmt: skip
register(Twin(
    "tissue.volume", (volume.cell_pressure, volume.gather_pressure),
    dict.fromkeys(("cpu", "cuda"), (volume.cell_pressure_native, volume.gather_pressure_native)), ("volume force",),
    1e-4,  # V/h³ − 1 is a small difference of large numbers
    _volume, small=400, large=20_000,
))  # fmt: skip
