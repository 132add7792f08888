"""Files of pictures and volumes: what is written is read back by the libraries that others use."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from test_projection import phantom

from viscera import xray
from viscera.device import Device
from viscera.errors import InputError
from viscera.geometry.primitives import icosphere
from viscera.xray import CArm, Scene, Solid, XrayParams, files
from viscera.xray.materials import SOFT_TISSUE, WATER, attenuation
from viscera.xray.scans import load_scan
from viscera.xray.volume import SCANNER, Scan

pydicom = pytest.importorskip("pydicom")
nibabel = pytest.importorskip("nibabel")

VALIDATOR = os.environ.get("VISCERA_DCIODVFY") or shutil.which("dciodvfy")
"""Of Debian's dicom3tools."""


@pytest.fixture
def cine(cpu: Device) -> files.Cine:
    """Four pulses of a turning C-arm."""
    ball = icosphere(0.07, 3, centre=(0.02, 0.05, 0.0))
    scene = Scene([Solid(ball.vertices, ball.triangles, SOFT_TISSUE)])
    machine = xray.make(scene, XrayParams(arm=CArm(10.0, -5.0, pixels=64), pulse_rate=7.5), device=cpu)
    xray.settle(machine)
    kept = files.make_cine(machine)
    for turn in range(4):
        xray.aim(machine, CArm(10.0 + 2.5 * turn, -5.0, pixels=64))
        xray.expose(machine)
        files.add(kept, machine)
    return kept


def test_a_picture_and_a_film_keep_every_grey_value(cine: files.Cine, tmp_path: Path) -> None:
    files.write_png(tmp_path / "one.png", cine.frames[0])
    assert np.array_equal(np.asarray(Image.open(tmp_path / "one.png")), cine.frames[0])
    files.write_film(tmp_path / "film.png", cine)
    with Image.open(tmp_path / "film.png") as film:
        assert getattr(film, "n_frames", 1) == 4
        for number, grey in enumerate(cine.frames):
            film.seek(number)
            assert np.array_equal(np.asarray(film.convert("L")), grey)
            assert film.info["duration"] == pytest.approx(1000.0 / 7.5, rel=1e-3)


def test_the_head_is_up_in_a_file(cine: files.Cine) -> None:
    """The ball lies towards the head and the left: up and right, and it is bright."""
    grey = cine.frames[0].astype(float)
    rows, columns = np.nonzero(grey > 200)
    assert rows.mean() < 32.0 < columns.mean()


def test_dicom_has_the_c_arm_and_the_dose(cine: files.Cine, tmp_path: Path) -> None:
    files.write_dicom(tmp_path / "run.dcm", cine)
    data = pydicom.dcmread(tmp_path / "run.dcm")
    assert np.array_equal(data.pixel_array, np.stack(cine.frames))
    assert (data.PositionerPrimaryAngle, data.PositionerSecondaryAngle) == (10.0, -5.0)
    assert list(data.PositionerPrimaryAngleIncrement) == [0.0, 2.5, 5.0, 7.5]
    assert data.DistanceSourceToDetector == 1100.0
    assert float(data.ImageAndFluoroscopyAreaDoseProduct) == pytest.approx(1e5 * cine.dose_area, rel=1e-4)
    assert float(data.FrameTime) == pytest.approx(1000.0 / 7.5, rel=1e-4)


