"""Cautery, with hands made of numbers: what the surgeon does decides what is burnt, and the record brings it back."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import viscera
from viscera.device import Device
from viscera.errors import InputError
from viscera.inputs import Reset, SetParameter, SetTable, ToolInput
from viscera.scenarios.cautery import SPEED
from viscera.scenarios.cautery.drill import LINE_HALF_WIDTH, line_points, marked
from viscera.skin import make_skin
from viscera.world import World
from viscera.world.systems.burns import STAGES


@pytest.fixture(scope="module")
def made() -> Iterator[World]:
    world = viscera.make("cautery", device="cpu")
    yield world
    world.close()


@pytest.fixture
def world(made: World) -> World:
    made.apply(Reset(0))
    made.apply(SetParameter("power", 30.0))
    made.step(16 - made.tick % 16)
    return made


def touch(world: World, tool: int, x: float, y: float, grip: float) -> ToolInput:
    z = world.organs[0].height(x, y)
    return ToolInput(tool, (x, y, z - 0.0003), grip=grip)


def drag(world: World, tool: int, speed: float, seconds: float, grip: float = 1.0) -> dict[str, float]:
    """Along x over the middle at this speed [m/s]; what the measures say then."""
    for tick in range(0, round(1000 * seconds), 16):
        world.apply(touch(world, tool, -0.012 + speed * 0.001 * tick, 0.0, grip))
        world.step(16)
    return world.measure_values()


def test_without_the_pedal_nothing_burns(world: World) -> None:
    found = drag(world, 0, 0.01, 0.2, grip=0.0)
    assert found["coagulated"] == found["charred"] == found["power"] == 0.0


@pytest.mark.slow
def test_held_still_it_chars_and_moved_on_it_only_whitens(world: World) -> None:
    moved = drag(world, 0, 0.012, 1.2)
    assert moved["coagulated"] > 15.0
    assert moved["charred"] == 0.0
    world.apply(Reset(0))
    still = drag(world, 0, 0.0, 2.6)
    assert still["charred"] > 0.5
    pixels = world.snapshot().arrays["pad.burn"]
    assert pixels[..., 2].max() > 128  # black in the picture too
    assert (pixels[..., 1] >= pixels[..., 2]).all()  # and nowhere black that is not white


def test_forceps_burn_what_lies_between_their_jaws(world: World) -> None:
    open_jaws = drag(world, 1, 0.0, 0.1, grip=0.0)
    assert open_jaws["power"] == 0.0
    closed = drag(world, 1, 0.0, 0.6)
    assert closed["power"] > 1.0
    assert closed["coagulated"] > 0.5


@pytest.mark.slow
def test_its_own_hand_follows_the_line(world: World) -> None:
    done = []
    for tick in range(1600):
        for given in world.script(tick):
            world.apply(given)
        world.step()
        if tick % 800 == 799:
            done.append(world.measure_values()["line_done"])
    found = world.measure_values()
    points = line_points(world.organ("pad").body, world.seed)
    length = np.linalg.norm(np.diff(points, axis=0), axis=1).sum()
    # From one time to another: the hook has to come, and tissue to get hot.
    assert done[1] - done[0] == pytest.approx(100.0 * 0.8 * SPEED / length, rel=0.2)
    assert found["charred"] == found["astray"] == 0.0


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_line_is_drawn_on_the_upper_side_alone(made: World, seed: int, cpu: Device) -> None:
    """Some charts of the atlas are mirrored; the ink covers what a line of this length and width does. On a slope it
    is as wide seen from above, so wider on it: up to a tenth."""
    body = made.organ("pad").body
    skin = make_skin(body.mesh, width=256, device=cpu)
    points = line_points(body, seed)
    line, near = marked(skin, points)
    assert not (line & ~near).any()
    height = skin.position.numpy()[:, 2]
    assert height[near].min() > 0.5 * (body.mesh.bounds[0][2] + body.mesh.bounds[1][2])
    length = np.linalg.norm(np.diff(points, axis=0), axis=1).sum()
    area = skin.rest_area.numpy()[line].sum()
    assert area == pytest.approx(2.0 * LINE_HALF_WIDTH * length, rel=0.1)


@pytest.mark.slow
def test_more_power_burns_more(world: World) -> None:
    """As long as tissue is not dry at once: beyond 30 W at 20 mm/s it takes no more."""
    usual = drag(world, 0, 0.02, 0.4)
    world.apply(Reset(0))
    world.apply(SetParameter("power", 10.0))
    assert drag(world, 0, 0.02, 0.4)["coagulated"] < 0.9 * usual["coagulated"]


def test_burnt_tissue_is_stiffer(world: World) -> None:
    before = np.array(world.organs[0].tissue.constants.stiffness.numpy(), dtype=np.float64)
    drag(world, 0, 0.02, 0.4)
    after = np.array(world.organs[0].tissue.constants.stiffness.numpy(), dtype=np.float64)
    assert (after >= before).all()
    assert after.sum() > before.sum()


def test_a_burn_comes_back_bit_for_bit(world: World) -> None:
    drag(world, 0, 0.01, 0.3)
    state, once = world.save_state(), world.measure_values()
    drag(world, 0, 0.02, 0.1)
    after = world.state_hash()
    world.load_state(state)
    assert world.measure_values() == once
    drag(world, 0, 0.02, 0.1)
    assert world.state_hash() == after


def test_the_stages_can_be_edited_but_must_rise(world: World) -> None:
    rows = [list(row) for row in STAGES.rows]
    rows[1][1] = 255.0
    world.apply(SetTable("burn_stages", tuple(map(tuple, rows))))
    world.step()
    assert world.snapshot().tables["burn_stages"][1][1] == 255.0
    rows[2][0] = rows[1][0]
    with pytest.raises(InputError, match="does not rise"):
        world.apply(SetTable("burn_stages", tuple(map(tuple, rows))))
    with pytest.raises(InputError, match=r"first row must start at level 0, not 0\.7"):
        world.apply(SetTable("burn_stages", ((0.7, *STAGES.rows[0][1:]), *STAGES.rows[1:])))
    with pytest.raises(InputError, match="cover = 2"):
        world.apply(SetTable("burn_stages", tuple((*row[:2], 2.0, *row[3:]) for row in STAGES.rows)))
    with pytest.raises(InputError, match="3 rows"):
        world.apply(SetTable("burn_stages", STAGES.rows[:3]))
    with pytest.raises(InputError, match="burn_stages"):
        world.apply(SetTable("burn_stage", STAGES.rows))


def test_a_choice_takes_whole_numbers_only(world: World) -> None:
    world.apply(SetParameter("by_distance", 1.0))
    with pytest.raises(InputError, match="none of its choices") as refused:
        world.apply(SetParameter("by_distance", 0.5))
    assert refused.value.hint == "Allowed are 0 (Contact), 1 (Distance)."
