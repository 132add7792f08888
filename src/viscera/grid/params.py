"""What a flow on a grid is made of: its box, its numbers, what it carries."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from viscera.errors import InputError
from viscera.inputs import Vector3

Transport = Literal["semi_lagrangian", "maccormack"]
"""How velocity is carried: Stam's (1999) way, or corrected by Selle et al. (2008), which blurs less."""
Carrying = Literal["semi_lagrangian", "maccormack", "conservative"]
"""How a substance is carried: in the same ways, or by fluxes in whole units, of which none is ever lost."""
Solver = Literal["multigrid", "gauss_seidel"]
"""How velocity is made free of divergence: `pressure.py`, or the document's sweeps."""
Side = Literal["-x", "+x", "-y", "+y", "-z", "+z"]

MOST_CELLS = 2**28
"""Beyond this an index does not fit."""
UNSPREAD = 0.005
"""Share of the change by viscosity in a step that sweeps may leave undone."""
LEAST_SWEEPS, MOST_SWEEPS = 4, 100
"""For viscosity, where their number is not given. The most are enough up to νΔt/h² of about 9 in two dimensions and 6
in three; beyond, more of the change is left for the next step."""


@dataclass(frozen=True)
class Substance:
    """Something that the flow carries: smoke, warmth, blood."""

    name: str
    carried: Carrying = "conservative"
    unit: float = 1.0
    """Of a conservative one: how much of it one whole unit is. A cell holds up to 2·10⁹ units."""
    diffusivity: float = 0.0
    """[m²/s]"""
    lift: float = 0.0
    """Upward acceleration of the fluid per amount of it in a volume [m/s² over amount/m³]; per value of one that is not
    conservative."""
    fading: float = 0.0
    """Share that is lost in a second [1/s]; of one that is not conservative: warmth that walls take."""
    keeps_total: bool = False
    """Of one that is not conservative: whether all of it is scaled after it was carried, so that its sum stays."""


