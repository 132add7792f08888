"""The operation: patients differ and are whole, judging follows the lattice, surgeons get what they deserve."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import numpy as np
import pytest

import viscera
from viscera.blood.wounds.wounds import BURNT
from viscera.geometry import icosphere
from viscera.geometry.tools import FOOT
from viscera.geometry.topology import components
from viscera.inputs import Input
from viscera.scenarios.cholecystectomy import LEVELS, body
from viscera.scenarios.cholecystectomy.body import Field, make_lattice_of
from viscera.scenarios.cholecystectomy.eyes import Eyes
from viscera.scenarios.cholecystectomy.judge import Judge
from viscera.scenarios.cholecystectomy.patient import NECK, draw_patient
from viscera.scenarios.cholecystectomy.steps import clumsiness, cut_at, operation
from viscera.scenarios.cholecystectomy.surgeon import (
    DOWN,
    EACH,
    ENTERS,
    GRASPER,
    HOOK,
    SCISSORS,
    Stroke,
    Surgeon,
)
from viscera.tissue.springs import DIRECTIONS, NodeIndex
from viscera.world.system import Moment
from viscera.world.world import World

SEEDS = range(12)


def field_of(seed: int) -> Field:
    """Without its surface, which takes a second."""
    return make_lattice_of(draw_patient(seed), 0.003, icosphere(0.01, 1))


def linked(nodes: np.ndarray, chosen: np.ndarray) -> int:
    """Parts into which these masses fall by springs among themselves."""
    some = nodes[chosen]
    index = NodeIndex(some)
    pairs = [(np.arange(len(some)), index.find(some + np.array(step, dtype=np.int32))) for step in DIRECTIONS]
    low = np.concatenate([a[b >= 0] for a, b in pairs])
    high = np.concatenate([b[b >= 0] for _, b in pairs]).astype(np.int64)
    return len(np.unique(components(len(some), low, high)))


def test_no_two_patients_are_alike_and_the_same_seed_is_the_same_patient() -> None:
    patients = [draw_patient(seed) for seed in range(40)]
    assert np.array_equal(draw_patient(3).duct, patients[3].duct)
    assert len({one.duct.tobytes() for one in patients}) == 40
    for trait in ("short_duct", "thick_wall", "inflamed"):
        assert 0 < sum(getattr(one, trait) for one in patients) < 40
    assert {len(one.arteries) for one in patients} == {1, 2}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_patient_hangs_together_and_its_lumen_is_closed(seed: int) -> None:
    field = field_of(seed)
    nodes, kind = field.body.nodes, field.material_of
    assert linked(nodes, np.ones(len(nodes), dtype=np.bool_)) == 1
    for masses in field.tubes:
        chosen = np.zeros(len(nodes), dtype=np.bool_)
        chosen[masses] = True
        assert linked(nodes, chosen) == 1
    assert linked(nodes, kind == body.LUMEN) == 1
    # Every mass of the lumen has all 26 neighbours, and none of them is fat, bed or liver.
    lumen = nodes[kind == body.LUMEN]
    index = NodeIndex(nodes)
    for step in DIRECTIONS:
        for sign in (1, -1):
            found = index.find(lumen + np.array(step, dtype=np.int32) * np.int32(sign))
            assert (found >= 0).all()
            assert np.isin(kind[found], (body.LUMEN, body.WALL, body.DUCT, body.ARTERY)).all()


@pytest.mark.parametrize("seed", [seed for seed in range(26) if len(draw_patient(seed).arteries) == 2])
def test_two_arteries_are_two_with_fat_between_them_for_most_of_their_way(seed: int) -> None:
    """Masses of the first six tenths are of one of them alone, and have none of the other's beside them."""
    field = field_of(seed)
    first, second = field.tubes[2:]
    nodes, line = field.body.nodes, draw_patient(seed).arteries[0]
    beside = (np.abs(nodes[first][:, None] - nodes[second][None]).max(axis=2) <= 1).any(axis=1)
    assert body.along(line, field.body.positions[first[beside]])[0].min() > 0.6


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_but_bed_fold_and_tubes_joins_the_gall_bladder_to_what_holds_fast(seed: int) -> None:
    """Without these it is free: the operation can be done."""
    field = field_of(seed)
    kind = field.material_of
    left = ~np.isin(kind, (body.BED, body.FAT, body.PERITONEUM, body.DUCT, body.ARTERY, body.COMMON))
    nodes = field.body.nodes[left]
    index = NodeIndex(nodes)
    pairs = [(np.arange(len(nodes)), index.find(nodes + np.array(step, dtype=np.int32))) for step in DIRECTIONS]
    low, high = np.concatenate([a[b >= 0] for a, b in pairs]), np.concatenate([b[b >= 0] for _, b in pairs])
    roots = components(len(nodes), low, high.astype(np.int64))
    bladder, liver = np.isin(kind[left], (body.WALL, body.LUMEN)), kind[left] == body.LIVER
    assert not np.isin(roots[bladder], roots[liver]).any()


