"""Tubes through tissue carry blood or bile: cut or torn they run out there, until a clip or a burn shuts them.

A tube is a chain of masses along a line, fed at its first point, at its last one, or at both. It is as open at a place
as springs across it are gone,

    open = 1 − springs left across the place / springs that were,

so a nick leaks a little and a cut lets all of it out; it is cut through once its masses do not hang together any more.
What leaves at a cut is a wound of `wounds.Vessels` on the face of the cut, with the pressure of the end that feeds it;
pressures, clots and the ledger are those of every wound.

A clip is put on the tube that is nearest to the applier's jaws, where it is nearest, one for each press of the handle.
It shuts the tube there. It slips off when the tube pulls at it with more than it holds (`Clips.hold`): the force along
the tube through its springs across that place, as far as they are left,

    F = Σ k (ℓ − ℓ₀) e·t,      e along the spring, t along the tube there.

A stump that hangs free pulls at nothing. Burnt tissue shuts a tube of blood, and harms one of bile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from viscera.blood.wounds.vessels import VesselParams
from viscera.blood.wounds.wounds import set_opening, set_place, set_whole
from viscera.errors import InputError
from viscera.geometry.embedding import embed
from viscera.geometry.topology import components
from viscera.instruments import MOST_TOOLS, Clips, Tool
from viscera.tissue.burning import Burning
from viscera.tissue.kernels import LIVE_STIFFNESS
from viscera.tissue.springs import partners
from viscera.units import MILLIMETRE
from viscera.view import Markers, Measure
from viscera.world.organ import Organ
from viscera.world.system import Kept, Moment, Show, System
from viscera.world.systems.search import has_come
from viscera.world.systems.wounds import Vessels

CLIPS = 24
"""At most, in all."""
CLIP_SIZE = 4.5e-3
"""Half the length of a clip as it is drawn [m]; medium-large clips are 9 mm long."""
ON_TOP = 0.6
"""How far above the middle of its tube a clip is drawn, in cells: on the sheath, where it is seen."""
PLACES = 12
"""Along a tube, at which it is looked at."""
NEAR_END = 0.15
"""Share of a tube's length that counts as its end."""
LEAKS_FROM = 0.3
"""How open a place must be to leak: a spring or two at the rim of a tube are its sheath."""
SHUT_BY_BURN = 0.8
"""Burn of the masses around a place from which on a tube of blood is shut, 0 to 1."""
NARROWEST = 0.05e-3
"""Radius of what leaks, at least [m]."""

HELD = Measure("clips_held", "Clips held", "", "Clips that hold.", digits=0)
SLIPPED = Measure(
    "clips_slipped", "Slipped", "", "Clips that came off a tube that was pulled too hard.", digits=0, grows=True
)
NO_TUBE = Measure(
    "clips_refused", "Clips on nothing", "", "Presses of the applier with no tube between its jaws.", digits=0
)


@dataclass(frozen=True, eq=False)
class Tube:
    """One tube, before the world runs."""

    name: str
    line: NDArray[np.float64]
    """Points in the tissue at rest [m], shape (points, 3)."""
    masses: NDArray[np.int64]
    """That it is made of."""
    radius: float
    """Of its lumen where it is cut [m]: small arteries contract."""
    fluid: str = "blood"
    start: VesselParams | None = None
    """What feeds it at its first point."""
    end: VesselParams | None = None
    """What feeds it at its last point."""


