"""Tissue meets tissue: organs, cut halves and loose pieces do not pass through each other."""

from __future__ import annotations

import numpy as np
import pytest
from meeting_reference import Reference
from numpy.typing import NDArray

from viscera.device import Device
from viscera.errors import InputError
from viscera.timing import TICK
from viscera.tissue import LatticeParams
from viscera.tissue.cutting import cut_springs, let_cut, remove_edge, set_edge
from viscera.tissue.grasping import Mouth, let_grasp, set_jaws
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.meeting import Meeting, make_meeting
from viscera.tissue.meeting_kernels import CANDIDATES, PARTNERS
from viscera.tissue.params import RestSkipping
from viscera.tissue.springs import DIRECTIONS, NodeIndex

H = 0.0025
"""Side of a cell [m]."""
WIDE = Mouth(length=0.018, width=0.02, gap=0.9e-3, opening=0.9)


def block(
    device: Device, origin: tuple[float, float, float], cells: tuple[int, int, int], *, held: bool = False,
    young: float = 8_000.0, viscous_time: float = 2e-4, drag: float = 10.0,
) -> Tissue:  # fmt: skip
    axes = [np.arange(count + 1, dtype=np.int32) for count in cells]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    material = Material("test", young, 1_000.0, poisson=0.25, viscous_time=viscous_time, toughness=1.0)
    params = LatticeParams(
        nodes=nodes, spacing=H, origin=origin, anchored=(nodes[:, 2] == 0) & held, stiffest=young, material=material,
        drag=drag,
    )  # fmt: skip
    return make_lattice(device, params)


def places(tissue: Tissue) -> NDArray[np.float64]:
    return tissue.rest_positions() + tissue.displacement()


def overlap(lower: Tissue, upper: Tissue) -> float:
    """How deep the upper block's underside is in the lower one's upper side, at most [m]: at each of its masses, below
    the mean height of the four nearest masses of the other."""
    top = places(lower)[lower.params.nodes[:, 2] == lower.params.nodes[:, 2].max()]
    bottom = places(upper)[upper.params.nodes[:, 2] == 0]
    aside = np.hypot(bottom[:, None, 0] - top[None, :, 0], bottom[:, None, 1] - top[None, :, 1])
    near = np.argsort(aside, axis=1)[:, :4]
    weight = 1.0 / (np.take_along_axis(aside, near, axis=1) + 1e-6)
    height = (top[near, 2] * weight).sum(axis=1) / weight.sum(axis=1)
    return float((height - bottom[:, 2]).max())


def hold(tissue: Tissue, start: NDArray[np.float64], end: NDArray[np.float64], *, takes: bool) -> None:
    frames = np.array([[tip, [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]] for tip in (start, end)])
    set_jaws(tissue, 0, 0, WIDE, frames, (0.0, 0.0), grip=50.0, friction=1.0, takes=takes)


@pytest.mark.parametrize("speed", [0.1, 1.0])
def test_two_organs_pressed_together_never_overlap_by_half_a_cell(device: Device, speed: float) -> None:
    """A grasper presses one 6 mm towards the other, which is 3.5 mm away, and holds it there; measured each tick."""
    lower = block(device, (0.0, 0.0, 0.0), (12, 12, 4), held=True)
    upper = block(device, (0.0083, 0.0071, 0.0135), (5, 5, 4), young=6_000.0)
    let_grasp(upper)
    meeting = make_meeting([lower, upper])
    tip = np.array([0.0083 + 2.5 * H, 0.0071 + 2.5 * H, 0.0135 + 2.0 * H])
    went, worst = 0.0, -np.inf
    for tick in range(round(0.006 / speed / TICK) + 40):
        start = tip - [0.0, 0.0, went]
        went = min(went + speed * TICK, 0.006)
        hold(upper, start, tip - [0.0, 0.0, went], takes=tick == 0)
        meeting.step()
        worst = max(worst, overlap(lower, upper))
    assert worst <= 0.5 * H
    assert worst > -0.1 * H
    # The hand feels the other organ.
    assert upper.tool_force(0)[0][2] > 0.05
    assert int(meeting.meet.count.numpy()[2]) == 0


