"""What the small worlds of `tests/scenarios/shown` look like in a real browser: each thing to show, pixel by pixel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from test_browser import ROOT, checked, passed, picture, scenario_served

pytestmark = pytest.mark.browser

SHOWN = ROOT / "tests" / "scenarios" / "shown"


def shown(name: str, folder: Path) -> dict[str, Any]:
    with scenario_served(str(SHOWN / f"{name}.py"), folder / "recordings") as at:
        found = passed(checked("shown.mjs", at, folder, name), name)
    assert found["errors"] == []
    return found


def colour(field: NDArray[np.float64], place: dict[str, float], radius: float) -> NDArray[np.float64]:
    """Mean within `radius` pixels of a place."""
    rows, columns = np.mgrid[0 : field.shape[0], 0 : field.shape[1]]
    return field[np.hypot(columns - place["x"], rows - place["y"]) <= radius].mean(axis=0)


@pytest.mark.slow
def test_a_cut_opens_where_the_blade_went(tmp_path: Path) -> None:
    found = shown("cut", tmp_path)
    before, after = found["before"], found["after"]
    # Each cut vertex of the line gives a lip and a bottom, and its walls two triangles to each side.
    assert after["triangles"] > before["triangles"] + 60
    assert found["vertices"] > 41 * 31 + 30
    # The wound is 4 mm deep; the cursor points at its far wall now.
    assert after["height"] < before["height"] - 0.001
    was, now = (_violet(picture(tmp_path, f"cut-{when}"), found["middle"]) for when in ("before", "after"))
    assert was > 500, "the line is drawn on the tissue"
    assert now < 0.25 * was, "its two halves have gone apart with the lips"
    change = np.abs(picture(tmp_path, "cut-after") - picture(tmp_path, "cut-before")).max(axis=2)
    assert np.median(change[450:540, 400:850]) <= 3, "tissue away from the cut stays as it is, texture and all"


def _violet(field: NDArray[np.float64], place: dict[str, float]) -> int:
    """Pixels of the drawn line, along it on both sides of a place."""
    row, column = round(place["y"]), round(place["x"])
    red, green, blue = np.moveaxis(field[row - 30 : row + 30, column - 105 : column + 135], 2, 0)
    return int(((blue > 1.5 * green) & (blue > 0.7 * red) & (blue > 40)).sum())


@pytest.mark.slow
def test_smoke_is_grey_and_blood_in_saline_red(tmp_path: Path) -> None:
    found = shown("haze", tmp_path)
    assert all(most > 60 for most in found["filled"])
    field = picture(tmp_path, "haze")
    smoke, blood, tissue = (colour(field, found[what], 6) for what in ("smoke", "blood", "tissue"))
    assert smoke.min() > 60
    assert smoke.max() < 1.35 * smoke.min()
    assert smoke[2] >= smoke[0] - 4, "not warmer than grey"
    # Blood lets red through and next to no green.
    assert blood[0] > 4 * blood[1]
    assert blood[1] / blood[0] < 0.6 * tissue[1] / tissue[0]


@pytest.mark.slow
def test_pins_clips_and_threads_are_where_they_are(tmp_path: Path) -> None:
    found = shown("stitches", tmp_path)
    assert found["pins"] == 4
    assert found["points"] > 100
    field = picture(tmp_path, "stitches")
    left, right, suture, _ = found["places"]
    for head in (left, right):
        red, _, blue = colour(field, head, 2)
        assert blue > 1.5 * red, "heads of pins are blue"
    around = field[round(suture["y"]) - 14 : round(suture["y"]) + 15, round(suture["x"]) - 14 : round(suture["x"]) + 15]
    violet = (around[..., 2] > 1.2 * around[..., 0]) & (around[..., 2] > 1.5 * around[..., 1])
    assert violet.sum() > 20, "the suture is violet"
    steel = (field.min(axis=2) > 90) & (field.max(axis=2) < 1.15 * field.min(axis=2))
    assert steel[380:470, 440:820].sum() > 150, "the wire is steel"


def _within(inner: dict[str, float], width: float, height: float) -> bool:
    return inner["left"] >= 0 and inner["top"] >= 0 and inner["right"] <= width and inner["bottom"] <= height


def _apart(one: dict[str, float], other: dict[str, float]) -> bool:
    across = min(one["right"], other["right"]) - max(one["left"], other["left"])
    along = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
    return across <= 0.5 or along <= 0.5


@pytest.mark.slow
def test_a_second_picture_is_shown_enlarged_and_folded(tmp_path: Path) -> None:
    found = shown("xray", tmp_path)
    beside = found["beside"]
    assert beside["canvas"]["left"] > 600, "in the right half of what the panels leave"
    assert beside["canvas"]["right"] - beside["canvas"]["left"] > 1.2 * 256, "it has half of the room"
    for where in ("beside", "own", "grown", "small", "phone"):
        layout = found[where]
        assert _within(layout["picture"], *layout["window"]), where
        for other in layout["around"]:
            assert _apart(layout["picture"], other), (where, other)
    box = found["own"]["canvas"]
    width, height = box["right"] - box["left"], box["bottom"] - box["top"]
    # One to one on a laptop: what is on the screen are the very texels, upside up.
    texels = np.array(found["texels"], dtype=np.float64).reshape(192, 256)[::-1]
    assert abs(width - 256) <= 2
    assert abs(height - 192) <= 2
    field = picture(tmp_path, "xray")[round(box["top"]) :, round(box["left"]) :][:190, :254]
    assert np.abs(field.mean(axis=2) - texels[:190, :254]).mean() < 4
    assert field.std() > 15
    assert found["grown"]["canvas"]["right"] - found["grown"]["canvas"]["left"] > 1.8 * width
    assert found["folded"]["picture"]["bottom"] - found["folded"]["picture"]["top"] < 50
    phone = found["phone"]["canvas"]
    assert phone["right"] - phone["left"] > 110


@pytest.mark.slow
def test_the_ring_is_where_somebody_looks(tmp_path: Path) -> None:
    found = shown("gaze", tmp_path)
    ring, area, time = found["ring"], found["field"], found["time"]
    x = 0.5 + 0.3 * np.sin(2 * np.pi * time / 4)
    y = 0.5 + 0.25 * np.sin(2 * np.pi * time / 3 + 0.7)
    # The page rounds its free area to whole pixels for the style.
    assert abs(ring["x"] - (area["left"] + x * area["width"])) < 2
    assert abs(ring["y"] - (area["top"] + y * area["height"])) < 2
    assert abs(ring["radius"] - 0.06 * area["height"]) < 1
    assert found["dots"] == 12
    assert found["below"] == "view", "the ring catches no pointer"
    field = picture(tmp_path, "gaze")
    angles = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    rim = [
        field[round(ring["y"] + ring["radius"] * np.sin(a) - 0.5), round(ring["x"] + ring["radius"] * np.cos(a) - 0.5)]
        for a in angles
    ]
    assert np.mean([blue > 150 and blue > 1.3 * red for red, _, blue in rim]) > 0.8
    inside = colour(field, ring, 0.5 * ring["radius"])
    assert inside[2] < 0.6 * np.median([blue for _, _, blue in rim]), "what is looked at is not covered"
    assert found["label"]["right"] > found["label"]["left"] + 20
    assert not _apart(found["label"], {"left": area["left"], "right": area["left"] + area["width"],
                                       "top": area["top"], "bottom": area["top"] + area["height"]})  # fmt: skip
