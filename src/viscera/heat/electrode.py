"""Electrodes: how an instrument near tissue puts power into it.

Each texel's nearness n to a part at signed distance d is, with the electrode's reach r (Kvick §3.3.2),

    contact    n = 1 where d < r, else 0              the document's choice
    distance   n = clamp(1 − d/r, 0, 1)               what it tried first

in each of `SAMPLES` poses on the tool's way through the frame. In every pose a monopolar electrode takes the largest n
of its active parts, a bipolar one the least: it heats what lies within reach of both jaws at once. Their mean over the
poses counts, so that a fast tool leaves a line and not a row of stamps. The current goes where tissue conducts, by its
water w and char c,

    G_i = n_i A_i g_i,    g = w + σ_dry (1 − w)(1 − c),    P_i = V² G_i,    V² = min(P/ΣG, V²_max)

with P the power that the generator is set to. Dry tissue resists, and eschar insulates: heat moves to wet tissue
around, and when there is none left the generator's voltage is not enough and its power falls, as in the theatre.

Differs from the source: it raises a temperature by a fixed rate where the distance is small enough; `constant="flux"`
does that (P_i = flux n_i A_i). Current in depth is not solved: it heats the layer of the skin's heat alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import warp as wp

from viscera.device import BLOCK, Port, Stage
from viscera.errors import InputError
from viscera.geometry.distance import FieldGrid, in_grid, sample_field
from viscera.geometry.parts import JointedTool, ball_of_part, near_part_ball, part_frame
from viscera.heat.burn import Burn, BurnRates, char_of
from viscera.heat.conduction import finite_number
from viscera.heat.sums import FAN, TreeSum, end_of_block, finish_sum, first_of_block, make_sum

wp.set_module_options({"enable_backward": False})

Nearness = Literal["contact", "distance"]
Constant = Literal["power", "flux"]

SAMPLES = 4
"""Poses on the tool's way through a frame: at 16 ms a tool 1 mm wide leaves an unbroken line up to 0.25 m/s."""

CHUNK = 64
"""Texels per thread on cpu, where Warp copies a kernel's arguments for every thread."""

_SAMPLES = wp.constant(SAMPLES)
PerPose = wp.types.vector(length=SAMPLES, dtype=wp.float32)
"""One number for each of these poses."""


@dataclass(frozen=True)
class ElectrodeParams:
    """How an electrode heats."""

    power: float = 30.0
    """That the generator is set to [W]; 20 to 40 W are usual for a monopolar hook, as much for bipolar forceps."""
    reach: float = 0.3e-3
    """Tissue nearer than this is heated [m]; the gap that a spark or wet tissue bridges. Tuned."""
    nearness: Nearness = "contact"
    constant: Constant = "power"
    bipolar: bool = False
    """Whether current goes from part to part, and heats what is within reach of all active ones."""
    most_flux: float = 8.0e6
    """Where the generator's voltage ends: power into wet tissue per area [W/m²]; and the flux where that is constant.
    Tuned."""
    dry_conductance: float = 0.1
    """σ_dry: of dry tissue over that of wet; what sparks carry. Tuned: eschar in about two seconds."""

    def __post_init__(self) -> None:
        for name, kinds in (("nearness", get_args(Nearness)), ("constant", get_args(Constant))):
            if getattr(self, name) not in kinds:
                raise InputError(f"{name} = {getattr(self, name)!r} is not known.", f"Allowed are {', '.join(kinds)}.")
        if not isinstance(self.bipolar, bool):
            raise InputError(f"bipolar = {self.bipolar!r} is not possible.", "It is True or False.")
        for name, least, most in (
            ("power", 0.0, 1000.0),
            ("reach", 1e-6, 0.1),
            ("most_flux", 0.0, 1e12),
            ("dry_conductance", 0.0, 1.0),
        ):
            value = finite_number(name, getattr(self, name))
            if not least <= value <= most:
                raise InputError(f"{name} = {value} is not possible.", f"Allowed are {least:g} to {most:g}.")
            object.__setattr__(self, name, value)


