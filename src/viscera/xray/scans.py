"""CT volumes from files: NIfTI (by nibabel) and folders of DICOM slices (by pydicom), both of the extra `dicom`.

Files have axes of their own: NIfTI's x, y, z are right, front and head, DICOM's are left, back and head, both in
millimetres. Ours are left, head and front in metres.

An MRI has no attenuation. Segmented, as a NIfTI file of whole numbers, it is a volume with a table that says what each
stands for: lines of `label, Hounsfield unit`, more columns are for people.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.xray.files import require
from viscera.xray.volume import Scan, labelled, scan

FloatArray = NDArray[np.float64]

MILLIMETRE = 1e-3
METRES = {"mm": 1e-3, "meter": 1.0, "micron": 1e-6}
FROM_NIFTI = np.array([[-1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
FROM_DICOM = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, -1.0, 0.0]])
UNEVEN = 0.01
"""Slices whose distances differ by more than this share are not one volume."""


@dataclass(frozen=True, eq=False)
class Read:
    """A volume and where it was in its file."""

    scan: Scan
    turn: FloatArray
    """From the file's axes to ours, (3, 3)."""
    middle: FloatArray
    """What was moved into the isocentre, in our axes [m]: a place x of the file [m] is at `turn` x − `middle`."""


def load_scan(path: str | Path, *, labels: str | Path | None = None, centred: bool = True) -> Scan:
    """A CT volume from a NIfTI file or a folder of DICOM slices; `centred` puts its middle into the isocentre. With a
    table of `labels` it is a NIfTI file of whole numbers."""
    return read_scan(path, labels=labels, centred=centred).scan


def read_scan(path: str | Path, *, labels: str | Path | None = None, centred: bool = True) -> Read:
    """As `load_scan`, with where it was."""
    place = Path(path)
    if not place.exists():
        raise InputError(f"{place} is not there.", "Give a NIfTI file (.nii, .nii.gz) or a folder of DICOM slices.")
    if place.is_dir() and labels is not None:
        raise InputError(f"{place.name} is a folder, and labels are given.", "Give labels as one NIfTI file.")
    values, affine = _read_series(place) if place.is_dir() else _read_nifti(place)
    middle = np.zeros(3)
    if centred:
        middle = (affine @ np.append(0.5 * (np.asarray(values.shape) - 1.0), 1.0))[:3]
        affine[:3, 3] -= middle
    turn = FROM_DICOM if place.is_dir() else FROM_NIFTI
    if labels is not None:
        whole = np.rint(values).astype(np.int32)
        if np.abs(values - whole).max() > 0.0 or whole.min() < 0:
            raise InputError(
                f"{place.name} is no label map.", "Its values must be whole numbers from 0 on: segment it first."
            )
        return Read(labelled(whole, read_labels(labels), affine), turn, middle)
    if values.min() >= 0.0:
        raise InputError(
            f"{place.name} has values from {values.min():g} to {values.max():g}: that is no CT.",
            "A CT has fat and air, below 0. Of MRI segment it, and give the label map and its table of labels.",
        )
    return Read(scan(values, affine), turn, middle)


def read_labels(path: str | Path) -> dict[int, float]:
    """Hounsfield units by label: lines of `label, Hounsfield unit`; `#` begins a comment, a heading may come first."""
    found: dict[int, float] = {}
    place = Path(path)
    try:
        lines = place.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{place} cannot be read: {error}.", "Give a text file with a label per line.") from error
    for number, line in enumerate(lines, 1):
        words = [word.strip() for word in line.partition("#")[0].split(",")]
        if words == [""] or (number == 1 and not words[0].isdecimal()):
            continue
        try:
            found[int(words[0])] = float(words[1])
        except (ValueError, IndexError):
            raise InputError(
                f"{place.name}, line {number}: {line!r} is no label.", "For example: 3, 40, liver"
            ) from None
    if not found:
        raise InputError(f"{place.name} has no labels.", "A line for each, for example: 3, 40, liver")
    return found


