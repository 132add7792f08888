"""Draws docs/images/water-dam.png: python docs/images/water-dam.py

Andersson's dam with the obstacle of his Figure 4.1 (four moments), and the front of a dam against the measurements of
Martin and Moyce for three kinds of pressure. Ends in a check: nobody has left the tank, and fronts are within 15 %.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent))

from verify import water_cases as cases  # noqa: E402
from viscera.device import open_device  # noqa: E402

device = open_device("cpu")
dam = cases.andersson_dam(device, 0.8, obstacle=True)
figure, panels = plt.subplot_mosaic(
    [["a", "b", "front"], ["c", "d", "front"]], figsize=(13, 5.2), layout="constrained", width_ratios=[1, 1, 1.1]
)
for name, number in zip("abcd", (0, 3, 5, 8), strict=True):
    now = dam["snapshots"][number]
    panels[name].scatter(dam["walls"][:, 0], dam["walls"][:, 1], s=1, c="0.3")
    speed = np.sqrt((now["velocity"] ** 2).sum(axis=1))
    panels[name].scatter(now["position"][:, 0], now["position"][:, 1], s=9, c=speed, vmin=0.0, vmax=2.5, cmap="viridis")
    panels[name].set(xlim=(-0.03, 0.83), ylim=(-0.03, 0.36), aspect="equal", title=f"{0.1 * number:.1f} s")
fronts = {
    "gas": {"equation": "gas", "alpha": 0.02},
    "Tait": {"equation": "tait", "alpha": 0.02},
    "incompressible": {"equation": "incompressible", "iterations": 20},
}
errors = {}
for label, options in fronts.items():
    found = cases.dam_break(device, 20, **options)
    errors[label] = found["error"]
    panels["front"].plot(found["times"], found["fronts"], label=f"{label}, {100 * found['error']:.0f} %")
panels["front"].plot(*cases.MARTIN_MOYCE.T, "ko", label="Martin and Moyce 1952")
panels["front"].set(xlabel="t √(2g/a)", ylabel="front / a", title="a column twice as high as wide")
panels["front"].legend()
figure.savefig(HERE / "water-dam.png", dpi=110)
assert dam["lost"] == 0, f"{dam['lost']} particles left the tank"
assert max(errors.values()) < 0.15, errors
print(f"nobody left; fronts: {errors}")