@pytest.fixture(scope="module")
def world() -> World:
    return viscera.make("cholecystectomy", device="cpu", cores=1)


def test_goals_name_measures_and_are_not_met_at_first(world: World) -> None:
    values = world.measure_values()
    for level in LEVELS:
        assert not all(goal.met(values[goal.measure]) for goal in level.goals)
    assert values["open_vessels"] == 0.0
    assert values["freed"] == values["calot_cleared"] == 0.0


def test_the_judge_counts_what_is_cut(world: World) -> None:
    """A plane through the bed parts all of its columns, and another one across duct, artery and fold frees the gall
    bladder."""
    judge, tubes = world.system("judge").holds, world.system("tubes").holds
    tissue = world.organs[0].tissue
    rest = np.asarray(tissue.rest_positions())
    cut = np.zeros((13, len(rest)), dtype=np.bool_)

    def part(height: float, beyond: float) -> None:
        for row, step in enumerate(DIRECTIONS):
            other = rest + tissue.params.spacing * np.array(step)
            middle = 0.5 * (rest[:, 0] + other[:, 0])
            cut[row] |= ((rest[:, 2] < height) != (other[:, 2] < height)) & (middle > beyond)

    seen, judge._cuts.springs = judge.values.copy(), lambda: cut
    try:
        part(0.0075, -0.0130)
        judge.look()
        assert judge.values[3] == 99.0  # duct, artery and fold still hold it
        assert judge._lower_freed == 100.0
        for row, step in enumerate(DIRECTIONS):
            cut[row] |= (rest[:, 0] < -0.011) != (rest[:, 0] + tissue.params.spacing * step[0] < -0.011)
        judge.look()
        assert judge.values[3] == 100.0
        for row in range(13):
            cut[row] = True
        judge.look()
        assert judge.values[0] == 100.0
    finally:
        del judge._cuts.springs
        judge.look()
        judge.values[:] = seen
    assert len(tubes.channels) == 2 + len(draw_patient(0).arteries)


@pytest.fixture
def judge(world: World) -> Iterator[Judge]:
    """That of the world, which has it back as it was."""
    found, tubes = world.system("judge").holds, world.system("tubes").holds
    kept = found.values.copy(), found.frozen.copy(), tubes.clips.copy(), found._lower_freed
    yield found
    found.values[:], found.frozen[:], tubes.clips[:], found._lower_freed = kept
    for channel in tubes.channels:
        channel.cut_at = float("nan")


CALOT, VIEW, SECURED, FREED, TAKEN_OUT, DUCT_BURN = range(6)
"""Places in `Judge.values`."""


@pytest.mark.parametrize(("calot", "lower", "seen"), [(59.0, 99.0, 0.0), (99.0, 59.0, 0.0), (60.0, 60.0, 1.0)])
def test_the_critical_view_needs_fold_and_lower_bed_and_whole_tubes(
    judge: Judge, calot: float, lower: float, seen: float
) -> None:
    judge.values[CALOT], judge._lower_freed = calot, lower
    judge._judge_view()
    assert judge.values[VIEW] == seen
    # A tube that is cut before leaves it as it was, whatever is cleared later.
    judge._tubes.channels[2].cut_at = 0.5
    judge.values[CALOT] = judge._lower_freed = 100.0
    for _ in range(2):
        judge._judge_view()
        assert judge.values[VIEW] == seen
    assert judge.frozen[0]


def test_the_critical_view_is_decided_by_the_first_clip(judge: Judge) -> None:
    judge._tubes.clips[0] = 0.0, 0.4, 1.0, 1.0
    judge._judge_view()
    judge.values[CALOT] = judge._lower_freed = 100.0
    judge._judge_view()
    assert judge.frozen[0]
    assert judge.values[VIEW] == 0.0