@dataclass(frozen=True)
class GridParams:
    """A box of cells. Two dimensions are one layer of cells, a few layers are a few."""

    cells: tuple[int, int, int]
    """Along x, y, z."""
    spacing: float
    """Side of a cell [m]."""
    dt: float
    """[s]"""
    origin: Vector3 = (0.0, 0.0, 0.0)
    """The lowest corner of the box [m]."""
    substances: tuple[Substance, ...] = ()
    open_sides: tuple[Side, ...] = ()
    """Sides of the box through which fluid comes and goes; the others are walls."""
    inflow: float = 0.0
    """Speed with which fluid enters through the low end of x, where that is no open side [m/s]: a wind tunnel."""
    viscosity: float = 0.0
    """ν [m²/s]"""
    no_slip: bool = False
    """Whether obstacles hold the fluid beside them; where viscosity matters. Along the walls of the box it slips."""
    transport: Transport = "maccormack"
    confinement: float = 0.0
    """ε of Fedkiw, Stam and Jensen (2001) [1/s]: gives back small whirls that a coarse grid loses, by εh(N × ω), so the
    less the finer the cells are. A force that may give back more than was lost."""
    solver: Solver = "multigrid"
    cycles: int = 5
    """Of multigrid, in a step. A cycle leaves about a tenth of the divergence, however many cells there are. Four
    leave less than 1e-4 beside a bar, but not in every step over an organ with tools that stir; five do."""
    sweeps: int = 20
    """Of Gauss–Seidel over all cells, in a step: Stam's number."""
    diffusion_sweeps: int | None = None
    """Of Gauss–Seidel for (I − νΔt∇²); the document takes 20. None: as many as leave less than `UNSPREAD` of what
    viscosity and diffusivity, as they are when the flow is made, change in a step (`spread_sweeps`)."""
    dye_steps: int = 1
    """Into which a step is cut for conservative substances. Fluid may cross one cell in each; where it is faster,
    what it carries lags behind."""

    def __post_init__(self) -> None:
        self._check_box()
        for name in ("viscosity", "confinement"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0.0):
                raise InputError(f"{name} = {value} is not possible.", "It must be a finite number, 0 or more.")
        if not math.isfinite(self.inflow) or (self.inflow != 0.0 and ("-x" in self.open_sides or not self.open_sides)):
            raise InputError(
                f"inflow = {self.inflow} with open sides {self.open_sides} is not possible.",
                "It enters at -x, which must be a wall, and leaves through another side, which must be open.",
            )
        for name, kinds in (("transport", Transport), ("solver", Solver)):
            if getattr(self, name) not in get_args(kinds):
                allowed = ", ".join(get_args(kinds))
                raise InputError(f"{name} = {getattr(self, name)!r} is not known.", f"Allowed are {allowed}.")
        for side in self.open_sides:
            if side not in get_args(Side):
                raise InputError(f"side {side!r} is not known.", f"Allowed are {', '.join(get_args(Side))}.")
            if side in ("-z", "+z") and self.cells[2] == 1:
                raise InputError(f"side {side!r} of one layer cannot be open.", "Open sides along x or y.")
        for name in ("cycles", "sweeps", "diffusion_sweeps", "dye_steps"):
            if getattr(self, name) is not None and not 1 <= getattr(self, name) <= 1000:
                raise InputError(f"{name} = {getattr(self, name)} is not possible.", "Allowed are 1 to 1000.")
        self._check_substances()

    def _check_box(self) -> None:
        for name in ("spacing", "dt"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value > 0.0):
                raise InputError(f"{name} = {value} is not possible.", "It must be a finite number above 0.")
        if len(self.cells) != 3 or min(self.cells) < 1 or max(self.cells) < 4:
            raise InputError(f"cells = {self.cells} are not possible.", "Give three numbers; one layer is (x, y, 1).")
        if math.prod(count + 3 for count in self.cells) > MOST_CELLS:
            raise InputError(f"cells = {self.cells} are too many.", f"Allowed are {MOST_CELLS} in all.")

    def _check_substances(self) -> None:
        names = [one.name for one in self.substances]
        if len(set(names)) != len(names):
            raise InputError(f"two substances have one name: {names}.", "Give each its own.")
        for one in self.substances:
            if one.carried not in get_args(Carrying):
                allowed = ", ".join(get_args(Carrying))
                raise InputError(f"carried = {one.carried!r} is not known.", f"Allowed are {allowed}.")
            numbers = (one.unit, one.diffusivity, one.lift, one.fading)
            if not all(map(math.isfinite, numbers)) or one.unit <= 0.0 or min(one.diffusivity, one.fading) < 0.0:
                raise InputError(f"substance {one.name!r} has {numbers}.", "Give finite numbers; the unit above 0.")
            spread = one.diffusivity * self.dt / (self.dye_steps * self.spacing**2)
            if one.carried == "conservative" and spread > 1.0 / 6.0:
                raise InputError(
                    f"diffusivity = {one.diffusivity} of {one.name!r} spreads over {spread:.3g} cells² in a step.",
                    "Up to 1/6 is possible: make the step shorter, or `dye_steps` more.",
                )

    @property
    def spread_sweeps(self) -> int:
        """Sweeps for (I − k∇²), k = νΔt/h², with d axes: over two colours a sweep leaves (2dk / (1 + 2dk))² of what is
        smooth, which is what they leave longest (Young 1954: the square of Jacobi's factor)."""
        if self.diffusion_sweeps is not None:
            return self.diffusion_sweeps
        spreads = [self.viscosity, *(one.diffusivity for one in self.substances if one.carried != "conservative")]
        axes = 3 if self.cells[2] > 1 else 2
        jacobi = 2.0 * axes * max(spreads) * self.dt / self.spacing**2
        if jacobi == 0.0:
            return LEAST_SWEEPS
        needed = math.ceil(0.5 * math.log(UNSPREAD) / math.log(jacobi / (1.0 + jacobi)))
        return min(max(needed, LEAST_SWEEPS), MOST_SWEEPS)

    @property
    def cell_volume(self) -> float:
        """[m³]; of one layer, too, as if it were one cell deep."""
        return self.spacing**3
