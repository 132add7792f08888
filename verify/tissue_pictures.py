"""Pictures of docs/tissue.md, drawn from what lattice.py measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from verify.contact import Indentation
    from verify.elastic import Beam
    from verify.lattice_reference import Array

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
DARK, FLESH, BLUE, GREY = "#333333", "#b5483a", "#2f6f9f", "#9a9a9a"


def _figure(width: float, height: float, panels: int) -> tuple[Any, Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, panels, squeeze=False)[0]
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _save(figure: Any, name: str) -> None:
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / name, dpi=110)


def draw_beams(beams: tuple[Beam, ...]) -> None:
    """Shape of the sagging beams, and error against cells of thickness."""
    figure, (shape, errors) = _figure(10.0, 3.6, 2)
    longest = beams[-1].axis
    shape.plot(
        longest[:, 0] / longest[-1, 0], -100 * longest[:, 2] / longest[-1, 0], color=DARK, lw=2.5, label="Timoshenko"
    )
    for beam, colour in zip(beams, (GREY, BLUE, FLESH), strict=True):
        x, sag = beam.axis[:, 0], beam.axis[:, 1]
        shape.plot(x / x[-1], -100 * sag / x[-1], color=colour, lw=1.2, ls="--", label=f"{beam.cells} cells thick")
    shape.set(
        xlabel="place along the beam, x/L", ylabel="deflection, % of L", title="A cantilever under its weight, L = 10 h"
    )
    shape.legend(frameon=False)
    cells = np.array([beam.cells for beam in beams])
    for name, colour, marker, values in (
        ("deflection", FLESH, "o", [abs(beam.deflection_error) for beam in beams]),
        ("first frequency", BLUE, "s", [abs(beam.frequency_error) for beam in beams]),
    ):
        errors.loglog(cells, 100 * np.array(values), color=colour, marker=marker, label=name)
    first = 100 * abs(beams[0].deflection_error)
    errors.loglog(cells, first * (cells[0] / cells) ** 2, color=GREY, lw=1, ls=":", label="second order")
    errors.axhline(5, color=DARK, lw=0.8, ls="--")
    errors.set(xlabel="cells of thickness", ylabel="error, %", title="Error against beam theory")
    errors.set_xticks(cells, [str(c) for c in cells])
    errors.set_xticks([], minor=True)
    ticks = (0.5, 1.0, 2.0, 5.0, 10.0)
    errors.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    errors.set_yticks([], minor=True)
    errors.legend(frameon=False)
    _save(figure, "tissue-beam.png")


def draw_indentation(found: Indentation) -> None:
    """Force over depth beside Hertz, and the masses of the middle plane under the sphere."""
    figure, (curve, plane) = _figure(10.0, 4.0, 2)
    depth = 1e3 * found.depth
    fine = np.linspace(0.0, depth[-1], 100)
    curve.plot(fine, found.hertz[-1] * (fine / depth[-1]) ** 1.5, color=GREY, label="Hertz, half-space")
    thicker = np.interp(fine, depth, found.layer / found.hertz) * found.hertz[-1] * (fine / depth[-1]) ** 1.5
    curve.plot(fine, thicker, color=DARK, label="Hertz, layer of the block's thickness")
    curve.plot(depth, found.force, "o", color=FLESH, label="lattice")
    curve.set(
        xlabel="depth, mm",
        ylabel="force, N",
        title=f"A smooth sphere, R = {1e3 * found.radius:.0f} mm, dx = {1e3 * found.spacing:.0f} mm",
    )
    curve.legend(frameon=False)
    x, z = 1e3 * found.section.T
    plane.plot(x, z, ".", ms=2.2, color=FLESH)
    turn = np.linspace(-np.pi, 0.0, 200)
    plane.plot(
        1e3 * (found.center[0] + found.radius * np.cos(turn)),
        1e3 * (found.center[1] + found.radius * np.sin(turn)),
        color=DARK,
    )
    top = 1e3 * (found.center[1] - found.radius)
    plane.set(
        xlim=1e3 * found.center[0] + np.array([-60.0, 60.0]),
        ylim=(top - 55.0, top + 30.0),
        aspect="equal",
        xlabel="x, mm",
        ylabel="z, mm",
        title="Masses of the middle plane",
    )
    _save(figure, "tissue-indentation.png")


def draw_energy(change: Array, every: int) -> None:
    """Energy of the undamped lattice over its start."""
    figure, (axes,) = _figure(7.0, 2.8, 1)
    axes.plot(np.arange(len(change)) * every, 100 * change, color=FLESH, lw=0.7)
    for bound in (-0.1, 0.1):
        axes.axhline(bound, color=DARK, lw=0.8, ls="--")
    axes.set(
        xlabel="step", ylabel="change of energy, %", title="Energy of an undamped, damaged lattice", ylim=(-0.2, 0.2)
    )
    _save(figure, "tissue-energy.png")