class Channel:
    """A tube in its organ: what of it is left."""

    def __init__(self, organ: Organ, tube: Tube) -> None:
        params = organ.tissue.params
        nodes = params.nodes[tube.masses]
        self.tube = tube
        lengths = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(tube.line, axis=0), axis=1))])
        self.length = float(lengths[-1])
        self.shares = (np.arange(PLACES) + 0.5) / PLACES
        """Of the length, at which it is looked at."""
        self.rest = np.stack([np.interp(self.shares * self.length, lengths, tube.line[:, a]) for a in range(3)], axis=1)
        self.facing = np.gradient(self.rest, axis=0)
        held = embed(self.rest, params.nodes, params.origin, params.spacing)
        self._slots, self._weights = organ.tissue.layout.slot_of_node[held.indices], held.weights.astype(np.float64)
        number = np.full(len(params.nodes) + 1, -1)
        number[tube.masses] = np.arange(len(tube.masses))
        self._springs(number[partners(params.nodes)[:, tube.masses]], nodes, self._along(organ, tube), params.spacing)
        self.masses, self._places = tube.masses, organ.tissue.layout.slot_of_node[tube.masses]
        self.open = np.zeros(PLACES)
        """How open each place is, 0 to 1."""
        self.reached = np.ones((2, PLACES), dtype=np.bool_)
        """Which places what comes from the first and from the last point gets to, clips aside."""
        self.cut_at = float("nan")
        """Where it is cut through, as a share of its length; NaN while it is whole."""

    def _along(self, organ: Organ, tube: Tube) -> NDArray[np.float64]:
        """Of each mass, the share of the length at which it is nearest to the line."""
        fine = np.linspace(0.0, self.length, 200)
        lengths = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(tube.line, axis=0), axis=1))])
        points = np.stack([np.interp(fine, lengths, tube.line[:, a]) for a in range(3)], axis=1)
        at = np.asarray(organ.tissue.rest_positions())[tube.masses]
        return np.linalg.norm(at[:, None] - points[None], axis=2).argmin(axis=1) / 199.0

    def _springs(
        self, other: NDArray[np.int64], nodes: NDArray[np.int32], s: NDArray[np.float64], spacing: float
    ) -> None:
        """`other` is the number of the mass at the far end of each spring, per direction and mass; -1 for none."""
        self._direction, self._low = np.nonzero(other >= 0)
        self._high = other[self._direction, self._low]
        least, most = np.minimum(s[self._low], s[self._high]), np.maximum(s[self._low], s[self._high])
        self._across = (least[None] <= self.shares[:, None]) & (most[None] > self.shares[:, None])
        self._were = np.maximum(self._across.sum(axis=1), 1)
        self._s = s
        self._towards = np.where(s[self._low] <= s[self._high], 1.0, -1.0)
        """Of each spring, whether it looks along the line or back."""
        self._step = (nodes[self._high] - nodes[self._low]).astype(np.float64) * spacing
        """At rest [m]."""

    def look(self, cut: NDArray[np.bool_]) -> None:
        """`cut` says which springs of the lattice are gone, per direction and mass."""
        left = ~cut[self._direction, self.masses[self._low]]
        self.open = 1.0 - (self._across & left).sum(axis=1) / self._were
        roots = components(len(self.masses), self._low[left], self._high[left])
        # Most of what is near an end: a mass that came loose there is no cut.
        ends = [np.bincount(roots[near]).argmax() for near in (self._s <= NEAR_END, self._s >= 1.0 - NEAR_END)]
        if ends[0] == ends[1]:
            self.reached[:], self.cut_at = True, float("nan")
            return
        # Cut through: what is fed from an end gets as far as the masses that still hang on it.
        far = float(self._s[roots == ends[0]].max()), float(self._s[roots == ends[1]].min())
        self.reached[0], self.reached[1] = self.shares <= far[0], self.shares >= far[1]
        self.cut_at = 0.5 * (far[0] + far[1])
        self.open[np.abs(self.shares - self.cut_at).argmin()] = 1.0

    @property
    def is_cut(self) -> bool:
        """Whether it is cut through."""
        return self.cut_at == self.cut_at

    def places(self, displacement: NDArray[np.float32]) -> NDArray[np.float64]:
        """Where it runs now [m], shape (PLACES, 3); `displacement` as the lattice has it, shape (3, slots)."""
        return self.rest + np.einsum("pc,apc->pa", self._weights, displacement[:, self._slots].astype(np.float64))

    def pull(self, place: int, displacement: NDArray[np.float32], stiffness: NDArray[np.float64]) -> float:
        """Force along the tube through its springs across a place [N]; `displacement` as for `places`, `stiffness` of
        every spring of the tube, 0 where it is gone [N/m]."""
        here = np.flatnonzero(self._across[place] & (stiffness > 0.0))
        if not len(here):
            return 0.0
        low, high = self._places[self._low[here]], self._places[self._high[here]]
        step = self._step[here] + (displacement[:, high] - displacement[:, low]).T.astype(np.float64)
        length = np.linalg.norm(step, axis=1)
        ways = step * (self._towards[here] / np.maximum(length, 1e-12))[:, None]
        along = ways.sum(axis=0) / max(float(np.linalg.norm(ways.sum(axis=0))), 1e-12)
        stretch = length - np.linalg.norm(self._step[here], axis=1)
        return float((stiffness[here] * stretch) @ (ways @ along))

    def stiffness(self, table: NDArray[np.float16], most: float) -> NDArray[np.float64]:
        """Of its springs [N/m], from the lattice's table, per direction and slot, and what 1 stands for there."""
        return most * table[self._direction, self._places[self._low]].astype(np.float64)

    def burn(self, burn: NDArray[np.float32]) -> NDArray[np.float64]:
        """Of each place, 0 to 1; `burn` as the lattice has it, per slot."""
        return (self._weights * burn[self._slots]).sum(axis=1)


