"""Burnt springs: coagulated tissue is stiffer, and tears sooner, each as its material says.

A mass has a burn b from 0 to 1. With its material's factor β (`burnt_young`) and γ (`burnt_break_strain`),

    k_ij = k⁰_ij · ½(f_i + f_j),        f = 1 + (β − 1) b          the mean of both ends, so k_ij = k_ji
    ε_ij = ½(ε_i + ε_j),                ε = ε⁰ (1 − (1 − γ) b)     stretch at which the spring tears, for good

and a cell's bulk modulus takes the mean of f over its eight masses; a cell that lost an edge resists no more. Only
springs whose two ends are burnt tear (b ≥ `TEARS_FROM`): the layer comes apart, and stays on the fresh tissue below.
What counts is a spring's stretch and that of its two neighbours in line with it, ½, ¼ and ¼ (nonlocal, as Pijaudier-
Cabot and Bažant 1987, doi:10.1061/(ASCE)0733-9399(1987)113:10(1512)): an instrument that shoves one mass stretches one
spring and shortens the next, and tears nothing; tension tears. A mass whose springs would not hold it, fewer than
`HOLDING` of them, loses none, so no mass flies off by itself. A factor
never takes a spring beyond what the lattice was made for (`LatticeParams.stiffest`): `with_burn_headroom` makes room,
which costs √β as many substeps.

A mass is burnt as the skin next to it: each texel belongs to its nearest mass, whose burn is the mean over its texels,
by area at rest. Masses below the surface own none and stay fresh: heat is in the skin's layer alone.

Sources: stiffness 3.41 ± 0.67 times that of fresh liver after radiofrequency ablation in rabbits ("Real-time
elastography versus shear wave elastography on evaluating the timely radiofrequency ablation effect of rabbit liver");
beyond boiling it falls again (canine liver, pmc.ncbi.nlm.nih.gov/articles/PMC4005882), which is not modelled. That
burnt tissue tears at half the stretch is estimated. Kvick has no mechanics of burns.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from viscera.device import Port, Stage
from viscera.errors import InputError
from viscera.skin import Skin
from viscera.tissue.beneath import nearest_masses
from viscera.tissue.kernels import LIVE_STIFFNESS, LIVE_VISCOUS_TIME, Lattice, add_integer, load3
from viscera.tissue.layout import TILE
from viscera.tissue.params import LatticeParams
from viscera.tissue.springs import axis_stiffness
from viscera.tissue.tissue import Tissue
from viscera.tissue.volume import spring_share_of_young

wp.set_module_options({"enable_backward": False})

_TILE = wp.constant(TILE)

TEARS_FROM = wp.constant(0.1)
"""Burn of a mass from which its springs may tear: what is only warmed tears no sooner than the fresh tissue around it,
whose tearing is not modelled. Tuned."""
HOLDING = wp.constant(6)
"""Springs that keep a mass where it is; three that do not lie in a plane would, six do in any direction. Tuned."""

SPRINGS_ACROSS = 9
"""Springs that cross a cell's side, in a lattice without border: the straight one, and four diagonals of each kind."""


@dataclass(eq=False)
class Burning:
    """Made by `make_burning`. Arrays have one entry per place of the lattice unless said otherwise."""

    tissue: Tissue
    burn: Any
    """b of each mass, 0 to 1, float32. `sample_burn` writes it, or whoever knows better."""
    gain: Any
    """β − 1, float32."""
    break_strain: Any
    """ε⁰, float32."""
    loss: Any
    """1 − γ, float32."""
    fresh: Any
    """k⁰ over the reference stiffness, per direction and place, float16."""
    fresh_bulk: Any
    """The same of the cells; one element where ν = 0.25."""
    most: Any
    """Reference stiffness at the stiffest setting [N/m], one float32."""
    strain: Any
    """Per direction and place, mean of the two springs in line there, float32; scratch of `tear_burnt`."""
    bearing: Any
    """Springs of each mass that bear their stretch, int32; scratch too."""
    torn: Port
    """Springs torn so far, int64."""

    @property
    def torn_area(self) -> float:
        """Cross-section of tissue that has come apart [m²]."""
        return float(self.torn.host[0]) * self.tissue.params.spacing**2 / SPRINGS_ACROSS


