"""Draws docs/images/grid-flows.png: vortices behind a cylinder, and the profile of a plume beside its closed form.

python docs/images/grid-flows.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from verify.grid_cases import DIAMETER, laminar_plume, vortex_street
from viscera.device import open_device


def main() -> None:
    device = open_device("cpu", 1)
    street, plume = vortex_street(device), laminar_plume(device)
    draw(street.curl, street.strouhal, plume.profile, (plume.axis, plume.width))


def draw(curl: np.ndarray, strouhal: float, profile: np.ndarray, found: tuple[float, float]) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 3.6), width_ratios=(1.7, 1), dpi=110)
    x, y = curl.shape[1] / DIAMETER, curl.shape[0] / DIAMETER
    left.imshow(curl, origin="lower", extent=(0, x, 0, y), cmap="RdBu", vmin=-3, vmax=3, interpolation="bilinear")
    left.add_patch(plt.Circle((5.5, 10.0), 0.5, color="0.3"))
    left.set(ylim=(6, 14), title=f"Re 100: f D/U = {strouhal:.3f}", xlabel="x / D", ylabel="y / D")
    radius, speed = profile
    right.plot(radius, speed, ".", ms=2, color="#2a7f8e", label="grid, all cells of a layer")
    r = np.linspace(0.0, 4.0, 200)
    right.plot(r, 1.0 / (1.0 + (np.sqrt(2.0) - 1.0) * r**2) ** 2, "k-", lw=1, label="closed form")
    right.set(
        xlim=(0, 4), ylim=(-0.05, 1.05), xlabel="r over half-speed radius", ylabel="w over axis", title="Plume, Pr 1"
    )
    right.text(1.5, 0.6, f"axis {found[0]:.3f}, width {found[1]:.3f}\nof the closed form", fontsize=9)
    right.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(Path(__file__).with_suffix(".png"))


if __name__ == "__main__":
    main()