LIVE_FLOATS = 8
LIVE_ON, LIVE_POWER, LIVE_REACH = wp.constant(0), wp.constant(1), wp.constant(2)
LIVE_BY_DISTANCE, LIVE_CONSTANT_FLUX = wp.constant(3), wp.constant(4)
LIVE_MOST_FLUX, LIVE_DRY = wp.constant(5), wp.constant(6)


@dataclass(eq=False)
class Electrode:
    """Made by `make_electrode`."""

    tool: JointedTool
    burn: Burn
    params: ElectrodeParams
    parts: tuple[int, ...]
    """Numbers of the tool's active parts."""
    numbers: Any
    """The same, int32, shape (parts,)."""
    fields: Any
    """`FieldGrid` of each of them, shape (parts,)."""
    frames: Any
    """Where each of them is in each pose of the step, a transform of 7 float32, shape (parts · SAMPLES,) [m]."""
    balls: Any
    """Centre and squared radius of a ball around each of them on its way, vec4, shape (parts,) [m, m²]."""
    live: Port
    """Pedal and generator, float32, shape (LIVE_FLOATS,); see LIVE_*."""
    conductance: Any
    """Nearness, then G, per texel, float32, shape (width · height,) [m²]."""
    sums: TreeSum
    """ΣG and the touched area [m²]."""
    scale: Any
    """V², float32, shape (1,) [W/m²]."""
    delivered: Port
    """Power into tissue [W] and touched area [m²] in the last step, float32, shape (2,)."""

    def press(self, pedal: bool) -> None:
        """The foot switch: whether it heats from the next step on."""
        self.live.host[0] = float(pedal)

    def set(self, params: ElectrodeParams) -> None:
        """Changes the generator while programs run; what a pedal says stays."""
        for part in self.parts:
            margin = self.tool.parts[part].field.margin
            if params.reach > margin:
                raise InputError(
                    f"reach = {params.reach} is beyond the distance field of {self.tool.parts[part].name!r}.",
                    f"It knows distances up to {margin:g} m: make the part with a larger margin.",
                )
        if params.bipolar != self.params.bipolar:
            raise InputError("bipolar cannot change.", "Make another electrode.")
        self.params = params
        self.live.host[1:7] = (
            params.power,
            params.reach,
            float(params.nearness == "distance"),
            float(params.constant == "flux"),
            params.most_flux,
            params.dry_conductance,
        )


