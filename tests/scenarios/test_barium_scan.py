"""A scan of a patient as the body of the study: the lumen takes the place of what the scan has there."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

import viscera
from viscera import xray
from viscera.device import Device, open_device
from viscera.errors import InputError, RecordingError
from viscera.geometry.mesh import TriangleMesh, load_mesh, save_stl
from viscera.geometry.primitives import icosphere
from viscera.headless import record_headless
from viscera.inputs import Input
from viscera.scenarios import Setting, find_scenario
from viscera.scenarios.barium.body import find_body
from viscera.scenarios.barium.study import Lumen, find_lumen, make_enema, make_machine
from viscera.session.archive import read_recording
from viscera.session.replay import make_world
from viscera.world.systems.enema import Enema
from viscera.xray.materials import AIR, BONE, SOFT_TISSUE, WATER, attenuation
from viscera.xray.volume import SCANNER

nibabel = pytest.importorskip("nibabel")

DETAIL = 0.4
VOXEL = 8.0
"""[mm]"""
CELLS = 72


def write(
    path: Path, values: np.ndarray, unit: str = "mm", origin: tuple[float, float, float] = (0.0, 0.0, 0.0)
) -> Path:
    """As NIfTI, right, front and head along the axes."""
    affine = np.diag([VOXEL, VOXEL, VOXEL, 1.0])
    affine[:3, 3] = origin
    image = nibabel.Nifti1Image(values, affine)
    image.header.set_xyzt_units(unit)
    nibabel.save(image, path)
    return path


def block_of_water(inner: float = 0.0) -> np.ndarray:
    """Water around, in air, with something else in the whole of the belly: what the scan had in its own bowel."""
    values = np.full((CELLS,) * 3, -1000.0, dtype=np.float32)
    values[4:-4, 4:-4, 4:-4] = 0.0
    values[12:-12, 24:-24, 12:-12] = inner
    return values


@pytest.fixture(scope="module")
def tube(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lumen of 60 × 60 × 240 mm in the middle of the scan, in the scan's axes [mm]: long along the head's axis."""
    ball, middle = icosphere(1.0, 3), 0.5 * VOXEL * (CELLS - 1)
    path = tmp_path_factory.mktemp("lumen") / "tube.stl"
    save_stl(path, TriangleMesh(1e-3 * (ball.vertices * (30.0, 30.0, 120.0) + middle), ball.triangles, "tube"))
    return path


@pytest.fixture(scope="module")
def filled(tube: Path) -> tuple[Lumen, Enema]:
    scan = write(tube.with_name("ct.nii.gz"), block_of_water())
    setting = Setting(open_device("cpu"), 0, tube, DETAIL, {"scan": str(scan)})
    lumen = find_lumen(setting, find_body(setting))
    return lumen, make_enema(lumen, setting)


def lengths(scan: Path, mesh: Path, filled: tuple[Lumen, Enema]) -> dict[str, np.ndarray]:
    """Along each ray, in each material [m]."""
    lumen, enema = filled
    setting = Setting(enema.fluid.device, 0, mesh, DETAIL, {"scan": str(scan)})
    body = find_body(setting)
    assert body is not None
    body.place(load_mesh(mesh))
    machine = make_machine(lumen, enema, setting, body)
    xray.expose(machine)
    return {one.name: xray.lengths(machine)[k] for k, one in enumerate(machine.materials)}


