"""Writes `src/viscera/xray/attenuation.csv` from the package xraydb, which has Elam's tables.

python tests/xray/make_attenuation.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

PATH = Path(__file__).resolve().parents[2] / "src" / "viscera" / "xray" / "attenuation.csv"
ELEMENTS = ["H", "C", "N", "O", "Na", "Mg", "Al", "Si", "P", "S", "Cl", "Ar", "K", "Ca", "Fe", "Cu", "I", "Cs", "Ba"]
ENERGIES = np.arange(10.5, 150.0)
"""Middles of bins of 1 keV."""
HEAD = """\
# Mass attenuation coefficients [cm2/g], coherent scattering included, of elements at the middles of bins of 1 keV.
# From W. T. Elam, B. D. Ravel, J. R. Sieber, Radiation Physics and Chemistry 63, 121 (2002), through xraydb.
# Written by tests/xray/make_attenuation.py
"""


def tabulated() -> NDArray[np.float64]:
    """[cm²/g], shape (energies, elements)."""
    import xraydb

    return np.stack([xraydb.mu_elam(name, 1000.0 * ENERGIES) for name in ELEMENTS], axis=1)


def main() -> None:
    rows = [f"{e:.1f}," + ",".join(f"{v:.5g}" for v in row) for e, row in zip(ENERGIES, tabulated(), strict=True)]
    PATH.write_text(HEAD + "keV," + ",".join(ELEMENTS) + "\n" + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
