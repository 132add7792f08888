"""A saved policy watched in the page: recorded by one command, listed, played, with its probe at the target."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from test_browser import checked, serving

pytest.importorskip("gymnasium")
from viscera import learning

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(600)]

SEED = 10


def test_a_saved_policy_is_watched_in_the_page(tmp_path: Path) -> None:
    """Reach tells the way to its target in its last three numbers: a layer of weights that goes there is a policy."""
    weights = np.zeros((4, 6), dtype=np.float32)
    weights[:3, 3:] = 0.5 * np.eye(3)
    layers = [(weights, np.zeros(4))]
    file = learning.save_policy(tmp_path / "reach", layers, task="Reach", control="cartesian", observe=("goal",))
    folder = tmp_path / "recordings"
    command = [sys.executable, "-m", "viscera.learning", "record", str(file), "--out", str(folder), "--seed", str(SEED)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert "Reach: done" in ran.stdout
    served = ["-m", "viscera", "serve", "palpation", "--port", "0", "--device", "cpu", "--cores", "1"]
    with serving(*served, "--out", str(folder), "--detail", "0.2") as address:
        found = checked("policy.mjs", address, tmp_path)
    assert "error" not in found, found["error"]
    assert found["errors"] == []
    assert "alpation" in found["listed"]
    assert found["active"], found
    env = learning.load_policy(file).make()
    env.reset(seed=SEED)
    target = cast(Any, env.lane._episode)._target
    away = [float(np.linalg.norm(np.asarray(tip) - target)) for tip in found["tips"]]
    env.close()
    assert away[0] > away[1] > away[2]
    assert away[2] < 0.008, "it did not come near its target"
