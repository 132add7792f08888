"""Tissue gives back less than hands put in, in every scenario that has tissue, with every tool that pushes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray

import viscera
from viscera.device import Device
from viscera.inputs import SetParameter, ToolInput
from viscera.instruments import Pushes
from viscera.view import ToolState
from viscera.world import World

DEPTH, ASIDE, ABOVE = 0.004, 0.004, 0.003
"""[m]"""
SPEED = 0.03
"""Of the hand [m/s]."""
LEAST = 1e-6
"""Work of a tool that touches something [J]."""


def _hand(tool: int, place: NDArray[np.float64], *, active: bool = True) -> ToolInput:
    x, y, z = place.tolist()
    return ToolInput(tool, (x, y, z), direct=True, active=active)


def _work(before: ToolState, now: ToolState) -> float:
    """Of the hand in a tick [J]: an instrument in its trocar turns as its tip goes."""
    way = np.array(now.position) - np.array(before.position)
    x, y, z, w = before.orientation
    a, b, c, d = now.orientation
    turn = 2.0 * np.array([w * a - x * d + y * c - z * b, w * b - y * d + z * a - x * c, w * c - z * d + x * b - y * a])
    turn *= np.sign(w * d + x * a + y * b + z * c)
    return -float(np.array(now.force) @ way + np.array(now.torque) @ turn)


def stroke(world: World, tool: int) -> tuple[float, float, float]:
    """Presses, slides and lifts: the work that was put in, what was given back [J], and the force that stays [N]."""
    organ = world.organs[0]
    pushes = world.hands[tool].instrument.effect(Pushes)
    assert pushes is not None
    rest = organ.body.mesh.vertices
    middle = np.linalg.norm((rest - rest.mean(axis=0))[:, :2], axis=1) < 0.03
    x, y, height = rest[middle][np.argmax(rest[middle][:, 2])].tolist()  # nothing beside it is higher
    top = height + pushes.radius - pushes.offset
    corners = np.array(
        [(x, y, top + 5 * ABOVE), (x, y, top - DEPTH), (x + ASIDE, y, top - DEPTH), (x, y, top + 5 * ABOVE)]
    )
    world.apply(_hand(tool, corners[0]))
    world.step(300)
    put, back = 0.0, 0.0
    for start, end in itertools.pairwise(corners):
        ticks = round(float(np.linalg.norm(end - start)) / SPEED * 1e3)
        for tick in range(1, ticks + 1):
            before = world.tools[tool]
            world.apply(_hand(tool, start + tick / ticks * (end - start)))
            world.step()
            done = _work(before, world.tools[tool])
            put, back = put + max(done, 0.0), back + max(-done, 0.0)
    world.step(50)
    stays = float(np.linalg.norm(world.tools[tool].force))
    world.apply(_hand(tool, corners[-1], active=False))
    world.step(100)
    return put, back, stays


def strokes(name: str, device: Device) -> dict[str, tuple[float, float, float]]:
    """Of every tool that pushes, by name."""
    world = _make(name, device)
    pushing = [tool for tool in world.hands if tool.instrument.effect(Pushes) is not None]
    found = {tool.instrument.name: stroke(world, tool.number) for tool in pushing}
    world.close()
    for tool in pushing:
        if found[tool.instrument.name][0] < LEAST:  # it went into what a blade before it had opened
            world = _make(name, device)
            found[tool.instrument.name] = stroke(world, tool.number)
            world.close()
    return found


def _make(name: str, device: Device) -> World:
    world = viscera.make(name, device=device, seed=1)
    if name == "liver":
        world.apply(SetParameter("pulse", 0.0))  # a beating heart does work
        world.step(500)
    return world


def check(found: dict[str, tuple[float, float, float]]) -> None:
    assert found
    for tool, (put, back, stays) in found.items():
        assert put > LEAST, tool
        assert back <= put * (1.0 + 1e-9), tool
        assert stays == 0.0, tool


@pytest.mark.slow
def test_tissue_gives_back_less_than_was_put_in(cpu: Device) -> None:
    check(strokes("palpation", cpu))


EVERY = (
    "liver", "cautery", "bleeding", "smoke", "hysteroscopy", "spurt", "artery", "incision", "pattern", "suture",
    "cholecystectomy",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", EVERY)
def test_no_scenario_gives_back_more_than_was_put_in(name: str, cpu: Device) -> None:
    check(strokes(name, cpu))
