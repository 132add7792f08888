"""A recording as a film: as many pictures as it has seconds, the right ones, with words that say what is measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import viscera
from viscera import render
from viscera.errors import InputError
from viscera.headless import record_headless
from viscera.render.renderer import Rendered
from viscera.session.archive import read_recording
from viscera.session.replay import feed, make_world
from viscera.video import Film, film, picture_ticks
from viscera.video.captions import INK, LOST, MET, Captions, clock, lines_of
from viscera.view import Camera, DrillState, Frame, Goal, Level, Measure, Scene, ToolState

SMALL = Film(320, 180, 20.0)
SECONDS = 0.4
CAMERA = Camera((0.0, 0.0, 0.2), (0.0, 0.0, 0.0), (0.0, 1.0, 0.0), 40.0)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world = viscera.make("palpation", device="cpu", seed=2, cores=1)
    _, path = record_headless(world, SECONDS, world.script, tmp_path_factory.mktemp("recordings"), {}, None)
    world.close()
    return path


def pictures_of(path: Path) -> list[Any]:
    av = pytest.importorskip("av")
    with av.open(str(path)) as file:
        return [picture.to_ndarray(format="rgb24").astype(int) for picture in file.decode(video=0)]


@pytest.mark.slow
def test_a_film_has_the_pictures_that_a_replay_sees(recording: Path, tmp_path: Path) -> None:
    pytest.importorskip("av")
    made = film(recording, tmp_path / "run.mp4", SMALL)
    pictures = pictures_of(tmp_path / "run.mp4")
    assert made.pictures == len(pictures) == 9, "one at the start, and twenty a second"
    assert [path.name for path in tmp_path.iterdir()] == ["run.mp4"], "nothing is left beside it"
    world = make_world(read_recording(recording))
    feed(world, read_recording(recording), until=400)
    truth: Rendered = render.picture(world, width=SMALL.width, height=SMALL.height)
    world.close()
    free = np.zeros(truth.part.shape, dtype=np.bool_)
    free[:80] = True  # no words there
    # Compression at this quality changes a colour by about 3 of 255 in the mean; another moment by more.
    error = np.abs(pictures[-1] - truth.colour.astype(int))
    assert error[free].mean() < 4.0
    moved = free & (truth.part == 2)
    assert moved.sum() > 20, "the probe is seen"
    assert error[moved].mean() < 0.3 * np.abs(pictures[0] - truth.colour.astype(int))[moved].mean()


def test_a_part_of_it_begins_and_ends_where_it_is_told() -> None:
    assert picture_ticks(Film(rate=30.0), 100) == [0, 33, 67, 100]
    assert picture_ticks(Film(rate=10.0, begin=1.0, end=1.25), 5_000) == [1_000, 1_100, 1_200]
    with pytest.raises(InputError, match=r"ends at 0\.10 s"):
        picture_ticks(Film(begin=2.0), 100)


@pytest.mark.parametrize(
    ("change", "words"),
    [({"width": 641}, "641 × 720"), ({"rate": 0.0}, "0 pictures"), ({"begin": 2.0, "end": 1.0}, "is empty")],
)
def test_films_that_cannot_be_are_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Film(**change)


def test_a_name_that_is_no_film_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ends in .webm or .mp4"):
        film(tmp_path / "none.h5", tmp_path / "run.avi")


def told(phase: Any, outcome: Any = "", failed: tuple[str, ...] = (), lost: float = 1.0) -> list[Any]:
    measures = (Measure("lost", "Blood lost", "mL", ""), Measure("clips", "Clips", "", "", digits=0))
    goals = (Goal("lost", most=5.0),)
    scene = Scene(
        "test", "Bleeding", "", "", 0, ((0, 0, 0), (1, 1, 1)), CAMERA, measures=measures,
        levels=(Level("Easy", goals),),
    )  # fmt: skip
    tool = ToolState(0, active=True, force=(0.0, 0.3, 0.4))
    drill = DrillState(phase, outcome, 0, 61.04, failed)
    return lines_of(
        scene,
        Frame(tick=0, time=75.26, tools=[tool], parameters={}, measures={"lost": lost, "clips": 2.0}, drill=drill),
    )


def test_words_say_time_measures_goals_and_force() -> None:
    assert clock(75.26) == "1:15.3"
    assert told("waiting") == [
        ("Bleeding  1:15.3", INK),
        ("Blood lost  1.0 mL", INK),
        ("Clips  2", INK),
        ("Force  0.50 N", INK),
    ]
    running = told("running")
    assert running[1:3] == [("Easy, since 1:01.0", INK), ("Blood lost  1.0 mL", MET)]
    failed = told("ended", "failed", ("lost",), 6.0)
    assert failed[1:3] == [("Failed after 1:01.0", LOST), ("Blood lost  6.0 mL", LOST)]


def test_words_are_put_into_the_lower_left_corner_and_nowhere_else() -> None:
    pytest.importorskip("PIL")
    picture = np.full((180, 320, 3), 100, dtype=np.uint8)
    Captions(180).put(picture, [("Time  1:00.0", INK)])
    assert picture.max() > 200, "there are words"
    changed = np.argwhere((picture != 100).any(axis=2))
    assert changed[:, 0].min() > 120
    assert changed[:, 1].max() < 200
    tiny = np.full((20, 20, 3), 100, dtype=np.uint8)
    Captions(20).put(tiny, [("Too long for so small a picture", INK)])
