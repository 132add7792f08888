"""Files of X-ray pictures: PNG, a film that plays in every browser (animated PNG), video, and DICOM XA.

A `Cine` gathers pictures as they are made; `write_*` puts them into a file. DICOM needs the package pydicom
(`pip install 'viscera[dicom]'`), video PyAV (`pip install 'viscera[video]'`). XA is the X-ray angiographic image, the
one kind whose files have both angles of a C-arm (DICOM PS3.3 A.14 and C.8.7.5); its pixels are the ones that were
shown, and bits of a patient are made up.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.xray.carm import CArm
from viscera.xray.xray import Xray, dose_area_product, picture

Grey = NDArray[np.uint8]

XA_STORAGE = "1.2.840.10008.5.1.4.1.1.12.1"
OURS = "2.25.282717365419382648716237465910283745610"
"""Implementation class, a UUID of our own as DICOM allows (PS3.5 B.2)."""
DECIGRAY_SQUARE_CENTIMETRE = 1e5
"""In a Gy·m²; the unit of DICOM's dose area product."""


@dataclass(eq=False)
class Cine:
    """Pictures one after the other, each with its C-arm."""

    rate: float
    """[1/s]"""
    peak: float
    """[kV]"""
    frames: list[Grey] = field(default_factory=list)
    """Grey, row 0 at the top."""
    arms: list[CArm] = field(default_factory=list)
    dose_area: float = 0.0
    """[Gy·m²]"""


def make_cine(xray: Xray) -> Cine:
    return Cine(xray.pulse_rate, xray.params.tube.peak)


def add(cine: Cine, xray: Xray) -> None:
    """Keeps the last picture."""
    if cine.frames and cine.frames[0].shape[0] != xray.pixels:
        raise InputError("pictures of two sizes are in one cine.", "Begin another one with `make_cine`.")
    cine.frames.append(np.ascontiguousarray(picture(xray)[::-1, :, 0]))
    cine.arms.append(xray.arm)
    cine.dose_area = dose_area_product(xray)


def runs(cine: Cine) -> list[Cine]:
    """The same as one cine for each geometry: a DICOM file has one field, distance and collimator, and any angles."""
    found: list[Cine] = []
    for grey, arm in zip(cine.frames, cine.arms, strict=True):
        if not found or _geometry(found[-1].arms[0]) != _geometry(arm):
            found.append(Cine(cine.rate, cine.peak, dose_area=cine.dose_area))
        found[-1].frames.append(grey)
        found[-1].arms.append(arm)
    return found


def _geometry(arm: CArm) -> tuple[object, ...]:
    return arm.pixels, arm.field, arm.source_detector, arm.source_isocentre, arm.iris, arm.shutters


def write_png(path: str | Path, grey: Grey) -> None:
    """A grey picture, row 0 at the top."""
    Path(path).write_bytes(_SIGNATURE + _header(grey) + _chunk(b"IDAT", _packed(grey)) + _chunk(b"IEND", b""))


def write_film(path: str | Path, cine: Cine) -> None:
    """An animated PNG, which browsers play in an `<img>` and which keeps every grey value."""
    _require_frames(cine)
    delay = struct.pack(">HH", 1000, min(65_535, round(1000.0 * cine.rate)))
    out = [_SIGNATURE, _header(cine.frames[0]), _chunk(b"acTL", struct.pack(">II", len(cine.frames), 0))]
    sequence = 0
    for number, grey in enumerate(cine.frames):
        height, width = grey.shape
        control = struct.pack(">IIIII", sequence, width, height, 0, 0) + delay + b"\0\0"
        out.append(_chunk(b"fcTL", control))
        sequence += 1
        if number == 0:
            out.append(_chunk(b"IDAT", _packed(grey)))
        else:
            out.append(_chunk(b"fdAT", struct.pack(">I", sequence) + _packed(grey)))
            sequence += 1
    Path(path).write_bytes(b"".join([*out, _chunk(b"IEND", b"")]))