def test_pairs_and_pushes_are_those_of_the_reference(device: Device) -> None:
    """Against float64, pair by pair; two blocks askew in each other, with random speeds."""
    lower = block(device, (0.0, 0.0, 0.0), (4, 4, 2), viscous_time=0.0)
    upper = block(device, (0.004, 0.003, 0.0044), (3, 3, 2), viscous_time=0.0)
    meeting, rng = make_meeting([lower, upper], friction=0.3), np.random.default_rng(5)
    for tissue in (lower, upper):
        shape = (len(tissue.params.nodes), 3)
        tissue.set_motion(rng.normal(size=shape) * 1e-4, rng.normal(size=shape) * 0.1)
    known = Reference(meeting)
    pairs = known.pairs()
    x, v = known.push(pairs, 0.3)
    meeting.find_partners()
    meet = meeting.meet
    count, partner = meet.partners.numpy(), meet.partner.numpy().reshape(len(meet.partners), -1)
    assert {(c, int(d)) for c in range(len(x)) for d in partner[c, : count[c]]} == set(pairs)
    assert len(pairs) > 40
    # In the order of their numbers, so that sums are the same however they were found.
    assert all((np.diff(partner[c, : count[c]]) > 0).all() for c in range(len(x)))
    meeting.push_apart(tissue_buffer=0)
    after_x, after_v, _ = known.places()
    assert np.abs(after_v - known.v).max() > 0.05
    assert np.allclose(after_v, v, atol=1e-5)
    assert np.allclose(after_x, x, atol=1e-8)


def partners_of(meeting: Meeting) -> list[list[int]]:
    count, partner = meeting.meet.partners.numpy(), meeting.meet.partner.numpy().reshape(-1, PARTNERS)
    return [partner[c, : count[c]].tolist() for c in range(meeting.meet.count.numpy()[0])]


def test_kept_candidates_give_the_partners_that_a_search_gives(device: Device) -> None:
    """Two blocks slide over each other, slowly and at once by more than the candidates' margin; they shake, and some
    masses leap."""
    lower = block(device, (0.0, 0.0, 0.0), (6, 6, 2), viscous_time=0.0)
    upper = block(device, (0.004, 0.003, 0.0044), (3, 3, 2), viscous_time=0.0)
    kept, fresh = make_meeting([lower, upper]), make_meeting([lower, upper])
    rng, seen, searches = np.random.default_rng(6), set(), 0
    for step in range(60):
        shift = np.array([(1e-4 if step < 30 else 1e-3) * (step % 30), 2e-5 * step, 1e-4 * np.sin(step)])
        for tissue, way in ((lower, np.zeros(3)), (upper, shift)):
            shape = (len(tissue.params.nodes), 3)
            moved = way + rng.normal(size=shape) * 5e-5
            moved[rng.integers(shape[0], size=3)] += rng.normal(size=(3, 3)) * 1e-3
            tissue.set_motion(moved, np.zeros(shape))
        was = kept.meet.at.numpy().copy()
        kept.find_partners()
        searches += int((kept.meet.at.numpy() != was).any())
        fresh.meet.count.assign(np.array([*fresh.meet.count.numpy()[:3], 1, 0]))
        fresh.find_partners()
        assert partners_of(kept) == partners_of(fresh)
        seen |= {(c, d) for c, those in enumerate(partners_of(kept)) for d in those}
    assert len(seen) > 300
    assert 20 < searches < 45, "candidates of slow steps are kept"


def test_candidates_are_those_that_comparing_all_with_all_gives(device: Device) -> None:
    """A block that is cut into to a third and once more through, and a whole one that lies on it: after a landing each
    mass lists whom it may meet, those that no cut has reached too."""
    lower, upper = block(device, (0.0, 0.0, 0.0), (6, 6, 4)), block(device, (0.002, 0.003, 4.6 * H), (3, 3, 2))
    let_cut(lower)
    meeting = make_meeting([lower, upper])
    for x, deep in ((1.4, 2), (4.4, 6)):
        for tick in range(deep):
            ends = [np.array([[x * H, H * (y - 1), -0.01], [x * H, H * (y - 1), 0.03]]) for y in (tick, tick + 1)]
            set_edge(lower, 0, 0, *(1.3 * end if deep == 6 else end for end in ends), need=0.0)
            meeting.step()
        remove_edge(lower, 0)
    meeting.pieces[0].hang(whole_springs(lower))
    meeting.land()
    meeting.find_partners()
    known, meet = Reference(meeting), meeting.meet
    count, listed = meet.candidates.numpy(), meet.candidate.numpy().reshape(-1, CANDIDATES)
    assert len(set(known.piece.tolist())) == 3
    at, reach, told = meet.at.numpy().astype(np.float64), 2.0 * H + 1.5e-3, 0
    for c in range(len(known.x)):
        far = np.linalg.norm(at[: len(known.x)] - at[c], axis=1)
        assert np.abs(far - reach).min() > 1e-8, "rounding decides nothing here"
        other = known.piece != known.piece[c]
        untied = ~np.isin(known.mass, list(known.ties[c])) & (known.parted | known.parted[c])
        wanted = np.flatnonzero((far <= reach) & (np.arange(len(far)) != c) & (other | untied))
        assert listed[c, : count[c]].tolist() == wanted.tolist()
        told += len(wanted) * int(known.piece[c] == 0 and not known.parted[c])
    assert told > 100


