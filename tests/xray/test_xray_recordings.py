"""A short study, recorded: it is the same again to the bit, and its pictures and its state become files."""

from __future__ import annotations

import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import viscera
from viscera.cli import app
from viscera.errors import InputError
from viscera.headless import record_headless
from viscera.inputs import Input
from viscera.session.replay import replay_report
from viscera.video.xrays import write_xrays

MADE = {"seed": 3, "detail": 0.25, "options": {"triangles": 2000}}
CHANGES = {0: {"flow": 25.0, "beam": 1.0, "pulses": 3.0, "waves": 30.0}, 192: {"field": 2.0, "shutter_top": 20.0}}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict]:
    """0.4 s: injection, a wall that waves run along, 30 pulses a second, and half of the field from 0.19 s on."""
    world = viscera.make("barium", device="cpu", cores=2, **MADE)

    def hand(tick: int) -> list[Input]:
        return [viscera.SetParameter(name, value) for name, value in CHANGES.get(tick, {}).items()]

    result, path = record_headless(world, 0.4, hand, tmp_path_factory.mktemp("study"), MADE, None)
    world.close()
    return path, result.as_json()


def test_a_recorded_study_is_the_same_again_to_the_bit(recorded: tuple[Path, dict]) -> None:
    done = replay_report(recorded[0])
    assert done.same
    done.world.close()


def test_the_result_has_the_ledger_and_nothing_is_missing(recorded: tuple[Path, dict]) -> None:
    """Whole units: 0 and not nearly 0."""
    measured = recorded[1]["measures"]
    assert measured["missing"] == 0
    assert measured["injected"] > 5.0
    assert measured["injected"] == pytest.approx(measured["lumen"] + measured["wall"] + measured["drained"], rel=1e-12)
    assert recorded[1]["units"]["measures"]["missing"] == "units"


def test_pictures_of_a_recording_become_files(recorded: tuple[Path, dict], tmp_path: Path) -> None:
    """Twelve pulses in 0.4 s at 30 a second, less the one under way."""
    pydicom = pytest.importorskip("pydicom")
    found = write_xrays(recorded[0], tmp_path / "run.dcm")
    assert 10 <= found.pictures <= 13
    assert [Path(name).name for name in found.files] == ["run-1.dcm", "run-2.dcm"]
    wide, narrow = (pydicom.dcmread(name) for name in found.files)
    assert wide.NumberOfFrames + narrow.NumberOfFrames == found.pictures
    assert (list(wide.FieldOfViewDimensions), list(narrow.FieldOfViewDimensions)) == ([380, 380], [228, 228])
    assert narrow.CollimatorUpperHorizontalEdge == round(0.2 * narrow.Rows)
    assert wide.CollimatorShape == "CIRCULAR"
    assert float(narrow.ImagerPixelSpacing[0]) == pytest.approx(0.6 * float(wide.ImagerPixelSpacing[0]), rel=1e-4)
    assert wide.CineRate == 30


@pytest.mark.slow
def test_a_png_is_the_last_picture_and_a_film_has_all(recorded: tuple[Path, dict], tmp_path: Path) -> None:
    found = write_xrays(recorded[0], tmp_path / "all.apng")
    write_xrays(recorded[0], tmp_path / "last.png")
    with Image.open(tmp_path / "all.apng") as film:
        assert getattr(film, "n_frames", 1) == found.pictures
        film.seek(found.pictures - 1)
        assert np.array_equal(np.asarray(Image.open(tmp_path / "last.png")), np.asarray(film.convert("L")))


def test_the_state_in_space_has_the_wall_as_it_is(recorded: tuple[Path, dict], tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["xray", str(recorded[0]), "--out", str(tmp_path / "end.h5"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout.strip().splitlines()[-1])["seconds"] == pytest.approx(0.4)
    rest = viscera.anatomy.colon(3, 2000)
    with h5py.File(tmp_path / "end.h5") as file:
        wall, volume = np.asarray(file["wall/vertices"]), np.asarray(file["particles/volume"])
        assert len(np.asarray(file["wall/thickness"])) == len(np.asarray(file["wall/triangles"]))
        counted = recorded[1]["measures"]["lumen"]
        assert 1e6 * volume.sum() == pytest.approx(counted, rel=1e-6)
    moved = np.linalg.norm(wall[:, None, :] - rest.vertices[None, :400], axis=2).min(axis=0)
    assert moved.max() > 1e-3, "waves have closed it by millimetres"


def test_what_cannot_be_written_is_refused(recorded: tuple[Path, dict], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none of the files"):
        write_xrays(recorded[0], tmp_path / "run.avi")
    with pytest.raises(InputError, match="recording ends"):
        write_xrays(recorded[0], tmp_path / "late.png", begin=1.0)
    with pytest.raises(InputError, match="there is nothing"):
        write_xrays(recorded[0], tmp_path / "late.png", begin=0.2, end=0.1)