CODECS = {".webm": "libvpx-vp9", ".mp4": "libx264"}
"""Of a video, by the end of its name: VP9, and H.264. Browsers play both."""
QUALITY = {"crf": "18"}
"""Of both codecs: differences are not seen."""


def write_video(path: str | Path, cine: Cine) -> None:
    """A video, WebM or MP4 by the end of its name, which browsers play in a `<video>`. It loses what is not seen: take
    `write_film` or `write_dicom` to measure in."""
    _require_frames(cine)
    suffix = Path(path).suffix.lower()
    if suffix not in CODECS:
        raise InputError(f"{path} is no video.", f"Give a name that ends in {' or '.join(CODECS)}.")
    height, width = cine.frames[0].shape
    if height % 2 or width % 2:
        raise InputError(f"a video of {width} × {height} pixels is not possible.", "Both sides must be even.")
    av = require("av", "video")
    rate = Fraction(cine.rate).limit_denominator(1000)
    with av.open(str(path), "w") as out:
        stream = out.add_stream(CODECS[suffix], rate=rate, options=QUALITY)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for grey in cine.frames:
            out.mux(stream.encode(av.VideoFrame.from_ndarray(grey, format="gray")))
        out.mux(stream.encode())


_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _header(grey: Grey) -> bytes:
    height, width = grey.shape
    return _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))


def _packed(grey: Grey) -> bytes:
    rows = np.zeros((grey.shape[0], grey.shape[1] + 1), dtype=np.uint8)  # each row begins with its filter: none
    rows[:, 1:] = grey
    return zlib.compress(rows.tobytes(), 6)


def _require_frames(cine: Cine) -> None:
    if not cine.frames:
        raise InputError("the cine has no pictures.", "Add at least one with `add` after a pulse.")


def require(package: str, extra: str = "dicom") -> Any:
    """A package of one of the extras."""
    import importlib

    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise InputError(
            f"{package} is not installed, and this file needs it.", f"Install it: pip install 'viscera[{extra}]'."
        ) from error


def write_dicom(path: str | Path, cine: Cine, *, contrast: str = "Barium sulfate", patient: str = "Simulated") -> None:
    """A multi-frame XA image."""
    _require_frames(cine)
    if len(runs(cine)) > 1:
        raise InputError(
            "field, distance or collimator change in the cine, and a DICOM file has one of each.",
            "Write each of `files.runs(cine)`.",
        )
    pydicom = require("pydicom")
    uid = require("pydicom.uid")
    meta = pydicom.dataset.FileMetaDataset()
    meta.MediaStorageSOPClassUID = XA_STORAGE
    meta.MediaStorageSOPInstanceUID = uid.generate_uid(None)
    meta.TransferSyntaxUID = uid.ExplicitVRLittleEndian
    meta.ImplementationClassUID = OURS
    data = pydicom.dataset.FileDataset(str(path), {}, file_meta=meta, preamble=b"\0" * 128)
    data.SOPClassUID, data.SOPInstanceUID = meta.MediaStorageSOPClassUID, meta.MediaStorageSOPInstanceUID
    _identify(data, uid, patient, contrast)
    _describe_beam(data, cine)
    _describe_arm(data, cine.arms)
    _write_pixels(data, cine)
    data.save_as(str(path), enforce_file_format=True)


def _identify(data: Any, uid: Any, patient: str, contrast: str) -> None:
    """Patient, study, series, equipment; empty where a type 2 attribute is not known."""
    from datetime import UTC, datetime

    now = datetime.now(UTC)
    data.PatientName, data.PatientID, data.PatientBirthDate, data.PatientSex = f"{patient}^Patient", "viscera", "", ""
    data.StudyInstanceUID, data.SeriesInstanceUID = uid.generate_uid(None), uid.generate_uid(None)
    data.StudyDate = data.ContentDate = now.strftime("%Y%m%d")
    data.StudyTime = data.ContentTime = now.strftime("%H%M%S")
    data.ReferringPhysicianName, data.StudyID, data.AccessionNumber = "", "1", ""
    data.Modality, data.SeriesNumber, data.InstanceNumber = "XA", 1, 1
    data.Manufacturer, data.ManufacturerModelName = "viscera", "simulated C-arm"
    data.PatientOrientation, data.BodyPartExamined = ["L", "F"], "ABDOMEN"
    data.ContrastBolusAgent = contrast
    data.ImageType = ["ORIGINAL", "PRIMARY", "SINGLE PLANE"]
    data.ImageComments = "Simulated. Not for diagnosis."


