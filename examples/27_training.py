"""A learner finds a hidden nodule, trial by trial: scores, a database of trials, a learning curve, a report.

The hand of this learner errs less with every trial. Each trial is a drill of `palpation` with its own seed: a pin is
stuck where the learner believes the nodule to be, and "here it is" ends it. The trials go into an SQLite file, as those
of the page do, and from there into a table and a report with CUSUM and LC-CUSUM.

    python examples/27_training.py [--trials 8] [--out DIR]

Needs `pip install 'viscera[training]'`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

import viscera
from viscera.inputs import EndDrill, StartDrill, ToolInput
from viscera.scenarios.palpation import NODULES, middle
from viscera.scores import score
from viscera.training.database import open_database
from viscera.training.export import write as export
from viscera.training.report import curves, facts
from viscera.training.report import write as write_report
from viscera.training.store import Store

PIN = 1
FIRST_ERROR = 0.04
"""How far the learner's first guess is off [m]; the n-th is off by this over n."""


def trial(world: viscera.World, seed: int, error: float) -> None:
    """One drill from start to end."""
    world.apply(StartDrill(level=0, seed=seed))
    world.step(16)
    positions = world.organs[0].body.positions
    x, y, _ = middle(seed, positions, NODULES["Easy"]).tolist()
    top = float(positions[:, 2].max())
    inwards = -1.0 if x > 0.0 else 1.0  # so that the pin meets the tissue
    for height, grip in ((0.02, 0.0), (0.0, 1.0), (0.0, 0.0)):
        world.apply(ToolInput(PIN, (x + inwards * error, y, top + height), grip=grip))
        world.step(160)
    world.apply(EndDrill("found", certainty=0.75))
    world.step(32)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--out", type=Path, default=None, help="where database, table and report go")
    chosen = parser.parse_args()
    folder = chosen.out or Path(tempfile.mkdtemp(prefix="viscera-"))
    folder.mkdir(parents=True, exist_ok=True)

    store = Store(open_database(f"sqlite:///{folder / 'trials.sqlite'}"))
    world = viscera.make("palpation", device="cpu", seed=1)
    off = []
    for number in range(1, chosen.trials + 1):
        trial(world, number, FIRST_ERROR / number)
        ended = world.trial()
        assert ended is not None
        told = score(ended)
        store.keep("Ada", told)
        off.append(told.values()["off"])
        print(f"trial {number}: {told.outcome}, {off[-1]:.1f} mm off. {told.advice}")
    world.close()

    kept = store.trials("Ada")
    export(kept, folder / "trials.csv")
    write_report(kept, "Ada", folder / "report.html")
    (curve,) = curves(kept, "Ada")
    print("\n".join(f"{key}: {value}" for key, value in facts(curve)))
    print(f"report: {folder / 'report.html'}")
    store.close()

    assert [one.passed for one in kept] == sorted(one.passed for one in kept), "passed, once learnt"
    # The pin goes into the tissue where it is stuck, a mass or two beside what was meant.
    assert np.allclose(off, [1e3 * FIRST_ERROR / number for number in range(1, chosen.trials + 1)], atol=2.0)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