def most_stiffening(params: LatticeParams) -> float:
    """Largest β of the lattice's materials."""
    return max(1.0, *(material.burnt_young for material in params.materials))


def with_burn_headroom(params: LatticeParams) -> LatticeParams:
    """The same lattice with substeps enough for all of it to burn at its stiffest setting."""
    return dataclasses.replace(params, stiffest=params.stiffest * most_stiffening(params))


def make_burning(tissue: Tissue) -> Burning:
    """Fresh tissue that can burn."""
    params, layout = tissue.params, tissue.layout
    if tissue.slabs is not None:
        raise InputError("burning: lattices cut into slabs do not burn.", "Make the lattice with `slabs=1`.")
    needed = tissue.young * most_stiffening(params)
    if needed > params.stiffest * (1.0 + 1e-9):
        raise InputError(
            f"stiffest = {params.stiffest:g} Pa leaves no room for burnt tissue of {needed:g} Pa.",
            "Make the organ with `burns=True`, or the lattice with `with_burn_headroom(params)`.",
        )
    device = tissue.device.warp
    number = np.zeros(len(params.nodes), dtype=np.int64) if params.material_of is None else params.material_of

    def per_mass(values: list[float]) -> Any:
        table = np.zeros(layout.slots, dtype=np.float32)
        table[layout.slot_of_node] = np.array(values)[number]
        return wp.array(table, dtype=wp.float32, device=device)

    most = axis_stiffness(params.stiffest * spring_share_of_young(params.first_poisson), params.spacing)
    return Burning(
        tissue,
        burn=wp.zeros(layout.slots, dtype=wp.float32, device=device),
        gain=per_mass([m.burnt_young - 1.0 for m in params.materials]),
        break_strain=per_mass([m.break_strain for m in params.materials]),
        loss=per_mass([1.0 - m.burnt_break_strain for m in params.materials]),
        fresh=wp.clone(tissue.constants.stiffness),
        fresh_bulk=wp.clone(tissue.bulk),
        most=wp.array([most], dtype=wp.float32, device=device),
        strain=wp.zeros(13 * layout.slots, dtype=wp.float32, device=device),
        bearing=wp.zeros(layout.slots, dtype=wp.int32, device=device),
        torn=tissue.device.port(1, wp.int64),
    )


def step_burning(stage: Stage, burning: Burning) -> None:
    """Brings stiffness up to `burning.burn`: once a frame, between ticks. Where rest is skipped, call `Tissue.wake`."""
    tissue = burning.tissue
    places = len(tissue.layout.tile_slot) * TILE
    burnt = [burning.gain, burning.burn, tissue.state.live.array, burning.most]
    # Before the first tick the device still has the stiffest setting, with which the lattice was probed.
    stage.upload(tissue.state.live)
    stage.launch(stiffen_springs, places, [tissue.constants, burning.fresh, *burnt, tissue.constants.stiffness])
    if tissue.params.has_volume:
        args = [tissue.constants, burning.fresh, burning.fresh_bulk, *burnt, tissue.bulk]
        stage.launch(stiffen_cells, places, args)


def tear_burnt(stage: Stage, burning: Burning, buffer: int) -> None:
    """Burnt springs that are stretched beyond what they bear are gone: once a frame, between ticks, with `buffer` that
    of the positions which is current when it runs (`Tissue.current`). Where some tore, `step_burning` must follow,
    for the cells; where rest is skipped, call `Tissue.wake`."""
    tissue, state = burning.tissue, burning.tissue.state
    places = len(tissue.layout.tile_slot) * TILE
    lattice, burn = tissue.constants, burning.burn
    motion = [state.live.array, state.position[buffer], state.velocity]
    stage.launch(mean_strains, places, [lattice, burn, *motion, burning.strain])
    bears = [lattice, burning.break_strain, burning.loss, burn, burning.strain]
    stage.launch(count_bearing, places, [*bears, burning.bearing])
    stage.launch(tear_springs, places, [*bears, burning.bearing, lattice.stiffness, burning.torn.array])
    stage.download(burning.torn)