def test_a_tube_is_secured_by_a_clip_on_either_side_of_its_cut(judge: Judge) -> None:
    """Of duct and one artery; the common duct does not count."""
    tubes = judge._tubes
    assert [len(tubes.channels), judge.values[SECURED]] == [3, 0.0]
    tubes.clips[0], tubes.clips[1] = (0.0, 0.3, 1.0, 1.0), (0.0, 0.7, 1.0, 1.0)
    judge._judge_tubes()
    assert judge.values[SECURED] == 0.0  # clipped, not cut
    tubes.channels[0].cut_at = 0.8
    judge._judge_tubes()
    assert judge.values[SECURED] == 0.0  # cut beyond both
    tubes.channels[0].cut_at = 0.5
    judge._judge_tubes()
    assert judge.values[SECURED] == 50.0
    tubes.clips[1, 2] = -1.0  # it slipped
    judge._judge_tubes()
    assert judge.values[SECURED] == 0.0


def test_the_worst_burn_of_the_ducts_stays(judge: Judge) -> None:
    burn = judge._burning.burn.numpy()
    before = burn.copy()
    try:
        burn[judge._ducts[3]] = 0.4
        judge.frame(cast(Moment, None))
        assert judge.values[DUCT_BURN] == pytest.approx(40.0)
        burn[:] = before
        judge.frame(cast(Moment, None))
        assert judge.values[DUCT_BURN] == pytest.approx(40.0)
    finally:
        burn[:] = before


def test_a_face_that_is_burnt_oozes_no_more(world: World) -> None:
    """One place oozes on the fourth quad that a cut may open: it is shut once the mean burn there is that of wounds."""
    oozing, wounds = world.system("oozing").holds, world.system("wounds").holds.wounds
    number, needed = oozing._numbers[0], wounds.params.seal_fraction
    oozing.used[0], oozing.quad[0] = 1, 3
    level = np.zeros(len(world.organs[0].fields["burn_level"].array))
    mine = oozing._texel[oozing._start[3] : oozing._start[4]]
    assert len(mine) > 0
    level[mine] = 0.9 * needed
    oozing._cauterise(level)
    assert not wounds.view.sealed.numpy()[number] & BURNT
    level[mine] = 2.0 * needed
    oozing._cauterise(level)
    assert wounds.view.sealed.numpy()[number] & BURNT
    assert oozing.shut[0]


def test_eyes_and_judge_agree_on_what_is_free(world: World) -> None:
    eyes = Eyes(world.organs[0], draw_patient(0), field_of(0))
    assert not eyes.is_free()
    assert not any(eyes.is_cut(number) for number, _ in eyes.tubes())
    assert eyes.left().sum() == (world.system("judge").holds._other >= 0).sum()
    # Rows have no spring in common, and the lower third is part of the bed.
    for rows in ([side.springs for side in eyes.ties()], eyes.bed()):
        assert np.sum(rows, axis=0).max() == 1
    lower, bed = np.any(eyes.bed(up_to=0.003), axis=0), np.any(eyes.bed(), axis=0)
    assert 0 < lower.sum() < bed.sum()
    assert not (lower & ~bed).any()
    # A way through springs at rest goes through their middles.
    path = eyes.path(eyes.bed()[0])
    assert np.ptp(path[:, 0]) > 0.03
    assert path[:, 2] == pytest.approx(np.full(len(path), 0.0075), abs=1e-4)
    # One beside a tube passes half a cell beside its masses, and no spring of the tube itself crosses it.
    for side in eyes.ties():
        way, tube = eyes.way_beside(side, side.springs), field_of(0).tubes[side.tube]
        for x, y, _ in way[1:-1]:
            masses = world.organs[0].body.positions[tube]
            here = masses[np.abs(masses[:, 0] - x) < 1e-4, 1]
            assert side.towards * y == pytest.approx((side.towards * here).max() + 0.0015, abs=1e-6)
        # Beyond a tube the middle of the hook's wire, half a foot higher, is over the tube's cells.
        if side.towards > 0:
            line = dict(eyes.tubes())[side.tube]
            least = np.interp(way[1:-1, 0], line[:, 0], line[:, 2]) + 0.0015 - 0.5 * FOOT
            assert (way[1:-1, 2] > least).all()
    # What crosses the plane of the cuts is all that joins the gall bladder to the common duct, but for the bed.
    across = eyes.across_fold(cut_at(eyes))
    assert eyes.middles(across)[:, 0] == pytest.approx(cut_at(eyes), abs=0.0031)


@pytest.mark.parametrize(("aside", "pressed"), [(0.002, 1.0), (0.004, 0.0)])
def test_a_hook_burns_its_way_in_only_straight_below_it(world: World, aside: float, pressed: float) -> None:
    """Tissue keeps it 4 mm above its place for longer than `ENTERS`, and so far aside."""
    surgeon = Surgeon(iter([Stroke(HOOK, np.array([[-0.02, 0.0, 0.015], [0.0, 0.0, 0.015]]), 1.0, DOWN)]))
    surgeon.script(world, 0)
    assert surgeon.now is not None
    surgeon._stages[:], surgeon._waited = ["go in", "work", "leave"], 2.0 * ENTERS
    tool = world.hands[HOOK]
    before = tool.tip.copy()
    try:
        tool.tip[:] = tool.hand + np.array([aside, 0.0, 0.004])
        assert surgeon._input(world, surgeon.now).grip == pressed
    finally:
        tool.tip[:] = before


