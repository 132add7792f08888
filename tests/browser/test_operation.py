"""The operation in a real browser, by mouse and keys through the page's own handlers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from test_browser import checked, serving

from viscera.scenarios.cholecystectomy.patient import draw_patient
from viscera.scenarios.cholecystectomy.steps import paths_beside
from viscera.scenarios.cholecystectomy.surgeon import along_path

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(1800)]

LONGEST = 1_500
"""On a slow machine [s]."""
ABOVE = np.array([0.0, 0.0, 0.002])
"""From the middle of a tube to what is seen of it [m]."""


def places(seed: int) -> dict[str, list]:
    """Where to point at, in the tissue at rest [m]."""
    patient = draw_patient(seed)
    tubes = [patient.duct, *patient.arteries]
    return {
        "hold": [0.016, 0.0, 0.0330],
        "fold": [(path + ABOVE).tolist() for path in paths_beside(patient)],
        "clips": [(along_path(line, share) + ABOVE).tolist() for line in tubes for share in (0.35, 0.7)],
        "cuts": [(along_path(line, 0.52) + ABOVE).tolist() for line in tubes],
    }


def test_duct_and_artery_are_freed_clipped_and_cut_by_mouse_and_keys(tmp_path: Path) -> None:
    command = ("-m", "viscera", "serve", "cholecystectomy", "--port", "0", "--seed", "0", "--detail", "1")
    with serving(*command, "--out", str(tmp_path / "recordings")) as address:
        told = checked("operation.mjs", address, tmp_path, json.dumps(places(0)), longest=LONGEST)
    found = told["found"]
    assert told["errors"] == []
    assert found["operation-free"]["calot_cleared"] > found["operation-hold"]["calot_cleared"]
    assert found["operation-clip"]["clips_held"] >= 3.0
    assert found["operation-cut"]["cut_area"] > found["operation-clip"]["cut_area"]
