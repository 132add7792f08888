"""How hard tissue pushes back, over its stiffness: a sweep of a few runs in two processes.

Pressed slowly and equally deep, tissue pushes back in proportion to its Young's modulus. The hand of palpation presses
within half a second, so part of its force is inertia and viscosity, which do not follow it. It ends in a check:
tissue twice as stiff pushes back harder, and less than twice as hard.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from viscera.sweeps import Plan, sweep


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, help="keep the table and the plot here: results.csv")
    told = parser.parse_args()
    plan = Plan("palpation", 0.5, {"stiffness": (2.0, 4.0)}, tuple(range(told.seeds)), ("pins",), detail=0.1)
    with TemporaryDirectory() as folder:
        finished = sweep(plan, told.out or Path(folder) / "results.csv", workers=told.workers)
    for row in finished.summary:
        print("  ".join(f"{cell:>18}" for cell in row))
    force = {
        value: np.mean([row.peak_force for row in finished.rows if row.settings["stiffness"] == value])
        for value in (2.0, 4.0)
    }
    ratio = force[4.0] / force[2.0]
    print(f"twice as stiff pushes back {ratio:.2f} times as hard")
    assert not finished.failed
    assert 1.2 < ratio < 2.0, "the force does not follow the stiffness"
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
