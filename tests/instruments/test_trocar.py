"""An instrument through a trocar, and the walls of the theatre: statics about the pivot, and that no hand gets past."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import viscera
from viscera.device import Device
from viscera.errors import InputError
from viscera.inputs import ToolInput, Vector3
from viscera.instruments import Tool, felt_at_handle, kit, room_around, tip_for
from viscera.instruments.room import MARGIN
from viscera.instruments.tool import FARTHEST
from viscera.instruments.trocar import SHALLOWEST, deepest, keep_depth, shaft_of, through_trocar
from viscera.scenarios import Scenario, Setting
from viscera.timing import TICK
from viscera.view import Camera
from viscera.world import Contents, World

TROCAR = (0.05, -0.02, 0.18)
LENGTH = 0.36


def matrix(quaternion: Any) -> NDArray[np.float64]:
    x, y, z, w = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def shortest_turn(to: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of +z to a unit vector, by Rodrigues' formula."""
    axis = np.cross([0.0, 0.0, 1.0], to)
    k = np.cross(np.eye(3), axis)
    return np.eye(3) + k + k @ k / (1.0 + to[2])


def spin_matrix(angle: float) -> NDArray[np.float64]:
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def spins(orientation: Any) -> NDArray[np.float64]:
    """What is left of a turn when the shortest turn of +z to where it takes +z is undone."""
    turn = matrix(orientation)
    return shortest_turn(turn[:, 2]).T @ turn


