"""Real organs as a user's own: from the scene's camera all of the organ is seen, and so is where there is work to do.

Whether a place is seen, a picture without a browser says: the organ is drawn there, as far away as the place is.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import viscera
from viscera import render
from viscera.imaging.lens import Lens
from viscera.scenarios._organ import lay_down, seen_from_above
from viscera.scenarios.bleeding import open_vessels
from viscera.scenarios.cautery.drill import line_points
from viscera.scenarios.palpation import NODULES, middle

pytestmark = pytest.mark.slow

ORGANS = ("liver", "gallbladder", "colon")
WIDTH, HEIGHT = 640, 360
SEED = 1
NEAR = 0.006
"""The lattice of a coarse world rounds an organ off by about this [m]."""


def organ_file(name: str) -> Path:
    folder = os.environ.get("VISCERA_ANATOMY")
    if not folder:
        pytest.skip("VISCERA_ANATOMY is not set: name a folder with liver.stl, gallbladder.stl and colon.stl")
    return Path(folder) / f"{name}.stl"


def looked_at(scenario: str, organ: str) -> tuple[Any, render.Rendered]:
    world = viscera.make(scenario, device="cpu", mesh=organ_file(organ), seed=SEED, detail=0.25)
    picture = render.picture(world, width=WIDTH, height=HEIGHT)
    return world, picture


def share_seen(world: Any, picture: render.Rendered, points: np.ndarray) -> float:
    """Of places of the world [m]."""
    lens = Lens(world.scene().camera, WIDTH, HEIGHT)
    at = lens.project(points)
    column, row = at[:, 0].astype(int), (HEIGHT - at[:, 1]).astype(int)
    inside = (column >= 0) & (column < WIDTH) & (row >= 0) & (row < HEIGHT)
    depth = -(points - np.asarray(lens.camera.position)) @ lens.axes[2]
    seen = np.zeros(len(points), dtype=np.bool_)
    seen[inside] = np.abs(picture.depth[row[inside], column[inside]] - depth[inside]) < NEAR
    return float(seen.mean())


@pytest.mark.parametrize("organ", ORGANS)
@pytest.mark.parametrize("scenario", ["palpation", "cautery", "bleeding"])
def test_all_of_it_and_the_work_on_it_are_seen_and_within_reach(scenario: str, organ: str) -> None:
    world, picture = looked_at(scenario, organ)
    there = picture.part == 1
    assert 0.05 < there.mean() < 0.8, "neither tiny nor larger than the picture"
    rim = np.concatenate([there[0], there[-1], there[:, 0], there[:, -1]])
    assert not rim.any(), "all of it is in the picture"
    body = world.organs[0].body
    top = seen_from_above(lay_down(organ_file(organ)))
    if scenario == "palpation":
        places = np.array([top.on_surface(middle(SEED, body.positions, one, top)[:2]) for one in NODULES.values()])
        assert share_seen(world, picture, places) == 1.0
    if scenario == "cautery":
        line = np.array([top.on_surface(place) for place in line_points(body, SEED, top)])
        assert share_seen(world, picture, line) > 0.9
    if scenario == "bleeding":
        places = np.array([vessel.point for vessel in open_vessels(body, SEED, top)])
        assert share_seen(world, picture, places) == 1.0
    low, high = (np.array(corner) for corner in world.contents.bounds)
    for tool in world.hands:
        home = np.array(tool.instrument.home)
        assert world.room.clamped(tuple(home.tolist())) == pytest.approx(home.tolist()), "it waits in the theatre"
        assert home[2] > low[2], "above the table"
        assert (home[:2] > low[:2] - 0.1).all()
        assert (home[:2] < high[:2] + 0.1).all()
    world.close()
