"""Training with nothing but the page: a trainee and a trainer, each in a browser of their own."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from test_browser import checked, serving

import viscera
from viscera.headless import record_headless
from viscera.inputs import EndDrill, Input, ToolInput
from viscera.scenarios.palpation import CELLS, NODULES, SPACING, middle
from viscera.scores import HandTrace, Score, Trial, Wanted, score
from viscera.training.database import open_database
from viscera.training.store import Store
from viscera.world import block

pytestmark = [pytest.mark.browser, pytest.mark.timeout(1_200)]

SEED = 3
TOKEN = "the trainer's own token"
LEARNERS = {"Ada": 14, "Mary": 12, "Lise": 9}
"""Made-up trainees, with so many trials each."""


def made_up(trial: int, random: np.random.Generator) -> Score:
    """Of somebody who gets quicker, presses less and goes straighter from trial to trial."""
    seconds = 12.0 + 40.0 / trial + random.uniform(0.0, 6.0)
    rows = round(seconds / 0.016)
    turns = np.linspace(0.0, 2.0 * np.pi * (2.0 + 6.0 / trial), rows)
    path = np.stack([0.03 * np.cos(turns), 0.03 * np.sin(turns), 0.004 * np.sin(9.0 * turns)], axis=1)
    force = (0.4 + 1.6 / trial) * (1.0 + np.sin(9.0 * turns)) * random.uniform(0.8, 1.2)
    hand = HandTrace("probe", "Probe", 0.016, path, force, 1.2 * force, np.ones(rows, dtype=np.bool_))
    found = random.random() < 1.0 - 0.7 / trial
    goals = (
        Wanted("found", "Found", "", 0, 1.0, None, float(found)),
        Wanted("pins", "Pins", "", 0, None, 3.0, float(random.integers(1, 4)), grows=True),
    )
    off = random.uniform(0.001, 0.008) if found else random.uniform(0.01, 0.03)
    outcome = "found" if found else "missed"
    return score(Trial("palpation", trial, "Easy", outcome, seconds, goals, {}, off, 0.75, (hand,)))


@pytest.fixture
def database(tmp_path: Path) -> str:
    address = f"sqlite:///{tmp_path / 'trials.sqlite'}"
    store = Store(open_database(address))
    random = np.random.default_rng(1)
    for name, count in LEARNERS.items():
        if name != "Ada":  # she enters by the page
            for trial in range(1, count + 1):
                store.keep(name, made_up(trial, random))
    store.close()
    return address


def another_run(folder: Path) -> None:
    """A recording to be watched beside the trainee's, of a drill: a pin that is stuck beside what is hidden."""

    def hand(tick: int) -> list[Input]:
        if tick == 2500:
            return [EndDrill("found", 0.5)]
        return [ToolInput(1, (0.02, 0.01, 0.034), grip=float(800 < tick < 1200))] if tick % 16 == 0 else []

    world = viscera.make("palpation", device="cpu", seed=SEED)
    record_headless(world, 3.0, hand, folder, {}, None)
    world.close()


@pytest.mark.slow
def test_a_trainee_and_a_trainer_need_nothing_but_the_page(tmp_path: Path, database: str) -> None:
    positions = block(CELLS, SPACING).positions
    x, y, _ = middle(SEED, positions, NODULES["Easy"])
    place = json.dumps([float(x), float(y), float(positions[:, 2].max())])
    another_run(tmp_path / "recordings")
    command = ["-m", "viscera", "serve", "palpation", "--port", "0", "--seed", str(SEED), "--detail", "1"]
    command += ["--out", str(tmp_path / "recordings"), "--trainer-token", TOKEN, "--database", database]
    with serving(*command) as address:
        found = checked("training.mjs", address, tmp_path, place, TOKEN, longest=900.0)
    assert "error" not in found, found["error"]
    assert found["errors"] == []
    assert "Trial 1 of Ada" in found["trained"]["standing"]
    assert "Marking pin" in found["trained"]["result"] or "Path" in found["trained"]["result"]
    assert "name is taken" in found["taken"]["refused"]
    assert TOKEN not in found["taken"]["address"]
    administered = found["administered"]
    assert "The code of Grace is" in administered["said"]
    assert "The code of Grace is" in administered["renewed"]
    assert administered["renewed"] != administered["said"]
    assert "Grace and 0 trials are deleted" in administered["gone"]
    assert administered["files"] == [f"viscera-cohort.{kind}" for kind in ("pdf", "csv", "parquet", "json")]
    with open(tmp_path / "viscera-cohort.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 1 + LEARNERS["Mary"] + LEARNERS["Lise"]
    assert len(json.loads((tmp_path / "viscera-cohort.json").read_text())) == len(rows)
    assert (tmp_path / "viscera-cohort.pdf").read_bytes().startswith(b"%PDF-")
    assert "Force, peak" in administered["measures"]
    assert "Ada" in found["watched"]["listed"]
    assert "found after" in found["watched"]["listed"]
    assert found["watched"]["banners"] == ["", ""], "the page that was left holds nothing any more"
    kept = Store(open_database(database))
    (trial,) = kept.trials("Ada")
    assert (trial.outcome, trial.passed) == ("found", True)
    assert kept.names() == ["Ada", "Lise", "Mary"]
    kept.close()