# --- from the skin to the masses ---


@dataclass(frozen=True, eq=False)
class BurnSampling:
    """Which texels each mass at the surface owns. Made by `make_sampling`."""

    place: Any
    """Lattice places of the masses that own texels, int32."""
    start: Any
    """Where their texels begin, int32, one more than masses."""
    texel: Any
    """int32"""
    weight: Any
    """Of each texel in its mass's mean, float32; 1 in all."""


def make_sampling(tissue: Tissue, skin: Skin) -> BurnSampling:
    """By rest positions: of the skin as it is now, which should be at rest, and of the lattice. Faces of cuts are left
    out: they are nowhere yet (burnt_faces.py)."""
    texels = skin.texels.numpy()
    texels = texels[skin.face.numpy()[texels] < skin.outside]
    mass = nearest_masses(tissue, skin.position.numpy()[texels].astype(np.float64))
    owned = mass >= 0
    order = np.argsort(mass[owned], kind="stable")
    masses, start = np.unique(mass[owned][order], return_index=True)
    area = skin.rest_area.numpy()[texels][owned][order].astype(np.float64)
    total = np.add.reduceat(area, start) if len(start) else area
    counts = np.diff(np.append(start, len(area)))
    device = tissue.device.warp
    return BurnSampling(
        wp.array(tissue.layout.slot_of_node[masses], dtype=wp.int32, device=device),
        wp.array(np.append(start, len(area)), dtype=wp.int32, device=device),
        wp.array(texels[owned][order], dtype=wp.int32, device=device),
        wp.array((area / np.repeat(total, counts)).astype(np.float32), dtype=wp.float32, device=device),
    )


def sample_burn(stage: Stage, burning: Burning, sampling: BurnSampling, level: Any) -> None:
    """Takes each surface mass's burn from a map of burn levels on the skin, where 1 and more is burnt through."""
    maps = [sampling.place, sampling.start, sampling.texel, sampling.weight, level]
    stage.launch(gather_burn, sampling.place.shape[0], [*maps, burning.burn])


@wp.func
def burn_of_mass(
    start: wp.array(dtype=wp.int32),
    texel: wp.array(dtype=wp.int32),
    weight: wp.array(dtype=wp.float32),
    level: wp.array(dtype=wp.float32),
    i: int,
):
    """b of the i-th mass that owns texels."""
    total = float(0.0)
    for k in range(start[i], start[i + 1]):
        total += weight[k] * wp.clamp(level[texel[k]], 0.0, 1.0)
    return wp.min(total, 1.0)


@wp.kernel
def gather_burn(
    first: int,
    # in
    place: wp.array(dtype=wp.int32),
    start: wp.array(dtype=wp.int32),
    texel: wp.array(dtype=wp.int32),
    weight: wp.array(dtype=wp.float32),
    level: wp.array(dtype=wp.float32),
    # out
    burn_out: wp.array(dtype=wp.float32),
):
    i = first + wp.tid()
    burn_out[place[i]] = burn_of_mass(start, texel, weight, level, i)


# --- kernels on the lattice ---