def test_the_hand_that_holds_does_not_turn_while_the_other_comes() -> None:
    """It takes the gall bladder in 1.3 s. From then on, until the hook is at the fold, its neck moves by less than a
    third of a cell: a grasper that turned back as the hook came twisted it by 5 mm, and the hook cut beside its way."""
    world = viscera.make("cholecystectomy", device="cpu", cores=1, seed=1)
    surgeon = Surgeon(operation(eyes_of(world), world.hands[SCISSORS].instrument))
    while surgeon.now is None or surgeon.now.tool == GRASPER:
        _play(world, surgeon, EACH)
    assert world.time < 1.5
    neck = np.array([NECK])
    before = eyes_of(world).seen(neck)
    assert np.linalg.norm(before - neck) > 0.001
    _play(world, surgeon, 120)
    assert np.linalg.norm(eyes_of(world).seen(neck) - before) < 0.001


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_a_clumsy_surgeon_gets_a_bad_score_for_the_right_reasons() -> None:
    world = viscera.make("cholecystectomy", device="cpu")
    _play(world, clumsy(world), 6000)
    values = world.measure_values()
    assert values["critical_view"] == 0.0
    assert values["secured"] == 0.0
    assert values["blood_lost"] > 0.1
    assert values["bile_spilt"] > 0.05
    assert values["holes"] >= 1.0


@pytest.mark.slow
@pytest.mark.timeout(6000)
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_good_surgeon_finishes_the_operation(seed: int) -> None:
    """An inflamed bed, a thick wall, two arteries: all goals of the first level."""
    world = viscera.make("cholecystectomy", device="cpu", seed=seed)
    given = list(world.script(0))
    while given and world.tick < 300_000:
        for one in given:
            world.apply(one)
        world.step(8)
        given = list(world.script(world.tick))
    values = world.measure_values()
    assert all(goal.met(values[goal.measure]) for goal in LEVELS[0].goals), values


@pytest.mark.slow
@pytest.mark.timeout(3000)
def test_the_script_is_the_same_to_the_bit_on_one_core_and_on_two() -> None:
    """Six seconds: the grasper holds, the hook is in the fold, cut faces ooze."""
    digests = []
    for cores in (1, 2):
        world = viscera.make("cholecystectomy", device="cpu", cores=cores)
        for tick in range(6_000):
            for one in world.script(tick):
                world.apply(one)
            world.advance()
        world.wait()
        assert world.measure_values()["calot_cleared"] > 10.0
        digests.append(world.state_hash())
        world.close()
    assert digests[0] == digests[1]


def eyes_of(world: World) -> Eyes:
    return Eyes(world.organs[0], draw_patient(world.seed), field_of(world.seed))


def clumsy(world: World) -> Surgeon:
    return Surgeon(clumsiness(eyes_of(world), world.hands[SCISSORS].instrument))


def _play(world: World, surgeon: Surgeon, ticks: int) -> None:
    for _ in range(ticks):
        for one in surgeon.script(world, world.tick):
            world.apply(one)
        world.advance()
    world.wait()


@pytest.mark.slow
def test_all_patients_send_arrays_of_one_size() -> None:
    """A page that starts another patient keeps the memory that it shares with the session."""
    one, other = (viscera.make("cholecystectomy", device="cpu", cores=1, seed=seed) for seed in (0, 2))
    assert {name: spec.shape for name, spec in one.array_specs().items()} == {
        name: spec.shape for name, spec in other.array_specs().items()
    }


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_an_operation_that_is_saved_goes_on_bit_for_bit() -> None:
    """Saved while the hook is in the fold, and again from there."""
    world = viscera.make("cholecystectomy", device="cpu", cores=1)
    surgeon = clumsy(world)
    _play(world, surgeon, 1600)
    saved = world.save_state()
    inputs: dict[int, list[Input]] = {}

    def go_on() -> str:
        for tick in range(1600, 2000):
            inputs.setdefault(tick, surgeon.script(world, tick))
            for one in inputs[tick]:
                world.apply(one)
            world.advance()
        return world.state_hash()

    first = go_on()
    world.load_state(saved)
    assert go_on() == first
