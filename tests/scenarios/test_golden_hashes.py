"""Worlds stay what they were: state hashes of all scenarios, kept beside this file, computed again.

The same seed and inputs give the same bits on one kind of processor with one Warp, one NumPy and one library of linear
algebra behind it. Another processor has other instructions (fused multiply-add, wider vectors), another compiler orders
sums in another way: its bits differ in the last place, and after some ticks anywhere. NumPy's products of matrices are
such sums: OpenBLAS chooses its loops by the processor, or by a variable of the environment. So a hash counts only where
all four are as they were when it was taken; elsewhere the test is skipped and says why. A change that is meant to
change a world takes the hashes again:

    python tests/scenarios/test_golden_hashes.py        # all scenarios, some minutes

and its commit says which ones changed and why.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import warp as wp

import viscera
from viscera import machine
from viscera.bench.sources import current_commit, our_sources
from viscera.scenarios import catalogue

KEPT = Path(__file__).with_name("golden_hashes.json")
TICKS, SEED = 100, 1
"""0.1 s of each scenario's script: six turns of the systems."""
QUICK = ("palpation", "cautery", "bleeding", "river")
"""In `make test`; the others in `make verify`."""


def place() -> dict[str, str]:
    """What the bits of a world depend on besides its own code."""
    kind = str(machine.describe()["cpu_kind"])
    versions = {"warp": str(wp.__version__), "numpy": np.__version__}
    return {"cpu_kind": kind, "machine": platform.machine(), **versions, "products": digest_of_products()}


def digest_of_products() -> str:
    """Of what NumPy makes of some matrices: other loops of its linear algebra give other last bits."""
    rng = np.random.default_rng(0)
    digest = hashlib.sha256()
    for rows, inner, columns in ((3, 3, 3), (4, 3, 1), (64, 3, 3), (40, 70, 50), (300, 5, 300)):
        a, b = rng.normal(size=(rows, inner)), rng.normal(size=(inner, columns))
        for kind in (np.float32, np.float64):
            digest.update((a.astype(kind) @ b.astype(kind)).tobytes())
        digest.update(np.linalg.svd(a, compute_uv=False).tobytes())
    return digest.hexdigest()[:16]


def played(name: str) -> str:
    """The hash of a world after its script."""
    world = viscera.make(name, device="cpu", seed=SEED)
    try:
        for tick in range(TICKS):
            for one in world.script(tick):
                world.apply(one)
            world.advance()
        return world.state_hash()
    finally:
        world.close()


def kept() -> dict[str, Any]:
    return json.loads(KEPT.read_text())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in catalogue()]
)
def test_a_world_has_the_bits_that_it_had(name: str) -> None:
    table = kept()
    other = {key: (value, here) for key, value in table["place"].items() if (here := place()[key]) != value}
    if other:
        pytest.skip(f"hashes were taken elsewhere (then, here): {other}")
    row = table["worlds"][name]
    assert (row["seed"], row["ticks"]) == (SEED, TICKS)
    assert played(name) == row["hash"], f"{name} is another world than at {row['commit']}: see this file's head"


def test_every_scenario_has_its_hash() -> None:
    worlds = kept()["worlds"]
    assert set(worlds) == set(catalogue())
    assert all(re.fullmatch("[0-9a-f]{64}", row["hash"]) and row["commit"] for row in worlds.values())


def take() -> None:
    """All hashes again; rows that did not change keep the commit at which they were taken."""
    before = kept()["worlds"] if KEPT.is_file() and kept()["place"] == place() else {}
    commit, worlds = current_commit(our_sources()), {}
    for name in catalogue():
        row = {"seed": SEED, "ticks": TICKS, "hash": played(name), "commit": commit}
        known = before.get(name, {})
        worlds[name] = known if known.get("hash") == row["hash"] else row
        print(name, "as before" if worlds[name] is known else "taken", file=sys.stderr)
    KEPT.write_text(json.dumps({"place": place(), "worlds": worlds}, indent=1) + "\n")


if __name__ == "__main__":
    take()