def _read_nifti(path: Path) -> tuple[NDArray[Any], FloatArray]:
    nibabel = require("nibabel")
    try:
        image = nibabel.load(path)
    except Exception as error:
        raise InputError(f"{path.name} cannot be read: {error}.", "Give a NIfTI file (.nii, .nii.gz).") from error
    header = image.header
    if int(header["sform_code"]) == 0 and int(header["qform_code"]) == 0:
        raise InputError(
            f"{path.name} does not say where its voxels are.", "It needs an sform or a qform; write it again with one."
        )
    unit = header.get_xyzt_units()[0]
    if unit not in METRES:
        raise InputError(f"{path.name}: the unit of its voxels is {unit!r}.", f"Allowed are {', '.join(METRES)}.")
    values = np.asarray(image.get_fdata(dtype=np.float32))
    if values.ndim != 3:
        raise InputError(f"{path.name} has {values.ndim} axes.", "Give one volume; of a series in time, one moment.")
    return values, _placed(np.asarray(image.affine, dtype=np.float64), FROM_NIFTI, METRES[unit])


def _placed(affine: FloatArray, turn: FloatArray, metre: float) -> FloatArray:
    out = np.eye(4)
    out[:3] = metre * turn @ affine[:3]
    return out


def _read_series(folder: Path) -> tuple[NDArray[Any], FloatArray]:
    slices = _slices(folder)
    first = slices[0]
    for name in ("PixelSpacing", "ImageOrientationPatient", "ImagePositionPatient"):
        if getattr(first, name, None) is None:
            raise InputError(f"{folder.name}: the slices have no {name}.", "Without it a volume has no size or place.")
    across, down = np.asarray(first.ImageOrientationPatient, dtype=np.float64).reshape(2, 3)
    normal = np.cross(across, down)
    slices.sort(key=lambda one: float(np.dot(normal, one.ImagePositionPatient)))
    heights = np.array([float(np.dot(normal, one.ImagePositionPatient)) for one in slices])
    gaps = np.diff(heights)
    if len(gaps) == 0 or gaps.min() <= 0.0 or gaps.max() - gaps.min() > UNEVEN * gaps.mean():
        raise InputError(
            f"{folder.name}: distances of the slices run from {gaps.min(initial=0.0):g} to "
            f"{gaps.max(initial=0.0):g} mm.",
            "Give all slices of one series, each once and equally far apart.",
        )
    rows, columns = (float(value) for value in first.PixelSpacing)
    affine = np.eye(4)
    # Voxels are numbered column, row, slice.
    affine[:3, 0], affine[:3, 1] = columns * across, rows * down
    affine[:3, 2] = normal * float(gaps.mean())
    affine[:3, 3] = np.asarray(slices[0].ImagePositionPatient, dtype=np.float64)
    planes = [one.pixel_array.T * float(one.RescaleSlope) + float(one.RescaleIntercept) for one in slices]
    return np.stack(planes, axis=-1).astype(np.float32), _placed(affine, FROM_DICOM, MILLIMETRE)


def _slices(folder: Path) -> list[Any]:
    pydicom = require("pydicom")
    found = []
    for path in sorted(folder.iterdir()):
        if path.is_file():
            try:
                one = pydicom.dcmread(path)
            except pydicom.errors.InvalidDicomError:
                continue
            if "PixelData" in one:
                found.append(one)
    if not found:
        raise InputError(f"{folder.name} has no DICOM slices.", "Give the folder with the files of one CT series.")
    series = {str(one.SeriesInstanceUID) for one in found}
    if len(series) > 1:
        raise InputError(f"{folder.name} has slices of {len(series)} series.", "Put those of one series into a folder.")
    kinds = {str(one.Modality) for one in found}
    if kinds != {"CT"}:
        raise InputError(
            f"{folder.name} is {', '.join(sorted(kinds))}, not CT.",
            "Only CT gives attenuation; of MRI segment it and give labels (`xray.volume.labelled`).",
        )
    if any("RescaleSlope" not in one or "RescaleIntercept" not in one for one in found):
        raise InputError(f"{folder.name}: slices have no rescale slope.", "Without it values are no Hounsfield units.")
    return found
