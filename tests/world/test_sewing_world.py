"""A world with needle and thread: seen, kept and replayed to the bit; thread stays out of tissue."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

import viscera
from viscera import Contents, Scenario, Setting, ToolInput, World, kit, systems
from viscera.errors import InputError
from viscera.geometry.mesh import TriangleMesh
from viscera.geometry.queries import build_query, signed_distance
from viscera.tissue import thread_kernels
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.params import LatticeParams
from viscera.tissue.sewing import let_sew, need_sewing, thread_count
from viscera.tissue.slits import open_slit

SKIN = Material("skin", 40_000.0, 1_000.0, poisson=0.3, viscous_time=1e-4, toughness=600.0)
SPACING, CELLS = 0.003, (8, 6, 4)
TOP = CELLS[2] * SPACING
NEEDLE, KNOT = range(2)


def build(setting: Setting, needles: int = 1) -> Contents:
    body = viscera.block(CELLS, SPACING)
    params = LatticeParams(
        nodes=body.nodes, spacing=SPACING, origin=body.origin, anchored=body.positions[:, 2] < 0.5 * SPACING,
        material=SKIN, stiffest=SKIN.young, drag=20.0,
    )  # fmt: skip
    organ = viscera.cuttable("skin", body, make_lattice(setting.device, params), texels=64)
    edge = [np.array([[0.0002, y, TOP - 0.006], [0.0002, y, TOP + 0.002]]) for y in (-0.005, 0.005)]
    open_slit(organ.tissue, edge[0], edge[1])
    let_sew(organ.tissue, 0.1)
    camera, bounds = viscera.looking_down([organ], (0.1, -0.9, 0.9))
    tools = kit.hand_out([kit.needle_holder(), kit.knot_tyer(), *[kit.needle_holder()] * (needles - 1)], (0, 0, 0.04))
    parts = [systems.cutting(organ), systems.sewing(organ)]
    return Contents(organs=[organ], tools=tools, systems=parts, camera=camera, bounds=bounds)


SCENARIO = Scenario("sewn", build)


def act(world: World, ticks: int, tool: int, place: tuple[float, float, float], grip: float) -> None:
    for _ in range(ticks):
        world.apply(ToolInput(tool, place, grip=grip, direct=True))
        world.advance()
    world.wait()


def bite(world: World, begin: int, end: int) -> None:
    """A hand that holds the needle over the slit, turns it from tick 20 to 1250, and lets it be drawn through."""
    for tick in range(begin, end):
        grip = 1.0 if 20 <= tick < 1250 else 0.0
        world.apply(ToolInput(NEEDLE, (0.0, 0.0, TOP + 0.0025), grip=grip, direct=True))
        world.advance()
    world.wait()


@pytest.fixture(scope="module")
def worlds() -> Iterator[tuple[World, World, bool]]:
    """One that took a bite, and one with two cores that was loaded in the middle of it; whether they were the same."""
    one, other = (viscera.make(SCENARIO, device="cpu", cores=cores) for cores in (1, 2))
    bite(one, 0, 700)
    other.load_state(one.save_state())
    same = other.state_hash() == one.state_hash()
    for world in (one, other):
        bite(world, 700, 1600)
    yield one, other, same
    for world in (one, other):
        world.close()


def test_a_state_in_the_middle_of_a_bite_goes_on_to_the_bit_on_one_core_and_on_two(
    worlds: tuple[World, World, bool],
) -> None:
    one, other, same = worlds
    assert same
    assert thread_count(one.organs[0].tissue, thread_kernels.COUNT) >= 3
    assert other.state_hash() == one.state_hash()
    assert np.array_equal(one.snapshot().arrays["skin.thread"], other.snapshot().arrays["skin.thread"])


def outside(world: World) -> NDArray[np.float64]:
    """Places along all thread that is out of tissue, five between two points of it [m]."""
    threads = need_sewing(world.organs[0].tissue).threads
    count, first = (thread_count(world.organs[0].tissue, one) for one in (thread_kernels.COUNT, thread_kernels.FIRST))
    point = threads.point.numpy().reshape(-1, thread_kernels.POINTS, 3)
    kind, at, start = threads.kind.numpy(), threads.at.numpy(), threads.start.numpy()
    chains = [] if count > first else [point[thread_kernels.TAIL]]
    for hole in range(count):
        if kind[hole] > int(thread_kernels.INSIDE):
            ends = [at[start[hole]]] if kind[hole] == int(thread_kernels.CLOSING) else []
            chains.append(np.array([*point[hole], *ends]))
    share = np.linspace(0.0, 1.0, 5, endpoint=False)[:, None, None]
    pieces = [((1.0 - share) * chain[:-1] + share * chain[1:]).reshape(-1, 3) for chain in chains]
    return np.concatenate(pieces) + np.asarray(world.organs[0].tissue.params.origin)


def deepest(world: World) -> float:
    """How deep thread that should be outside is in the drawn surface, cut faces included [m]."""
    snapshot = world.snapshot()
    triangles = snapshot.arrays["skin/triangles"][: snapshot.counts["skin/triangles"]]
    vertices = snapshot.arrays["skin"][: snapshot.counts["skin"]].astype(np.float64)
    query = build_query(TriangleMesh(vertices, triangles, "skin"), world.device)
    return float(-signed_distance(query, outside(world)).min())


def test_thread_never_passes_through_tissue(worlds: tuple[World, World, bool]) -> None:
    """A hand that goes to and fro over the tissue, low and fast, then draws a knot; half a cell is what contact at the
    lattice's resolution is to keep (1.5 mm); a tenth of a cell is asked for."""
    world, rng, worst = worlds[0], np.random.default_rng(2), []
    for _ in range(12):
        x, y, z = rng.uniform([-0.02, -0.015, TOP + 0.001], [0.02, 0.015, TOP + 0.02]).tolist()
        act(world, 60, NEEDLE, (x, y, z), 0.0)
        worst.append(deepest(world))
    world.apply(ToolInput(NEEDLE, (0.0, 0.0, 0.04), active=False))
    for _ in range(6):
        act(world, 60, KNOT, (0.0, 0.0, TOP + 0.003), 1.0)
        worst.append(deepest(world))
    act(world, 50, KNOT, (0.0, 0.0, TOP + 0.003), 0.0)
    worst.append(deepest(world))
    assert world.measure_values()["stitches"] == 1.0
    assert max(worst) < 0.1 * SPACING


def test_what_is_drawn_is_thread_and_a_needle(worlds: tuple[World, World, bool]) -> None:
    other = worlds[1]
    shot = other.snapshot()
    thread = shot.arrays["skin.thread"][: shot.counts["skin.thread"]]
    needle = shot.arrays["skin.needle"][: shot.counts["skin.needle"]]
    assert (thread[-1, 3], needle[-1, 3]) == (0.0, 0.0)
    assert np.isfinite(thread).all()
    # Three eighths of a circle, and thread from its end.
    length = np.linalg.norm(np.diff(needle[:, :3], axis=0), axis=1).sum()
    assert length == pytest.approx(2.356 * 0.006, rel=0.02)
    assert np.allclose(thread[-1, :3], needle[-1, :3], atol=1e-6)


def test_two_needles_in_one_tissue_are_refused() -> None:
    with pytest.raises(InputError, match="2 needles"):
        viscera.make(Scenario("two", lambda setting: build(setting, 2)), device="cpu")