def _describe_beam(data: Any, cine: Cine) -> None:
    data.KVP = f"{cine.peak:g}"
    data.RadiationSetting = "SC"
    data.RadiationMode = "PULSED"
    milliseconds = round(1000.0 / cine.rate)
    data.ExposureTime, data.XRayTubeCurrent, data.Exposure = milliseconds, "", ""
    data.ImageAndFluoroscopyAreaDoseProduct = f"{DECIGRAY_SQUARE_CENTIMETRE * cine.dose_area:.6g}"
    data.FrameTime = f"{1000.0 / cine.rate:.6g}"
    data.CineRate = data.RecommendedDisplayFrameRate = round(cine.rate)
    data.FrameIncrementPointer = 0x0018_1063
    data.NumberOfFrames = len(cine.frames)


def _describe_arm(data: Any, arms: Sequence[CArm]) -> None:
    first = arms[0]
    data.DistanceSourceToDetector = f"{1000.0 * first.source_detector:.6g}"
    data.DistanceSourceToPatient = f"{1000.0 * first.source_isocentre:.6g}"
    data.EstimatedRadiographicMagnificationFactor = f"{first.magnification:.6g}"
    data.ImagerPixelSpacing = [f"{1000.0 * first.pitch:.6g}"] * 2
    data.FieldOfViewShape = "RECTANGLE"
    data.FieldOfViewDimensions = [round(1000.0 * first.field)] * 2
    data.PositionerPrimaryAngle, data.PositionerSecondaryAngle = f"{first.primary:.6g}", f"{first.secondary:.6g}"
    turns = [(one.primary - first.primary, one.secondary - first.secondary) for one in arms]
    data.PositionerMotion = "DYNAMIC" if any(turn != (0.0, 0.0) for turn in turns) else "STATIC"
    if data.PositionerMotion == "DYNAMIC":
        data.PositionerPrimaryAngleIncrement = [f"{turn[0]:.6g}" for turn in turns]
        data.PositionerSecondaryAngleIncrement = [f"{turn[1]:.6g}" for turn in turns]
    iris = first.field / 2.0 if first.iris is None else first.iris
    data.CollimatorShape = "CIRCULAR"
    data.CenterOfCircularCollimator = [first.pixels // 2] * 2
    data.RadiusOfCircularCollimator = max(1, round(iris / first.pitch))
    if any(first.shutters):
        left, right, bottom, top = (round(one * first.pixels) for one in first.shutters)
        data.CollimatorShape = ["CIRCULAR", "RECTANGULAR"]
        # Columns and rows of the edges, the first one being 1; the picture lies between them.
        data.CollimatorLeftVerticalEdge, data.CollimatorRightVerticalEdge = left, first.pixels - right + 1
        data.CollimatorUpperHorizontalEdge, data.CollimatorLowerHorizontalEdge = top, first.pixels - bottom + 1


def _write_pixels(data: Any, cine: Cine) -> None:
    frames = np.stack(cine.frames)
    data.SamplesPerPixel, data.PhotometricInterpretation = 1, "MONOCHROME2"
    data.Rows, data.Columns = frames.shape[1:]
    data.BitsAllocated, data.BitsStored, data.HighBit, data.PixelRepresentation = 8, 8, 7, 0
    data.PixelIntensityRelationship = "DISP"
    data.WindowCenter, data.WindowWidth = "128", "256"
    raw = frames.tobytes()
    data.PixelData = raw + b"\0" * (len(raw) % 2)
    data["PixelData"].VR = "OB"