def random_poses(count: int) -> list[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    rng = np.random.default_rng(3)
    found = []
    for _ in range(count):
        orientation = rng.normal(size=4)
        found.append((orientation / np.linalg.norm(orientation), rng.uniform(-0.06, 0.06, 3)))
    return found


def test_the_shaft_runs_to_the_trocar_and_the_spin_is_the_hands() -> None:
    for orientation, tip in random_poses(50):
        wanted = spins(orientation)
        turned = orientation.copy()
        through_trocar(turned, tip, TROCAR)
        line = (np.array(TROCAR) - tip) / np.linalg.norm(np.array(TROCAR) - tip)
        # float64: products of a few numbers of order one.
        assert matrix(turned)[:, 2] == pytest.approx(line, abs=1e-12)
        assert spins(turned) == pytest.approx(wanted, abs=1e-9)
        again = turned.copy()
        through_trocar(again, tip, TROCAR)
        assert again == pytest.approx(turned, abs=1e-12)


def test_a_hand_that_only_spins_turns_the_instrument_about_its_shaft() -> None:
    tip = np.array([0.01, 0.02, 0.03])
    turns = []
    for angle in (0.0, 0.7):
        orientation = np.array([0.0, 0.0, math.sin(0.5 * angle), math.cos(0.5 * angle)])
        through_trocar(orientation, tip, TROCAR)
        turns.append(matrix(orientation))
    assert turns[0].T @ turns[1] == pytest.approx(spin_matrix(0.7), abs=1e-12)


@pytest.mark.parametrize(
    ("orientation", "trocar"),
    [((1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.2)), ((0.0, 0.0, 0.0, 1.0), (0.0, 0.0, -0.2)), ((0.6, 0.8, 0.0, 0.0), TROCAR)],
)
def test_upside_down_is_still_a_turn(orientation: Any, trocar: Vector3) -> None:
    turned = np.array(orientation)
    through_trocar(turned, np.zeros(3), trocar)
    assert np.linalg.norm(turned) == pytest.approx(1.0)
    assert matrix(turned)[:, 2] == pytest.approx(np.array(trocar) / np.linalg.norm(trocar), abs=1e-12)


def test_moments_about_the_trocar_are_in_balance_and_power_is_kept() -> None:
    """The tissue pushes the instrument with F and T at the tip; the hand holds it with minus what it feels; the wall
    pushes at the trocar, without a moment about it, and not along the shaft."""
    rng = np.random.default_rng(5)
    pivot = np.array(TROCAR)
    for _ in range(50):
        tip = rng.uniform(-0.06, 0.06, 3)
        force, torque = rng.normal(size=3), 0.01 * rng.normal(size=3)
        felt, twist = map(np.array, felt_at_handle(tuple(force), tuple(torque), tip, TROCAR, LENGTH))
        shaft = (pivot - tip) / np.linalg.norm(pivot - tip)
        handle = tip + LENGTH * shaft
        moment = np.cross(tip - pivot, force) + torque - np.cross(handle - pivot, felt) - twist
        assert np.abs(moment).max() < 1e-14
        wall = felt - force
        assert abs(wall @ shaft) < 1e-14
        assert np.abs(np.cross(twist, shaft)).max() < 1e-16
        # The tip slides, swings and spins a little; the handle goes with it.
        slide, swing = 0.1 * rng.normal(), np.cross(shaft, rng.normal(size=3))
        spin = rng.normal()
        omega = swing + spin * shaft
        tip_moves, handle_moves = (slide * shaft + np.cross(omega, end - pivot) for end in (tip, handle))
        at_tip = force @ tip_moves + torque @ omega
        at_handle = felt @ handle_moves + twist @ omega
        assert at_handle == pytest.approx(at_tip, abs=1e-14)


def test_a_push_across_is_felt_the_other_way_by_the_lever() -> None:
    tip = np.array([0.0, 0.0, 0.0])
    trocar = (0.0, 0.0, 0.24)
    felt, twist = felt_at_handle((0.6, 0.0, 0.3), (0.0, 0.0, 0.002), tip, trocar, LENGTH)
    assert felt == pytest.approx((-0.6 * 0.24 / 0.12, 0.0, 0.3))
    assert twist == pytest.approx((0.0, 0.0, 0.002))


def test_what_acts_comes_to_the_place_that_it_is_aimed_at() -> None:
    for trocar in (None, TROCAR):
        hook = kit.hook() if trocar is None else kit.hook().through(trocar)
        for orientation, place in random_poses(20):
            x, y, z, w = orientation.tolist()
            tip = np.array(tip_for(tuple(place.tolist()), hook, (x, y, z, w)))
            turn = orientation.copy()
            if trocar is not None:
                through_trocar(turn, tip, trocar)
            assert tip + matrix(turn) @ hook.acts_at == pytest.approx(place, abs=1e-9)


@pytest.mark.parametrize("point", [(0.05, -0.02, 0.17), TROCAR, (0.05, -0.02, -0.5), (0.4, 0.3, 0.0), (0.0, 0.0, 0.0)])
def test_a_tip_keeps_its_depth_along_the_shaft(point: Vector3) -> None:
    tip = np.array(point)
    line = shaft_of(tip, TROCAR) if point != TROCAR else (0.0, 0.0, 1.0)
    keep_depth(tip, TROCAR, LENGTH)
    depth = math.dist(tip.tolist(), TROCAR)
    wanted = min(max(math.dist(point, TROCAR), SHALLOWEST), deepest(LENGTH))
    assert depth == pytest.approx(wanted, abs=1e-12)
    assert shaft_of(tip, TROCAR) == pytest.approx(line, abs=1e-9)


def test_a_tool_stops_at_the_walls_wherever_its_hand_goes() -> None:
    room = room_around(((-0.05, -0.05, 0.0), (0.05, 0.05, 0.03)), [(0.0, 0.0, 0.07)])
    assert room.high == pytest.approx((0.05 + MARGIN, 0.05 + MARGIN, 0.07 + MARGIN))
    rng = np.random.default_rng(1)
    for trocar in (None, TROCAR):
        tool = kit.hand_out([kit.hook()], (0.0, 0.0, 0.07), trocar=trocar)[0]
        tool.room = room
        for _ in range(40):
            x, y, z = rng.uniform(-1.5, 1.5, 3).tolist()
            tool.take(ToolInput(0, (x, y, z), direct=True))
            for _ in range(20):
                tool.follow(TICK)
                assert room.distance(tuple(tool.tip.tolist())) < 1e-12
                if trocar is not None:
                    assert SHALLOWEST - 1e-9 <= math.dist(tool.tip.tolist(), trocar) <= deepest(LENGTH) + 1e-9
                    assert tool.shaft == pytest.approx(shaft_of(tool.tip, trocar), abs=1e-12)


def world(cpu: Device, trocar: Vector3 | None = TROCAR) -> World:
    def build(setting: Setting) -> Contents:
        tools: list[Tool] = kit.hand_out([kit.probe(0.004)], (0.0, 0.0, 0.06), trocar=trocar)
        camera = Camera((0.0, -0.2, 0.2), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 40.0)
        return Contents(tools=tools, camera=camera, bounds=((-0.05, -0.05, 0.0), (0.05, 0.05, 0.03)))

    return viscera.make(Scenario("pivot", build), device=cpu)


def test_a_world_turns_its_tools_about_their_trocars_and_brings_them_back_bit_for_bit(cpu: Device) -> None:
    one = world(cpu)
    one.apply(ToolInput(0, (0.02, 0.01, 0.02), (0.0, 0.0, 0.6, 0.8), active=True))
    one.step(50)
    saved = one.save_state()
    one.step(100)
    state = one.tools[0]
    assert matrix(state.orientation)[:, 2] == pytest.approx(shaft_of(np.array(state.position), TROCAR), abs=1e-12)
    other = world(cpu)
    other.load_state(saved)
    other.step(100)
    assert other.state_hash() == one.state_hash()
    assert other.tools == one.tools
    free = world(cpu, trocar=None)
    free.apply(ToolInput(0, (0.02, 0.01, 0.02), (0.0, 0.0, 0.6, 0.8), active=True))
    free.step(150)
    assert free.tools[0].orientation == (0.0, 0.0, 0.6, 0.8)
    assert free.tools[0].position == pytest.approx(state.position)


def test_a_pointer_is_brought_back_into_the_theatre_and_python_is_refused(cpu: Device) -> None:
    one = world(cpu)
    astray = ToolInput(0, (FARTHEST + 3.0, 0.0, 0.0))
    with pytest.raises(InputError, match=r"outside the theatre.*Stay within \(-0.15, -0.15, -0.1\) to \(0.15"):
        one.apply(astray)
    one.apply(one.within(astray))
    one.step(400)
    assert one.tools[0].position == pytest.approx((0.15, 0.0, 0.0), abs=1e-6)


def test_a_trocar_that_the_home_cannot_be_reached_through_is_refused(cpu: Device) -> None:
    with pytest.raises(InputError, match=r"probe: from its trocar .* to its home .* it is 0\.5\d\d m.*allowed are"):
        world(cpu, trocar=(0.0, 0.0, 0.6))