@pytest.mark.parametrize("inner", [-1000.0, 0.0, 1500.0])
def test_the_lumen_takes_the_place_of_whatever_the_scan_has_there(
    tmp_path: Path, tube: Path, filled: tuple[Lumen, Enema], inner: float
) -> None:
    """A ray along z through the middle: 512 mm of water less the part that is something else. The lumen's 60 mm are
    air, and that much soft tissue less, whether the scan has air, water or bone in it; around it the scan is as it was,
    to a voxel at the border (8 mm in all)."""
    found = lengths(write(tmp_path / "ct.nii.gz", block_of_water(inner)), tube, filled)
    middle = tuple(side // 2 for side in found["air"].shape)
    assert found["air"][middle] == pytest.approx(0.060, abs=0.002)
    share = float(attenuation(WATER, SCANNER) / attenuation(SOFT_TISSUE, SCANNER))
    around = {-1000.0: 0.0, 0.0: share, 1500.0: 0.0}[inner] * (0.192 - 0.068)
    expected = share * (0.512 - 0.192) + around + 0.068 - 0.060
    assert found["soft tissue"][middle] == pytest.approx(expected, abs=0.010)
    bone = found["cortical bone"][middle]
    assert (bone > 0.05) == (inner == 1500.0)
    assert min(one.min() for one in found.values()) > -1e-5, "nothing is taken away that was not there"


def test_a_study_runs_in_a_scan_and_its_recording_knows_it(tmp_path: Path) -> None:
    """A colon by rule in a block of water: its air is seen in it. Another scan under the same name is refused."""
    scan = write(tmp_path / "ct.nii.gz", block_of_water())
    given = {"seed": 3, "detail": DETAIL, "options": {"scan": str(scan), "triangles": 2000}}
    world = viscera.make("barium", device="cpu", cores=2, **given)

    def hand(tick: int) -> list[Input]:
        return [viscera.SetParameter("beam", 1.0)] if tick == 0 else []

    assert len(world.system("barium").holds.vessel.walls.mesh.triangles) >= 2000
    _, written = record_headless(world, 0.128, hand, tmp_path, given, None)
    machine = world.system("xray").holds
    assert xray.lengths(machine)[machine.materials.index(AIR)].max() > 0.03
    assert BONE in machine.materials
    world.close()
    write(scan, block_of_water(-100.0))
    with pytest.raises(RecordingError, match="scan"):
        make_world(read_recording(written))


def test_a_label_map_needs_its_table(tmp_path: Path, cpu: Device) -> None:
    """A segmented MRI: whole numbers with a table; without one it is refused, and so is an MRI's grey picture."""
    labels = np.zeros((CELLS,) * 3, dtype=np.int16)
    labels[4:-4, 4:-4, 4:-4] = 2
    scan = write(tmp_path / "mri.nii.gz", labels)
    table = tmp_path / "labels.csv"
    table.write_text("label, HU\n0, -1000, air\n2, 40, muscle\n")

    def body(**options: object) -> object:
        return find_body(Setting(cpu, 0, None, DETAIL, {name: str(value) for name, value in options.items()}))

    assert body(scan=scan, labels=table) is not None
    with pytest.raises(InputError, match="that is no CT"):
        body(scan=scan)
    with pytest.raises(InputError, match="without a scan"):
        body(labels=table)
    table.write_text("0, -1000\n")
    with pytest.raises(InputError, match="label 2 has no Hounsfield unit"):
        body(scan=scan, labels=table)
    table.write_text("0, many\n")
    with pytest.raises(InputError, match="line 1"):
        body(scan=scan, labels=table)
    with pytest.raises(InputError, match="no label map"):
        body(scan=write(tmp_path / "grey.nii.gz", labels + np.float32(0.5)), labels=table)


def test_scans_that_cannot_be_are_refused(tmp_path: Path, tube: Path) -> None:
    """Before anything is simulated; the message names what is wrong."""
    cases = {
        "unit": write(tmp_path / "unit.nii", block_of_water(), "unknown"),
        "m wide": write(tmp_path / "metre.nii", block_of_water(), "meter"),
        "outside the scan": write(tmp_path / "far.nii", block_of_water(), origin=(500.0, 0.0, 0.0)),
        "is not there": tmp_path / "nowhere.nii",
    }
    for said, path in cases.items():
        with pytest.raises(InputError, match=said):
            viscera.make("barium", device="cpu", detail=DETAIL, mesh=tube, options={"scan": path})


def test_options_are_checked_by_name_and_value() -> None:
    with pytest.raises(InputError, match="no option 'skan'"):
        viscera.make("barium", device="cpu", options={"skan": "x"})
    with pytest.raises(InputError, match="has no option"):
        viscera.make("palpation", device="cpu", options={"scan": "x"})
    with pytest.raises(InputError, match="triangles = 12"):
        viscera.make("barium", device="cpu", options={"triangles": 12})
    assert [one.name for one in find_scenario("barium").options] == ["scan", "labels", "triangles"]


@pytest.mark.slow
def test_the_example_with_a_ct_adds_up() -> None:
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "29_barium_in_a_ct.py"), run_name="__main__")