@pytest.mark.skipif(VALIDATOR is None, reason="dciodvfy of dicom3tools is not installed")
@pytest.mark.parametrize("moving", [True, False])
def test_dicom_passes_the_validator(cine: files.Cine, tmp_path: Path, moving: bool) -> None:
    if not moving:
        cine.arms = cine.arms[:1] * len(cine.arms)
    files.write_dicom(tmp_path / "run.dcm", cine)
    done = subprocess.run([str(VALIDATOR), str(tmp_path / "run.dcm")], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert "XAImage" in said
    assert "Error" not in said, said


def test_an_empty_cine_is_refused(tmp_path: Path) -> None:
    for write in (files.write_film, files.write_dicom):
        with pytest.raises(InputError, match="no pictures"):
            write(tmp_path / "x", files.Cine(15.0, 90.0))


# --- volumes -------------------------------------------------------------------------------------------------------


def marked() -> tuple[np.ndarray, np.ndarray]:
    """Water in air, with bone towards the left, head and front, in RAS axes [mm]: as NIfTI has it."""
    values = np.full((20, 24, 28), -1000.0, dtype=np.float32)
    values[4:16, 4:20, 4:24] = 0.0
    values[4:7, 16:20, 20:24] = 1500.0  # x grows to the right, y to the front, z to the head
    affine = np.diag([2.0, 1.5, 1.0, 1.0])
    affine[:3, 3] = (-30.0, 12.0, 400.0)
    return values, affine


def bone_middle(scan: Scan) -> np.ndarray:
    at = np.argwhere(scan.voxels[..., 1] > 0.5).mean(axis=0)
    return (scan.to_world @ np.append(at, 1.0))[:3]


def write_nifti(path: Path, values: np.ndarray, affine: np.ndarray, unit: str = "mm") -> Path:
    image = nibabel.Nifti1Image(values, affine)
    image.header.set_xyzt_units(unit)
    nibabel.save(image, path)
    return path


def write_series(folder: Path, values: np.ndarray, affine: np.ndarray, **changes) -> Path:
    """The same volume as DICOM slices, in LPS axes."""
    folder.mkdir(exist_ok=True)
    series = changes.pop("SeriesInstanceUID", pydicom.uid.generate_uid())
    for k in range(values.shape[2]):
        one = pydicom.dataset.Dataset()
        one.file_meta = pydicom.dataset.FileMetaDataset()
        one.file_meta.TransferSyntaxUID = pydicom.uid.ExplicitVRLittleEndian
        one.SOPClassUID = one.file_meta.MediaStorageSOPClassUID = pydicom.uid.CTImageStorage
        one.SOPInstanceUID = one.file_meta.MediaStorageSOPInstanceUID = pydicom.uid.generate_uid()
        one.SeriesInstanceUID, one.Modality = series, "CT"
        place = affine @ (0.0, 0.0, k, 1.0)
        one.ImagePositionPatient = [float(-place[0]), float(-place[1]), float(place[2])]
        one.ImageOrientationPatient = [-1.0, 0.0, 0.0, 0.0, -1.0, 0.0]
        one.PixelSpacing = [float(affine[1, 1]), float(affine[0, 0])]
        one.RescaleSlope, one.RescaleIntercept = "1", "-1024"
        one.Rows, one.Columns = values.shape[1], values.shape[0]
        one.SamplesPerPixel, one.PhotometricInterpretation = 1, "MONOCHROME2"
        one.BitsAllocated, one.BitsStored, one.HighBit, one.PixelRepresentation = 16, 16, 15, 0
        one.PixelData = (values[:, :, k].T + 1024.0).astype(np.uint16).tobytes()
        for name, value in changes.items():
            if value is None:
                delattr(one, name)
            else:
                setattr(one, name, value)
        one.save_as(folder / f"{series[-6:]}{k:03d}.dcm", enforce_file_format=True)
    return folder


def test_both_kinds_of_files_are_one_volume_with_the_patients_axes(tmp_path: Path) -> None:
    """Bone lies to the left (+x), head (+y) and front (+z) of the middle in both."""
    values, affine = marked()
    nifti = load_scan(write_nifti(tmp_path / "ct.nii.gz", values, affine))
    series = load_scan(write_series(tmp_path / "ct", values, affine))
    for one in (nifti, series):
        # Middle of the bone less the middle of the volume, in voxels, times their size.
        assert bone_middle(one) == pytest.approx([4.5 * 2.0e-3, 8.0 * 1.0e-3, 6.0 * 1.5e-3], abs=1e-6)


def test_bad_volumes_are_refused(tmp_path: Path) -> None:
    values, affine = marked()
    with pytest.raises(InputError, match="not there"):
        load_scan(tmp_path / "nowhere.nii")
    with pytest.raises(InputError, match="unit"):
        load_scan(write_nifti(tmp_path / "unit.nii", values, affine, "unknown"))
    bare = nibabel.Nifti1Image(values, None)
    nibabel.save(bare, tmp_path / "bare.nii")
    with pytest.raises(InputError, match="where its voxels are"):
        load_scan(tmp_path / "bare.nii")
    with pytest.raises(InputError, match="wide"):
        load_scan(write_nifti(tmp_path / "metre.nii", values, affine, "meter"))
    with pytest.raises(InputError, match="PixelSpacing"):
        load_scan(write_series(tmp_path / "spacing", values, affine, PixelSpacing=None))
    with pytest.raises(InputError, match="not CT"):
        load_scan(write_series(tmp_path / "mr", values, affine, Modality="MR"))
    with pytest.raises(InputError, match="rescale"):
        load_scan(write_series(tmp_path / "raw", values, affine, RescaleSlope=None))
    write_series(tmp_path / "two", values, affine)
    with pytest.raises(InputError, match="2 series"):
        load_scan(write_series(tmp_path / "two", values, affine))
    gap = write_series(tmp_path / "gap", values, affine)
    sorted(gap.iterdir())[5].unlink()
    with pytest.raises(InputError, match="slices"):
        load_scan(gap)


def test_a_nifti_phantom_is_projected(cpu: Device, tmp_path: Path) -> None:
    values, affine = phantom(32)
    path = write_nifti(tmp_path / "ball.nii", values.astype(np.float32), np.diag([1e3, 1e3, 1e3, 1.0]) @ affine)
    machine = xray.make(Scene(scans=[load_scan(path)]), XrayParams(arm=CArm(pixels=64)), device=cpu)
    xray.expose(machine)
    soft = xray.lengths(machine)[machine.materials.index(SOFT_TISSUE)]
    # A ray through the middle of a ball of water, counted in soft tissue, which is a little denser.
    share = attenuation(WATER, SCANNER) / attenuation(SOFT_TISSUE, SCANNER)
    assert soft.max() == pytest.approx(0.08 * share, rel=0.01)


@pytest.mark.parametrize("name", ["run.webm", "run.mp4"])
def test_a_video_has_the_pictures_at_their_rate(cine: files.Cine, tmp_path: Path, name: str) -> None:
    """Read back by the library: every picture, 7.5 a second, grey values within what a codec may lose."""
    av = pytest.importorskip("av")
    files.write_video(tmp_path / name, cine)
    with av.open(str(tmp_path / name)) as file:
        stream = file.streams.video[0]
        assert float(stream.average_rate) == pytest.approx(7.5, rel=0.01)
        found = [frame.to_ndarray(format="gray") for frame in file.decode(stream)]
    assert len(found) == 4
    for grey, read in zip(cine.frames, found, strict=True):
        assert np.abs(grey.astype(float) - read).mean() < 4.0
        assert np.corrcoef(grey.ravel(), read.ravel())[0, 1] > 0.99


def test_a_video_that_cannot_be_is_refused(cine: files.Cine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="is no video"):
        files.write_video(tmp_path / "run.avi", cine)
    with pytest.raises(InputError, match="no pictures"):
        files.write_video(tmp_path / "run.mp4", files.Cine(7.5, 80.0))
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(InputError, match="av is not installed"):
        files.write_video(tmp_path / "run.mp4", cine)