def test_a_heap_with_more_candidates_than_a_list_holds(device: Device) -> None:
    """Five blocks in each other: each mass has its first partners, as the reference finds them."""
    heap = [block(device, (2.3e-3 * k, 2e-4 * k, 4e-4 * k), (3, 3, 3), viscous_time=0.0) for k in range(5)]
    meeting, rng = make_meeting(heap), np.random.default_rng(7)
    for tissue in heap:
        shape = (len(tissue.params.nodes), 3)
        tissue.set_motion(rng.normal(size=shape) * 5e-5, np.zeros(shape))
    meeting.find_partners()
    candidates = meeting.meet.candidates.numpy()[: meeting.meet.count.numpy()[0]]
    assert (candidates > CANDIDATES).sum() > 20
    assert (candidates <= CANDIDATES).sum() > 20
    known: dict[int, list[int]] = {}
    for c, d in sorted(Reference(meeting).pairs()):
        known.setdefault(c, []).append(d)
    assert partners_of(meeting) == [known.get(c, [])[:PARTNERS] for c in range(len(candidates))]


def test_what_one_gets_the_other_loses(device: Device) -> None:
    """Two free blocks without drag or a hand run into each other: momentum stays, energy goes, and they part."""
    one = block(device, (0.0, 0.0, 0.0), (4, 4, 4), drag=0.0)
    other = block(device, (0.003, 0.002, 0.0115), (3, 3, 3), drag=0.0)
    meeting = make_meeting([one, other])
    speed = np.zeros((len(other.params.nodes), 3))
    speed[:, 2] = -0.3
    other.set_motion(np.zeros_like(speed), speed)
    momentum = other.mass @ speed
    energy = 0.5 * float(other.mass @ (speed**2).sum(axis=1))
    for _ in range(60):
        meeting.step()
        assert overlap(one, other) <= 0.5 * H
    now = sum(tissue.mass @ tissue.velocities().astype(np.float64) for tissue in (one, other))
    assert np.allclose(now, momentum, atol=1e-4 * np.abs(momentum).max())
    moving = sum(0.5 * float(t.mass @ (t.velocities().astype(np.float64) ** 2).sum(axis=1)) for t in (one, other))
    assert moving < energy
    apart = (other.mass @ other.velocities() / other.mass.sum() - one.mass @ one.velocities() / one.mass.sum())[2]
    assert apart > -0.02


def whole_springs(tissue: Tissue) -> NDArray[np.bool_]:
    index = NodeIndex(tissue.params.nodes)
    there = [index.find(tissue.params.nodes + np.array(step, dtype=np.int32)) >= 0 for step in DIRECTIONS]
    return np.stack(there) & ~cut_springs(tissue)


def halves(device: Device, *, table: float | None = None) -> tuple[Tissue, Meeting]:
    """A block held below, cut through level in its middle."""
    tissue = block(device, (0.0, 0.0, 0.0), (6, 6, 6), held=True)
    let_cut(tissue)
    let_grasp(tissue)
    meeting = make_meeting([tissue], table=table)
    for tick in range(20):
        ends = [np.array([[-0.004 + 0.0015 * at, -0.01, 2.4 * H], [-0.004 + 0.0015 * at, 0.03, 2.4 * H]])
                for at in (tick, tick + 1)]  # fmt: skip
        set_edge(tissue, 0, 0, *ends, need=0.0)
        meeting.step()
    remove_edge(tissue, 0)
    meeting.pieces[0].hang(whole_springs(tissue))
    meeting.land()
    return tissue, meeting


def crossing(tissue: Tissue) -> float:
    """How far the upper half's underside is in the lower half's upper side, at most, beyond where they were cut [m]."""
    nodes, x = tissue.params.nodes, places(tissue)
    low, high = x[nodes[:, 2] == 2], x[nodes[:, 2] == 3]
    aside = np.hypot(high[:, None, 0] - low[None, :, 0], high[:, None, 1] - low[None, :, 1])
    near = np.argsort(aside, axis=1)[:, :4]
    weight = 1.0 / (np.take_along_axis(aside, near, axis=1) + 1e-6)
    height = (low[near, 2] * weight).sum(axis=1) / weight.sum(axis=1)
    over = np.take_along_axis(aside, near, axis=1)[:, 0] < H
    return float((height + H - high[:, 2])[over].max()) if over.any() else -np.inf