class Tubes:
    """`channels` are the tubes in their order. `numbers` are the wounds of `vessels` that are theirs: two for each."""

    def __init__(
        self, organ: Organ, vessels: Vessels, tubes: Sequence[Tube], numbers: range, burning: Burning | None
    ) -> None:
        if organ.shadow.cuts is None:
            raise InputError(f"{organ.name} cannot be cut.", "Make it with `viscera.cuttable`.")
        there = len(range(vessels.wounds.count)[numbers.start : numbers.stop])
        if there != 2 * len(tubes):
            raise InputError(f"{len(tubes)} tubes have {there} wounds.", "Give `bleeding` two wounds for each.")
        self._organ, self._cuts, self._vessels, self._numbers = organ, organ.shadow.cuts, vessels, numbers
        self._burning = burning
        self.channels = [Channel(organ, tube) for tube in tubes]
        self.clips = np.zeros((CLIPS, 4))
        """Number of the tube, share of its length, whether it holds (1; 0 for none, -1 for one that slipped), and the
        force at which it slips [N]."""
        self.numbers = np.zeros(2, dtype=np.int64)
        """Slipped, refused."""
        self._down = np.zeros(MOST_TOOLS, dtype=np.bool_)
        self._said = ""
        """Why the last press of the applier put on no clip, or that one came off: until the next one holds."""
        self.leaks = np.full((len(tubes), 2), -1, dtype=np.int64)
        """The place at which what comes from either end leaves; -1 for none."""
        self.opened = np.zeros((len(tubes), 2))
        """How far either leak is open, 0 to 1."""
        self._at = [one.rest.copy() for one in self.channels]
        self._shown = np.zeros((CLIPS, 8), dtype=np.float32)
        self._seen = -1
        for number in numbers:
            set_whole(vessels.wounds, number)

    def wound(self, number: int, end: int) -> int:
        """Through which a tube loses what comes from its first point (0) or its last one (1), among all wounds."""
        return self._numbers[2 * number + end]

    # --- once a frame ---

    def frame(self, now: Moment) -> None:
        if self._cuts.changes != self._seen:
            self._seen = self._cuts.changes
            self._look()
        self._follow()
        self._put_on(now)
        self._slip()
        self._flow()
        self._draw()

    def _look(self) -> None:
        cut = self._cuts.springs()
        for channel in self.channels:
            channel.look(cut)

    def _follow(self) -> None:
        slots = self._organ.tissue.layout.slots
        moved = self._organ.shadow.displacement.numpy().reshape(3, slots)
        self._at = [channel.places(moved) for channel in self.channels]

    def _put_on(self, now: Moment) -> None:
        pressed = now.using(Clips)
        if self._down.any():
            self._down &= np.isin(np.arange(MOST_TOOLS), [tool.number for tool, _ in pressed])
        for tool, one in pressed:
            if self._down[tool.number] or not has_come(tool):
                continue
            self._down[tool.number] = True
            self._clip(tool, one)

    def _clip(self, tool: Tool, one: Clips) -> None:
        """On the tube that is nearest to the jaws."""
        far = np.stack([np.linalg.norm(at - tool.tip, axis=1) for at in self._at])
        number, place = np.unravel_index(int(far.argmin()), far.shape)
        free = np.flatnonzero(self.clips[:, 2] == 0.0)
        if far[number, place] > one.reach or len(free) == 0:
            self.numbers[1] += 1
            self._said = self._why_not(int(number), float(far[number, place]), one)
            return
        self._said = ""
        self.clips[free[0]] = number, self.channels[int(number)].shares[place], 1.0, one.hold

    def _why_not(self, number: int, far: float, one: Clips) -> str:
        if far <= one.reach:
            return f"No clip was put on: all {CLIPS} are used."
        name = self.channels[number].tube.name
        return (
            f"No clip was put on: the nearest tube, the {name}, is {far / MILLIMETRE:.0f} mm from the tips, and a clip "
            f"reaches {one.reach / MILLIMETRE:.0f} mm. Go nearer, or free it from what holds the jaws back."
        )

    def _slip(self) -> None:
        for row in np.flatnonzero(self.clips[:, 2] > 0.0).tolist():
            number = int(self.clips[row, 0])
            if self.pull(number, float(self.clips[row, 1])) > self.clips[row, 3]:
                self.clips[row, 2] = -1.0
                self.numbers[0] += 1
                name = self.channels[number].tube.name
                self._said = (
                    f"A clip slipped off the {name}, which pulled at it too hard. Let go a little, and clip it again."
                )

    def pull(self, number: int, share: float) -> float:
        """Force along a tube at a share of its length [N]."""
        channel, shadow = self.channels[number], self._organ.shadow.tissue
        table = shadow.constants.stiffness.numpy().reshape(13, -1)
        stiffness = channel.stiffness(table, float(shadow.state.live.host[LIVE_STIFFNESS]))
        place = int(np.abs(channel.shares - share).argmin())
        return channel.pull(place, self._organ.shadow.displacement.numpy().reshape(3, -1), stiffness)

    def _flow(self) -> None:
        """Of each end the nearest opening leaks, unless something shuts the tube before it."""
        burn = None if self._burning is None else self._burning.burn.numpy()
        for number, channel in enumerate(self.channels):
            shut = self.shut(number, burn)
            for end in (0, 1):
                fed = channel.tube.start if end == 0 else channel.tube.end
                place = -1 if fed is None else self._leak(channel, shut, end)
                self._put(number, end, place)

    def shut(self, number: int, burn: NDArray[np.float32] | None = None) -> NDArray[np.bool_]:
        """Places of a tube that a clip or a burn shuts."""
        channel = self.channels[number]
        found = np.zeros(PLACES, dtype=np.bool_)
        for _, share, holds, _ in self.clips[self.clips[:, 0] == number]:
            if holds > 0.0:
                found[np.abs(channel.shares - share).argmin()] = True
        if burn is not None and channel.tube.fluid == "blood":
            found |= channel.burn(burn) >= SHUT_BY_BURN
        return found

    @staticmethod
    def _leak(channel: Channel, shut: NDArray[np.bool_], end: int) -> int:
        order = np.arange(PLACES) if end == 0 else np.arange(PLACES)[::-1]
        for place in order.tolist():
            if shut[place]:
                return -1
            if channel.open[place] >= LEAKS_FROM or not channel.reached[end, place]:
                return place
        return -1

    def _put(self, number: int, end: int, place: int) -> None:
        wounds, wound = self._vessels.wounds, self.wound(number, end)
        before = int(self.leaks[number, end])
        if place < 0:
            if before >= 0:
                set_whole(wounds, wound)
        else:
            channel = self.channels[number]
            share = 1.0 if channel.is_cut else float(channel.open[place])
            if share != self.opened[number, end]:
                self.opened[number, end] = share
                set_opening(wounds, wound, max(channel.tube.radius * float(np.sqrt(share)), NARROWEST))
            if place != before:
                self._place(wound, channel.rest[place], (1.0 if end == 0 else -1.0) * channel.facing[place])
                set_whole(wounds, wound, whole=False)
        self.leaks[number, end] = place

    def _place(self, wound: int, at: NDArray[np.float64], facing: NDArray[np.float64]) -> None:
        """Onto the face of the cut that looks away from what feeds it."""
        organ = self._organ
        face = None if organ.cuts is None else organ.cuts.inner_face(at, facing)
        if face is not None:
            surface = self._vessels.wounds.surface
            set_place(self._vessels.wounds, wound, face + surface.first_face[surface.parts.index(organ.need_skin())])

    # --- what is known and seen ---

    def held(self, number: int) -> NDArray[np.float64]:
        """Where clips hold on a tube, as shares of its length, from its first point on."""
        mine = (self.clips[:, 0] == number) & (self.clips[:, 2] > 0.0)
        return np.sort(self.clips[mine, 1])

    def _draw(self) -> None:
        self._shown[:, 7] = self.clips[:, 2] > 0.0
        for row in np.flatnonzero(self.clips[:, 2] > 0.0).tolist():
            number = int(self.clips[row, 0])
            place = int(np.abs(self.channels[number].shares - self.clips[row, 1]).argmin())
            along = self._at[number][min(place + 1, PLACES - 1)] - self._at[number][max(place - 1, 0)]
            self._shown[row, :3] = self._at[number][place] + (0.0, 0.0, ON_TOP * self._organ.tissue.params.spacing)
            half = 0.5 * (np.arctan2(along[1], along[0]) + 0.5 * np.pi)
            self._shown[row, 3:7] = (0.0, 0.0, np.sin(half), np.cos(half))

    def measures(self) -> list[tuple[Measure, float]]:
        slipped, refused = self.numbers.tolist()
        return [(HELD, float((self.clips[:, 2] > 0.0).sum())), (SLIPPED, float(slipped)), (NO_TUBE, float(refused))]

    def loaded(self) -> None:
        self._said = ""
        self._seen = self._cuts.changes
        self._look()
        self._follow()
        self._draw()

    def system(self) -> System[Tubes]:
        arrays = {"clips": self.clips, "numbers": self.numbers, "down": self._down, "leaks": self.leaks}
        arrays |= {"opened": self.opened}
        kept = Kept(arrays, self.loaded)
        look = Markers(f"{self._organ.name}.tube_clips", "clip", CLIP_SIZE, CLIPS)
        return System(
            name="tubes",
            organ=self._organ.name,
            after=("cutting",),
            frame=self.frame,
            uses=(Clips,),
            save=kept.save,
            load=kept.load,
            shows=[Show(look, {look.name: self._shown})],
            measures=self.measures,
            warns=lambda: self._said,
            holds=self,
        )


def tubes_through(
    organ: Organ, vessels: Vessels, tubes: Sequence[Tube], numbers: range | None = None, burning: Burning | None = None
) -> System[Tubes]:
    """After `cutting` and before `bleeding` in the order of a frame; `vessels` is what `bleeding(..., clips=False)`
    holds, `numbers` those of its wounds that wait for the tubes, two for each, its first ones where not given;
    `burning` is what `stiffening` holds."""
    return Tubes(organ, vessels, tubes, range(2 * len(tubes)) if numbers is None else numbers, burning).system()
