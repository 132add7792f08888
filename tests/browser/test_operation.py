"""The operation in a real browser, by mouse and keys through the page's own handlers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_browser import checked, serving

import viscera
from viscera.scenarios.cholecystectomy import LEVELS, SPACING, body, instruments, steps
from viscera.scenarios.cholecystectomy.eyes import Eyes
from viscera.scenarios.cholecystectomy.patient import COMMON_HEIGHT, LIVER_TOP, draw_patient
from viscera.scenarios.cholecystectomy.steps import BESIDE_CUT, LOWER, place_of
from viscera.scenarios.cholecystectomy.surgeon import TAKES_AT
from viscera.session.archive import read_recording
from viscera.session.replay import replay_report

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(3_600)]

LONGEST = 3_000
"""On a slow machine [s]."""
SEED = 0


def places(seed: int) -> dict[str, Any]:
    """Where a hand goes in the tissue at rest, phase by phase, how far the grasper pulls, and its trocars [m]."""
    world = viscera.make("cholecystectomy", device="cpu", cores=1, seed=seed)
    patient = draw_patient(seed)
    eyes = Eyes(world.organs[0], patient, body.make_field(patient, SPACING))
    tubes = [line for _, line in eyes.tubes()]
    cut_at = place_of(eyes, tubes[0])[0, 0]
    return {
        "skin": world.organs[0].name,
        "trocars": [one.trocar for one in instruments()],
        "hold": TAKES_AT,
        "light": steps.LIGHT,
        "more": steps.MORE,
        "most": steps.MOST,
        "higher": steps.HIGHER,
        "out": steps.OUT,
        "fold": [_beside(eyes, deeper) for deeper in (0.0, steps.DEEPER, 2.0 * steps.DEEPER)],
        "lower": [eyes.path(row).tolist() for row in eyes.bed(up_to=LOWER)],
        "clips": [
            {"at": place_of(eyes, line, side * BESIDE_CUT)[0].tolist(), "towards": side}
            for line in tubes
            for side in (-1, 1)
        ],
        "cuts": [place_of(eyes, line)[0].tolist() for line in tubes],
        "across": _across_fold(eyes, float(cut_at)),
        "common": _across_common(float(patient.common[0, 0])),
        "bed": [eyes.path(row).tolist() for row in eyes.bed()],
        "coagulated": [_along_bed(y) for y in steps.COAGULATED],
        "rinsed": [_along_bed(0.0, 0.004)],
        "sucked": [_along_bed(y) for y in steps.SUCKED],
    }


def _beside(eyes: Eyes, deeper: float) -> list[list[list[float]]]:
    """Ways of a hook through the fold, beside each tube [m]."""
    ways = [eyes.way_beside(side, side.springs, deeper) for side in eyes.ties()]
    return [way.tolist() for way in ways if len(way)]


def _across_fold(eyes: Eyes, x: float) -> list[list[float]]:
    """A row of places across the fold where it is cut, a snip apart [m]."""
    middles = eyes.middles(eyes.across_fold(x))
    y = np.arange(middles[:, 1].min() + steps.SNIP, middles[:, 1].max() + steps.SNIP, 2.0 * steps.SNIP)
    nearest = np.abs(middles[None, :, 1] - y[:, None]).argmin(axis=1)
    return [[x, float(one), float(middles[k, 2])] for one, k in zip(y, nearest, strict=True)]


def _across_common(x: float) -> list[list[list[float]]]:
    """Ways of a hook through the common duct and out again, away from where the cystic duct comes in [m]."""
    steps = np.linspace(x - 0.008, x + 0.008, 9).tolist()
    return [[[one, y, COMMON_HEIGHT] for one in steps] for y in (-0.022, -0.018, 0.018, 0.022)]


def _along_bed(y: float, above: float = 0.0) -> list[list[float]]:
    """From the common duct's side to the fundus [m]."""
    return [[-0.006, y, LIVER_TOP + above], [0.030, y, LIVER_TOP + above]]


def by_mouse(folder: Path, *checks: str) -> dict[str, Any]:
    """What the page had, check by check."""
    command = ("-m", "viscera", "serve", "cholecystectomy", "--port", "0", "--seed", str(SEED), "--detail", "1")
    with serving(*command, "--out", str(folder / "recordings")) as address:
        told = checked("operation.mjs", address, folder, json.dumps(places(SEED)), *checks, longest=LONGEST)
    assert told["errors"] == []
    return told["found"]


def test_a_hook_opens_the_peritoneum_while_the_other_hand_holds(tmp_path: Path) -> None:
    found = by_mouse(tmp_path, "opened")["opened"]
    assert found["open"]["calot_cleared"] > found["hold"]["calot_cleared"] + 4.0
    assert found["open"]["force_of_grasper"] > 0.1


def test_the_operation_is_given_up_failed_and_done_by_mouse(tmp_path: Path) -> None:
    checks = ("given_up", "failed", "done")
    found = by_mouse(tmp_path, *checks)
    outcomes = [found[name]["ended"]["outcome"] for name in checks]
    assert outcomes == ["given_up", "failed", "met"]
    for name, words in zip(checks, ("Given up after", "Failed after", "Done after"), strict=True):
        assert found[name]["title"].startswith(words)
    assert found["failed"]["ended"]["failed"] == ["common_hurt"]
    values = found["done"]["ended"]["result"]
    assert all(goal.met(values[goal.measure]) for goal in LEVELS[0].goals), values
    recording = read_recording(next((tmp_path / "recordings").glob("*.h5")))
    again = replay_report(recording.path)
    assert again.same
    assert [one.outcome for one in again.scores] == outcomes
    assert [one.values() for one in again.scores] == [one.values for one in recording.trials]