def test_two_halves_rub_and_separate(device: Device) -> None:
    """The upper half is pressed down by a third of a cell, pushed aside by 2.7, and lifted; all at 0.1 m/s."""
    tissue, meeting = halves(device)
    assert crossing(tissue) < 0.3 * H
    ways = [[0.0, 0.0, -1.0]] * 8 + [[1.0, 0.0, 0.0]] * 67 + [[0.0, 0.0, 1.0]] * 60
    tip, forces = np.array([3.0 * H, 3.0 * H, 4.0 * H]), []
    for tick, way in enumerate(ways):
        end = tip + 1e-4 * np.array(way)
        hold(tissue, tip, end, takes=tick == 0)
        tip = end
        meeting.step()
        assert crossing(tissue) <= 0.5 * H
        forces.append(tissue.tool_force(0)[0])
    sliding = np.mean(forces[30:75], axis=0)
    assert sliding[2] > 0.1
    # Coulomb's 0.2 of what presses, less what the rims bend, so that the halves do not lie quite level.
    assert 0.17 * sliding[2] < -sliding[0] < 0.21 * sliding[2]
    x = places(tissue)
    nodes = tissue.params.nodes
    assert x[nodes[:, 2] == 3, 2].min() > x[nodes[:, 2] <= 2, 2].max() + H


@pytest.mark.parametrize("slope", [0.15, 0.4])
def test_on_a_slope_it_lies_below_the_angle_of_friction_and_slides_above(device: Device, slope: float) -> None:
    """Coulomb: with friction μ = 0.2 a block rests where the slope is below 0.2, and else speeds up with
    g (sin − μ cos). A tenth of μ is allowed: it goes over masses, not over a plane."""
    plane = block(device, (0.0, 0.0, 0.0), (16, 6, 2), held=True, young=20_000.0)
    load = block(device, (0.003, 0.0036, 0.00501), (3, 3, 2), drag=0.0, young=20_000.0)
    meeting = make_meeting([plane, load], friction=0.2)
    angle = np.arctan(slope)
    for tissue in (plane, load):
        tissue.set_gravity((9.81 * float(np.sin(angle)), 0.0, -9.81 * float(np.cos(angle))))
    way = []
    for _ in range(150):
        meeting.step()
        way.append(float(load.mass @ load.displacement()[:, 0] / load.mass.sum()))
    speed = (way[-1] - way[-51]) / (50 * TICK)
    earlier = (way[-51] - way[-101]) / (50 * TICK)
    if slope < 0.2:
        # It creeps with 1 mm/s; without friction it would go 120 mm/s by then.
        assert abs(speed) < 0.002
        assert way[-1] < 0.2 * H
    else:
        gain = (speed - earlier) / (50 * TICK)
        assert slope - gain / (9.81 * np.cos(angle)) == pytest.approx(0.2, rel=0.1)


def test_a_loose_piece_falls_and_comes_to_rest_on_the_table(device: Device) -> None:
    tissue = block(device, (0.0, 0.0, 0.006), (3, 3, 3))
    meeting = make_meeting([tissue, block(device, (0.02, 0.0, 0.0), (3, 3, 3), held=True)], table=0.0)
    tissue.set_gravity((0.0, 0.0, -9.81))
    for _ in range(300):
        meeting.step()
        assert places(tissue)[:, 2].min() > -0.5 * H
    assert places(tissue)[:, 2].min() == pytest.approx(0.0, abs=0.1 * H)
    assert np.abs(tissue.velocities()).max() < 0.05
    # It lies where it fell, as wide as it was.
    assert np.abs(places(tissue)[:, :2] - tissue.rest_positions()[:, :2]).max() < 0.5 * H


def test_one_whole_piece_is_the_same_to_the_bit(device: Device) -> None:
    one, other = block(device, (0.0, 0.0, 0.0), (4, 4, 4)), block(device, (0.0, 0.0, 0.0), (4, 4, 4))
    meeting, rng = make_meeting([one]), np.random.default_rng(1)
    start = rng.normal(size=(len(one.params.nodes), 3)) * 1e-4
    for tissue in (one, other):
        tissue.set_motion(start, np.zeros_like(start))
    for _ in range(20):
        meeting.step()
        other.step()
    assert np.array_equal(one.displacement(), other.displacement())


def test_what_cannot_meet_is_refused(cpu: Device) -> None:
    with pytest.raises(InputError, match="no tissues"):
        make_meeting([])
    nodes = block(cpu, (0.0, 0.0, 0.0), (2, 2, 2)).params.nodes
    params = LatticeParams(
        nodes=nodes, spacing=H, origin=(0.0, 0.0, 0.0), anchored=nodes[:, 2] == 0, stiffest=8_000.0,
        material=Material("test", 8_000.0, 1_000.0), rest_skipping=RestSkipping(1e-6, 1e-6),
    )  # fmt: skip
    with pytest.raises(InputError, match="skips rest"):
        make_meeting([make_lattice(cpu, params)])