@wp.func
def spring_end(lattice: Lattice, tile: int, lane: int, d: int):
    """Place of the mass at the far end of the spring in direction d, and the step to it."""
    r = (d + 14) // 3
    step = (d + 14) % 3 - 1
    return lattice.rows[9 * tile + r] + lane + step, wp.vec3(float(step), float(r % 3 - 1), float(r // 3 - 1))


@wp.func
def burnt_spring(
    lattice: Lattice,
    gain: wp.array(dtype=wp.float32),
    burn: wp.array(dtype=wp.float32),
    bound: float,
    tile: int,
    lane: int,
    d: int,
):
    """½(f_i + f_j) of the spring in direction d, at most `bound`."""
    i = lattice.tile_slot[tile] + lane
    j, _step = spring_end(lattice, tile, lane, d)
    return wp.min(1.0 + 0.5 * (gain[i] * burn[i] + gain[j] * burn[j]), bound)


@wp.func
def burnt_cell(
    lattice: Lattice, gain: wp.array(dtype=wp.float32), burn: wp.array(dtype=wp.float32), tile: int, lane: int
):
    """Mean of f over the eight masses of the cell whose low corner is this place."""
    factor = float(1.0)
    for corner in range(8):
        j = lattice.rows[9 * tile + 4 + corner // 2 % 2 + 3 * (corner // 4)] + lane + corner % 2
        factor += 0.125 * gain[j] * burn[j]
    return factor


@wp.kernel
def stiffen_springs(
    first: int,
    # params
    lattice: Lattice,
    # in
    fresh: wp.array(dtype=wp.float16),
    gain: wp.array(dtype=wp.float32),
    burn: wp.array(dtype=wp.float32),
    live: wp.array(dtype=wp.float32),
    most: wp.array(dtype=wp.float32),
    # out
    stiffness_out: wp.array(dtype=wp.float16),
):
    index = first + wp.tid()
    tile = index // _TILE
    lane = index - tile * _TILE
    i = lattice.tile_slot[tile] + lane
    bound = most[0] / live[LIVE_STIFFNESS]
    for d in range(13):
        place = d * lattice.slots + i
        # What was cut or torn stays so.
        if float(stiffness_out[place]) > 0.0:
            factor = burnt_spring(lattice, gain, burn, bound, tile, lane, d)
            stiffness_out[place] = wp.float16(float(fresh[place]) * factor)


@wp.func
def edge_lost(
    lattice: Lattice, fresh: wp.array(dtype=wp.float16), tile: int, lane: int, d: int, x: int, y: int, z: int
):
    """Whether the axis spring d of the mass at this step was there and is gone."""
    place = d * lattice.slots + lattice.rows[9 * tile + 4 + y + 3 * z] + lane + x
    return float(fresh[place]) > 0.0 and float(lattice.stiffness[place]) == 0.0


@wp.kernel
def stiffen_cells(
    first: int,
    # params
    lattice: Lattice,
    # in
    fresh: wp.array(dtype=wp.float16),
    fresh_bulk: wp.array(dtype=wp.float16),
    gain: wp.array(dtype=wp.float32),
    burn: wp.array(dtype=wp.float32),
    live: wp.array(dtype=wp.float32),
    most: wp.array(dtype=wp.float32),
    # out
    bulk_out: wp.array(dtype=wp.float16),
):
    """Of the cell whose low corner is this place."""
    index = first + wp.tid()
    tile = index // _TILE
    lane = index - tile * _TILE
    i = lattice.tile_slot[tile] + lane
    if float(fresh_bulk[i]) == 0.0:
        return
    factor = burnt_cell(lattice, gain, burn, tile, lane)
    lost = wp.bool(False)
    for corner in range(8):
        x = corner % 2
        y = corner // 2 % 2
        z = corner // 4
        # The cell's edges along x, y and z start at its corners with that coordinate 0; see springs.DIRECTIONS.
        if x == 0:
            lost = lost or edge_lost(lattice, fresh, tile, lane, 0, x, y, z)
        if y == 0:
            lost = lost or edge_lost(lattice, fresh, tile, lane, 2, x, y, z)
        if z == 0:
            lost = lost or edge_lost(lattice, fresh, tile, lane, 8, x, y, z)
    if lost:
        factor = 0.0
    bulk_out[i] = wp.float16(float(fresh_bulk[i]) * wp.min(factor, most[0] / live[LIVE_STIFFNESS]))


@wp.func
def opposite(lattice: Lattice, tile: int, lane: int, d: int):
    """Place whose spring in direction d ends here."""
    return lattice.rows[9 * tile + 8 - (d + 14) // 3] + lane - ((d + 14) % 3 - 1)


@wp.func
def displaced(
    position: wp.array(dtype=wp.float32), velocity: wp.array(dtype=wp.float32), tau: float, slots: int, i: int
):
    return load3(position, slots, i) - tau * load3(velocity, slots, i)


@wp.kernel
def mean_strains(
    first: int,
    # params
    lattice: Lattice,
    # in
    burn: wp.array(dtype=wp.float32),
    live: wp.array(dtype=wp.float32),
    position: wp.array(dtype=wp.float32),
    velocity: wp.array(dtype=wp.float32),
    # out
    strain_out: wp.array(dtype=wp.float32),
):
    """At each burnt mass, of the springs in line with each other that are there."""
    index = first + wp.tid()
    tile = index // _TILE
    lane = index - tile * _TILE
    i = lattice.tile_slot[tile] + lane
    if burn[i] < TEARS_FROM:
        return
    slots = lattice.slots
    tau = live[LIVE_VISCOUS_TIME]
    own = displaced(position, velocity, tau, slots, i)
    for d in range(13):
        above, step = spring_end(lattice, tile, lane, d)
        below = opposite(lattice, tile, lane, d)
        offset = step * lattice.spacing
        length = float(0.0)
        count = float(0.0)
        if float(lattice.stiffness[d * slots + i]) > 0.0:
            length += wp.length(offset + displaced(position, velocity, tau, slots, above) - own)
            count += 1.0
        if float(lattice.stiffness[d * slots + below]) > 0.0:
            length += wp.length(offset + own - displaced(position, velocity, tau, slots, below))
            count += 1.0
        strain_out[d * slots + i] = length / (wp.max(count, 1.0) * wp.length(offset)) - 1.0


@wp.func
def tears(
    break_strain: wp.array(dtype=wp.float32),
    loss: wp.array(dtype=wp.float32),
    burn: wp.array(dtype=wp.float32),
    strain: wp.array(dtype=wp.float32),
    row: int,
    i: int,
    j: int,
):
    """Whether the spring between i and j, whose direction's strains begin at `row`, bears no more."""
    if burn[i] < TEARS_FROM or burn[j] < TEARS_FROM:
        return False
    bears = break_strain[i] * (1.0 - loss[i] * burn[i]) + break_strain[j] * (1.0 - loss[j] * burn[j])
    return strain[row + i] + strain[row + j] > bears


@wp.kernel
def count_bearing(
    first: int,
    # params
    lattice: Lattice,
    # in
    break_strain: wp.array(dtype=wp.float32),
    loss: wp.array(dtype=wp.float32),
    burn: wp.array(dtype=wp.float32),
    strain: wp.array(dtype=wp.float32),
    # out
    bearing_out: wp.array(dtype=wp.int32),
):
    """Of the 26 springs of each burnt mass."""
    index = first + wp.tid()
    tile = index // _TILE
    lane = index - tile * _TILE
    i = lattice.tile_slot[tile] + lane
    if burn[i] < TEARS_FROM:
        return
    count = wp.int32(0)
    for d in range(13):
        row = d * lattice.slots
        above, _step = spring_end(lattice, tile, lane, d)
        below = opposite(lattice, tile, lane, d)
        if float(lattice.stiffness[row + i]) > 0.0 and not tears(break_strain, loss, burn, strain, row, i, above):
            count += 1
        if float(lattice.stiffness[row + below]) > 0.0 and not tears(break_strain, loss, burn, strain, row, below, i):
            count += 1
    bearing_out[i] = count


@wp.kernel
def tear_springs(
    first: int,
    # params
    lattice: Lattice,
    # in
    break_strain: wp.array(dtype=wp.float32),
    loss: wp.array(dtype=wp.float32),
    burn: wp.array(dtype=wp.float32),
    strain: wp.array(dtype=wp.float32),
    bearing: wp.array(dtype=wp.int32),
    # out
    stiffness_out: wp.array(dtype=wp.float16),
    torn_out: wp.array(dtype=wp.int64),
):
    index = first + wp.tid()
    tile = index // _TILE
    lane = index - tile * _TILE
    i = lattice.tile_slot[tile] + lane
    if burn[i] < TEARS_FROM:
        return
    if bearing[i] < HOLDING:
        return
    for d in range(13):
        row = d * lattice.slots
        if float(stiffness_out[row + i]) > 0.0:
            j, _step = spring_end(lattice, tile, lane, d)
            if tears(break_strain, loss, burn, strain, row, i, j) and bearing[j] >= HOLDING:
                stiffness_out[row + i] = wp.float16(0.0)
                add_integer(torn_out, 0, wp.int64(1))