@wp.kernel
def find_frames(
    first: int,
    # in
    numbers: wp.array(dtype=wp.int32),
    poses: wp.array(dtype=wp.float32),
    # out
    frames_out: wp.array(dtype=wp.transform),
    balls_out: wp.array(dtype=wp.vec4),
):
    """Where each active part is in each pose, and a ball around all of them: once for all texels."""
    k = first + wp.tid()
    if k % _SAMPLES == 0:
        balls_out[k // _SAMPLES] = ball_of_part(poses, numbers[k // _SAMPLES])
    share = (float(k % _SAMPLES) + 0.5) / float(_SAMPLES)
    frames_out[k] = part_frame(poses, numbers[k // _SAMPLES], share)


@wp.func
def nearness_to(
    field: FieldGrid,
    turn: int,
    live: wp.array(dtype=wp.float32),
    frames: wp.array(dtype=wp.transform),
    x: wp.vec3,
):
    """n of one active part in each pose."""
    near = PerPose()
    reach = live[LIVE_REACH]
    for k in range(_SAMPLES):
        frame = frames[turn * _SAMPLES + k]
        local = wp.quat_rotate_inv(wp.transform_get_rotation(frame), x - wp.transform_get_translation(frame))
        # Outside the grid is beyond its margin, which no reach exceeds.
        if in_grid(field, local):
            distance = sample_field(field, local)[3]
            if live[LIVE_BY_DISTANCE] != 0.0:
                near[k] = wp.clamp(1.0 - distance / reach, 0.0, 1.0)
            elif distance < reach:
                near[k] = 1.0
    return near


@wp.func
def nearness_of(
    bipolar: int,
    live: wp.array(dtype=wp.float32),
    numbers: wp.array(dtype=wp.int32),
    fields: wp.array(dtype=FieldGrid),
    poses: wp.array(dtype=wp.float32),
    frames: wp.array(dtype=wp.transform),
    balls: wp.array(dtype=wp.vec4),
    x: wp.vec3,
):
    """n of all active parts together at x, the mean over the poses."""
    near = PerPose()
    total = float(0.0)
    if live[LIVE_ON] != 0.0:
        for turn in range(numbers.shape[0]):
            ball = balls[turn]
            close = wp.length_sq(x - wp.vec3(ball[0], ball[1], ball[2])) < ball[3]
            if close:
                close = near_part_ball(poses, numbers[turn], x)
            if close:
                here = nearness_to(fields[turn], turn, live, frames, x)
                # Both jaws must be near at the same time: poses are joined one by one.
                if bipolar != 0 and turn > 0:
                    near = wp.min(near, here)
                else:
                    near = wp.max(near, here)
                total = wp.dot(near, PerPose(1.0))
            elif bipolar != 0:
                total = 0.0
                break
    return total / float(_SAMPLES)


@wp.kernel
def near_parts(
    first: int,
    # params
    bipolar: int,
    chunk: int,
    # in
    live: wp.array(dtype=wp.float32),
    numbers: wp.array(dtype=wp.int32),
    fields: wp.array(dtype=FieldGrid),
    poses: wp.array(dtype=wp.float32),
    frames: wp.array(dtype=wp.transform),
    balls: wp.array(dtype=wp.vec4),
    texels: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.vec3),
    # out
    near_out: wp.array(dtype=wp.float32),
):
    """Of every texel. A thread takes `chunk` of them."""
    begin = (first + wp.tid()) * chunk
    for i in range(begin, wp.min(begin + chunk, texels.shape[0])):
        t = texels[i]
        near_out[t] = nearness_of(bipolar, live, numbers, fields, poses, frames, balls, position[t])


@wp.kernel
def conduct(
    first: int,
    # in
    live: wp.array(dtype=wp.float32),
    texels: wp.array(dtype=wp.int32),
    area: wp.array(dtype=wp.float32),
    rates: wp.array(dtype=BurnRates),
    damage: wp.array(dtype=wp.float32),
    charring: wp.array(dtype=wp.float32),
    water: wp.array(dtype=wp.float32),
    # out
    conductance_out: wp.array(dtype=wp.float32),
    sum_out: wp.array(dtype=wp.vec2d),
):
    """Nearness becomes conductance, and the sum's first level."""
    block = first + wp.tid()
    model = rates[0].model
    total = wp.vec2d()
    for i in range(first_of_block(block), end_of_block(block, texels.shape[0])):
        t = texels[i]
        near = conductance_out[t]
        if near > 0.0:
            through = near * area[t]
            touched = through
            if live[LIVE_CONSTANT_FLUX] == 0.0:
                wet = water[t]
                bare = 1.0 - char_of(model, damage[t], charring[t])
                through *= wet + live[LIVE_DRY] * (1.0 - wet) * bare
            conductance_out[t] = through
            total += wp.vec2d(wp.float64(through), wp.float64(touched))
    sum_out[block] = total


@wp.kernel
def drive(
    first: int,
    # in
    live: wp.array(dtype=wp.float32),
    sums: wp.array(dtype=wp.vec2d),
    # out
    scale_out: wp.array(dtype=wp.float32),
    delivered_out: wp.array(dtype=wp.float32),
):
    """What the generator gives to tissue of this conductance."""
    through = float(sums[0][0])
    scale = live[LIVE_MOST_FLUX]
    if live[LIVE_CONSTANT_FLUX] == 0.0 and live[LIVE_POWER] < scale * through:
        scale = live[LIVE_POWER] / through
    scale_out[0] = scale
    delivered_out[0] = scale * through
    delivered_out[1] = float(sums[0][1])


@wp.kernel
def give_power(
    first: int,
    # params
    adds: int,
    # in
    texels: wp.array(dtype=wp.int32),
    conductance: wp.array(dtype=wp.float32),
    scale: wp.array(dtype=wp.float32),
    # out
    power_out: wp.array(dtype=wp.float32),
):
    t = texels[first + wp.tid()]
    power = scale[0] * conductance[t]
    if adds != 0:
        power += power_out[t]
    power_out[t] = power


def make_electrode(tool: JointedTool, burn: Burn, params: ElectrodeParams | None = None) -> Electrode:
    """An electrode that is off, of the tool's active parts; skin and tool share one frame of reference."""
    params = params or ElectrodeParams()
    skin, device = burn.heat.skin, burn.heat.skin.device
    parts = tuple(number for number, part in enumerate(tool.parts) if part.active)
    if not parts or (params.bipolar and len(parts) < 2):
        raise InputError(
            f"{tool.name!r} has {len(parts)} active parts.",
            "A monopolar electrode needs one at least, a bipolar one two.",
        )
    grids = [tool.parts[part].field.grid for part in parts]
    electrode = Electrode(
        tool,
        burn,
        params,
        parts,
        numbers=wp.array(parts, dtype=wp.int32, device=device.warp),
        fields=wp.array(grids, dtype=FieldGrid, device=device.warp),
        frames=wp.zeros(len(parts) * int(_SAMPLES), dtype=wp.transform, device=device.warp),
        balls=wp.zeros(len(parts), dtype=wp.vec4, device=device.warp),
        live=device.port(LIVE_FLOATS, wp.float32),
        conductance=wp.zeros(skin.width * skin.height, dtype=wp.float32, device=device.warp),
        sums=make_sum(skin.count, device),
        scale=wp.zeros(1, dtype=wp.float32, device=device.warp),
        delivered=device.port(2, wp.float32),
    )
    electrode.set(params)
    return electrode


def find_near(stage: Stage, one: Electrode) -> None:
    """Nearness of the texels to the active parts, into `conductance`."""
    skin, poses = one.burn.heat.skin, one.tool.poses.array
    chunk = 1 if stage.device.is_cuda else CHUNK
    stage.launch(find_frames, len(one.frames), [one.numbers, poses, one.frames, one.balls])
    args = [one.live.array, one.numbers, one.fields, poses, one.frames, one.balls, skin.texels, skin.position]
    args += [one.conductance]
    stage.launch(near_parts, -(-skin.count // chunk), [int(one.params.bipolar), chunk, *args], block=BLOCK // chunk)


def step_electrodes(stage: Stage, electrodes: Sequence[Electrode]) -> None:
    """Writes `heat.power` of the skin they share: before `step_heat`."""
    for number, one in enumerate(electrodes):
        burn, skin, live = one.burn, one.burn.heat.skin, one.live.array
        stage.upload(one.live)
        stage.upload(one.tool.poses)
        find_near(stage, one)
        tissue = [skin.texels, skin.area, burn.rates, burn.damage, burn.charring, burn.water]
        stage.launch(conduct, -(-skin.count // FAN), [live, *tissue, one.conductance, one.sums.levels[0]])
        finish_sum(stage, one.sums)
        stage.launch(drive, 1, [live, one.sums.total, one.scale, one.delivered.array])
        args = [int(number > 0), skin.texels, one.conductance, one.scale, burn.heat.power]
        stage.launch(give_power, skin.count, args)
        stage.download(one.delivered)
