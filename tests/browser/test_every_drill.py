"""Every drill in a real browser, by mouse: started, given up, failed and done; a headless replay scores the same.

Where hands have to go is asked of the worlds themselves; `hands.mjs` says what they do there.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_browser import checked, serving

import viscera
from viscera.scenarios import (
    Setting,
    barium,
    bleeding,
    catalogue,
    hysteroscopy,
    incision,
    liver,
    pattern,
    spurt,
    suture,
)
from viscera.scenarios.artery import HEIGHT, RADIUS
from viscera.scenarios.barium.study import find_lumen
from viscera.scenarios.cautery.drill import line_points
from viscera.scenarios.incision.drill import line_ends
from viscera.scenarios.pattern.drill import RADIUS as RADIUS_OF_CIRCLE
from viscera.scenarios.pattern.surgeon import BITES
from viscera.scenarios.suture.drill import slit_ends
from viscera.session.archive import read_recording
from viscera.session.replay import replay_report

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(3_600)]

SEED = 3
LONGEST = 3_000
"""For the three trials of a scenario, on a slow machine [s]."""
COARSE = ("liver", "cautery", "bleeding", "spurt", "hysteroscopy", "barium", "smoke")
DETAIL: dict[str, float] = dict.fromkeys(COARSE, 0.4)
"""Of scenarios that a browser which draws in software leaves too little time for."""

Places = dict[str, Any]


def on_top(world: viscera.World, place: np.ndarray) -> list[float]:
    """A place of the table, on the organ's surface [m]."""
    x, y = (float(one) for one in place[:2])
    return [x, y, world.organs[0].height(x, y)]


def rows(world: viscera.World, share: float = 0.8, count: int = 9) -> list[list[float]]:
    """Back and forth over the upper side of an organ."""
    low, high = world.organs[0].body.mesh.bounds
    middle, half = 0.5 * (low + high), 0.5 * share * (high - low)
    across = np.linspace(middle[1] - half[1], middle[1] + half[1], count)
    ends = (middle[0] - half[0], middle[0] + half[0])
    way = [(ends[(row + end) % 2], y) for row, y in enumerate(across) for end in (0, 1)]
    return [on_top(world, np.array(place)) for place in way]


def liver_places(world: viscera.World) -> Places:
    tumour = liver._tumour_middle(SEED, world.organs[0].body)
    assert tumour is not None
    return {"target": on_top(world, tumour)}


def cautery_places(world: viscera.World) -> Places:
    return {"line": [on_top(world, place) for place in line_points(world.organs[0].body, SEED)]}


def bleeding_places(world: viscera.World) -> Places:
    vessels = bleeding.open_vessels(world.organs[0].body, SEED)
    return {"vessels": [vessel.point for vessel in vessels], "rows": rows(world)}


def spurt_places(world: viscera.World) -> Places:
    return {"vessels": [spurt.on_a_hill(world.organs[0].body)], "rows": rows(world)}


def hysteroscopy_places(world: viscera.World) -> Places:
    return {"vessels": [vessel.point for vessel in hysteroscopy.open_vessels(world.organs[0].body, SEED)]}


def smoke_places(world: viscera.World) -> Places:
    return {"spot": on_top(world, np.zeros(2))}


def incision_places(world: viscera.World) -> Places:
    positions = world.organs[0].body.positions
    low, high = positions.min(axis=0), positions.max(axis=0)
    ends = line_ends(SEED, low, high) * (1.0, 1.0 + incision.STRETCH)
    return {"line": [[*end, float(high[2])] for end in ends.tolist()]}


def suture_places(world: viscera.World) -> Places:
    x, y = slit_ends(SEED).mean(axis=0).tolist()
    return {"slit": [x * (1.0 + suture.STRETCH), y, float(world.organs[0].body.positions[:, 2].max())]}


def artery_places(world: viscera.World) -> Places:
    return {"top": [0.0, 0.0, HEIGHT + RADIUS]}


def barium_places(world: viscera.World) -> Places:
    """For each polyp, how far across and along the C-arm stands over it [mm], and where in the X-ray it is then, as
    shares of its sides; and what the scenario's own hand sets."""
    arm = world.system("xray").holds.arm
    x, y, z = arm.isocentre
    polyps = []
    for place in find_lumen(Setting(world.device, SEED, None, DETAIL["barium"])).polyps.middle:
        across, along = np.clip(1e3 * (place[:2] - (x, y)), -150.0, 150.0).round().tolist()
        over = replace(arm, isocentre=(x + 1e-3 * across, y + 1e-3 * along, z))
        polyps.append([across, along, (over.project(place[None]) / arm.pixels)[0].tolist()])
    # The hand looks by itself, and lets nothing out before all is coated.
    left_out = ("beam", "primary", "drain")
    script = [(1e-3 * tick, name, value) for tick, name, value in barium.SCRIPT if name not in left_out]
    return {"polyps": polyps, "script": script}


def pattern_places(world: viscera.World) -> Places:
    """Bites around the circle, four times, each time between those of the time before: from which vertex of the gauze
    how far, and which way the scissors look. The vertex is one outside the circle, which the frame holds."""
    top = pattern.HEIGHT + pattern.SIDE / pattern.CELLS
    rest = np.asarray(world.scene().surfaces[0].rest, dtype=np.float64)
    held = np.flatnonzero((rest[:, 2] > top - 1e-4) & (np.linalg.norm(rest[:, :2], axis=1) > RADIUS_OF_CIRCLE))
    step = 2.0 * np.pi / BITES
    bites = []
    for angle in np.concatenate([step * (np.arange(BITES) + off) for off in (0.0, 0.5, 0.25, 0.75)]):
        place = np.array([RADIUS_OF_CIRCLE * np.cos(angle), RADIUS_OF_CIRCLE * np.sin(angle), top])
        near = int(held[np.argmin(np.linalg.norm(rest[held] - place, axis=1))])
        off = (place - rest[near]).tolist()
        bites.append({"near": near, "off": off, "angle": angle + 0.5 * np.pi, "radius": RADIUS_OF_CIRCLE})
    return {"middle": [0.0, 0.0, top], "bites": bites}


PLACES: dict[str, Callable[[viscera.World], Places]] = {
    "liver": liver_places,
    "cautery": cautery_places,
    "bleeding": bleeding_places,
    "spurt": spurt_places,
    "hysteroscopy": hysteroscopy_places,
    "smoke": smoke_places,
    "incision": incision_places,
    "suture": suture_places,
    "artery": artery_places,
    "pattern": pattern_places,
    "barium": barium_places,
}
"""Of all drills but two with files of their own: palpation (test_drills.py) and the operation (test_operation.py)."""


def test_no_drill_is_left_out() -> None:
    drills = {name for name in catalogue() if viscera.make(name, device="cpu", detail=0.25).contents.goals}
    assert drills == {"palpation", "cholecystectomy", *PLACES}


@pytest.mark.parametrize("scenario", PLACES)
def test_a_drill_is_given_up_failed_and_done_by_mouse(scenario: str, tmp_path: Path) -> None:
    detail = DETAIL.get(scenario, 1.0)
    world = viscera.make(scenario, device="cpu", seed=SEED, detail=detail)
    places = json.dumps(PLACES[scenario](world))
    world.close()
    command = ("-m", "viscera", "serve", scenario, "--port", "0", "--seed", str(SEED), "--detail", str(detail))
    with serving(*command, "--out", str(tmp_path / "recordings")) as address:
        checks = ("given_up", "failed", "done")
        found = checked("every_drill.mjs", address, tmp_path, scenario, places, *checks, longest=LONGEST)
    for name, one in found.items():
        assert one["ok"], f"{name}: {one.get('error')}"
        assert one["errors"] == []
    assert found["given_up"]["before"] == 0, "no goal is ticked before the start"
    outcomes = [found[name]["ended"]["outcome"] for name in checks]
    assert outcomes == ["given_up", "failed", "found" if scenario == "liver" else "met"]
    for name, words in zip(checks, ("Given up after", "Failed after", ("Done after", "Found after")), strict=True):
        assert found[name]["title"].startswith(words)
    assert found["failed"]["ended"]["failed"], "it says what failed"
    recording = read_recording(next((tmp_path / "recordings").glob("*.h5")))
    again = replay_report(recording.path)
    assert again.same
    assert [one.outcome for one in again.scores] == outcomes
    assert [one.values() for one in again.scores] == [one.values for one in recording.trials]
