"""Tools and tissue: which tool touches through which of a lattice's places, and what each hand feels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.geometry.parts import JointedTool, make_tool
from viscera.inputs import Vector3
from viscera.instruments import Pushes, Tool, felt_at_handle
from viscera.instruments.bars import MOST_BARS
from viscera.timing import TICK
from viscera.tissue.touch_kernels import TOOLS
from viscera.view import ToolState
from viscera.world.cutters import Cutters
from viscera.world.grippers import Grippers
from viscera.world.holding import Holding
from viscera.world.organ import Organ
from viscera.world.passive import Passive
from viscera.world.sewers import Sewers

UPRIGHT = (0.0, 0.0, 0.0, 1.0)


class Contact:
    """A lattice feels `TOOLS` instruments at once; one that comes in beyond that touches nothing until another has
    left."""

    def __init__(self, tools: Sequence[Tool], organs: Sequence[Organ], table: float | None = None) -> None:
        """`table` is the height of one that no organ lies on [m]."""
        self._tools, self._organs = tools, organs
        tables = [organ.floor.table for organ in organs] + ([] if table is None else [table])
        self._table = max(tables, default=-math.inf)
        """Under which no tool goes [m]."""
        self._pushes = [tool.instrument.effect(Pushes) for tool in tools]
        self._solids = {tool.number: _solid(tool, organs) for tool, one in zip(tools, self._pushes, strict=True)
                        if one is not None and one.solid and organs}  # fmt: skip
        """The shapes of the tools that push with their own."""
        self._shaped: dict[int, int] = {}
        """Which tool's shape the lattices know in a place."""
        self.slots: dict[int, int] = {}
        """Place in the lattices of each tool that is in the body."""
        self._inside: set[int] = set()
        """Tools that were in the body in the last tick."""
        self._gone: dict[int, ToolState | None] = {}
        """Tools that are out of the body, and of which nothing is left in it, as they were last seen there."""
        self.cutters = Cutters(tools, organs)
        """The edges of those that cut."""
        self.grippers = Grippers(tools, organs)
        """The jaws of those that grasp."""
        self.sewers = Sewers(tools, organs)
        """The needles and knots of those that sew."""
        self._bars = np.zeros((MOST_BARS, 2, 3))
        """Of a tool that is turned and has not gone yet [m]."""
        self.holdings = [Holding(tool, organs) for tool in tools]
        """What keeps each tool from its hand."""
        self.passives = [Passive() for _ in tools]
        """What keeps each hand from getting back more than it gave."""

    def move(self) -> None:
        """Tools follow their hands for one tick."""
        for tool, pushes, holding, passive in zip(self._tools, self._pushes, self.holdings, self.passives, strict=True):
            if not tool.active:
                if tool.number not in self._gone:
                    self._leave(tool, holding, passive)
                    self._gone[tool.number] = None
                continue
            self._gone.pop(tool.number, None)
            self.grippers.before(tool)
            tool.go(self._way(tool, holding), TICK)
            self._inside.add(tool.number)
            came = tool.number not in self.slots
            slot = None if pushes is None else self._slot_of(tool)
            if pushes is None or slot is None:
                continue
            self.grippers.move(tool, slot)
            self.sewers.move(tool, slot)
            if tool.number in self._solids:
                self._push_solid(tool, slot, pushes.friction, came)
                continue
            self._shape(slot, None)
            edged = self.cutters.move(tool, slot)
            for organ in self._organs:
                bars = self.grippers.pushing(tool, organ, edged)
                organ.tissue.set_bars(
                    slot, tool.start[bars], tool.end[bars], tool.bars.radii[bars], pushes.friction, tool.tips
                )

    def _leave(self, tool: Tool, holding: Holding, passive: Passive) -> None:
        """It is out of the body."""
        self._inside.discard(tool.number)
        self._let_go(tool)
        self.cutters.rest(tool)
        self.grippers.rest(tool)
        self.sewers.rest(tool)
        holding.state[:] = 0.0
        passive.rest()

    def clear(self) -> None:
        """All tools are out of the body."""
        for tool, holding, passive in zip(self._tools, self.holdings, self.passives, strict=True):
            self._leave(tool, holding, passive)

    def set_friction(self, friction: float | None) -> None:
        """Coulomb's, of all tools on tissue, from the next tick on; None: each instrument's own."""
        own = [tool.instrument.effect(Pushes) for tool in self._tools]
        self._pushes = [one if one is None or friction is None else replace(one, friction=friction) for one in own]

    def _way(self, tool: Tool, holding: Holding) -> NDArray[np.float64]:
        """How far a tool goes in a tick: as its hand wishes, as far as tissue and table let it. It turns with its hand
        before."""
        bars = self._turn(tool, holding)
        way = holding.allow(tool.wish(TICK))
        for organ in self._organs:
            way = organ.floor.keep_out(tool.number, bars, tool.bars.radii, way)
        below = self._table - float((bars[:, :, 2].min(axis=1) - tool.bars.radii).min(initial=math.inf)) - float(way[2])
        return way + np.array([0.0, 0.0, below]) if below > 0.0 else way

    def _turn(self, tool: Tool, holding: Holding) -> NDArray[np.float64]:
        """Where its bars are then [m]. None of them turns in under the table: one that enters so is upright, one that
        would turn so stays as it is held."""
        wish, count = tool.wish_turn(TICK), tool.bars.count
        enters = tool.number not in self._inside
        if wish is None and not enters:
            return tool.end[:count]
        before = UPRIGHT if enters else tool.held.copy()
        tool.turn(np.zeros(3) if wish is None or enters else holding.allow_turn(wish))
        tool.bars.place(tool.tip, tool.orientation, tool.jaws, self._bars)
        bars, radii = self._bars[:count], tool.bars.radii[:, None]
        lowest = float((bars[:, :, 2] - radii).min(initial=math.inf))
        if lowest < self._table and (enters or lowest < float((tool.end[:count, :, 2] - radii).min())):
            tool.held[:] = before
            tool.turn(np.zeros(3))
            tool.bars.place(tool.tip, tool.orientation, tool.jaws, self._bars)
        return bars

    def restore(self) -> None:
        """After a state was loaded: solid tools are where their hands were left, at the start of the next tick."""
        self._inside = {tool.number for tool in self._tools if tool.active}
        self._gone.clear()
        for tool in self._tools:
            if tool.number in self._solids and tool.number in self.slots:
                self._solids[tool.number].place(tool.tip, tool.orientation, tool.jaws, jump=True)

    def _push_solid(self, tool: Tool, slot: int, friction: float, came: bool) -> None:
        solid = self._solids[tool.number]
        solid.place(tool.tip, tool.orientation, tool.jaws, jump=came)
        self._shape(slot, tool.number)
        for organ in self._organs:
            organ.tissue.set_field_tool(slot, solid.start, solid.end, friction, tool.tips)

    def _shape(self, slot: int, number: int | None) -> None:
        """The lattices are to know this tool's shape in this place, or none. They record their tick again when it
        changes."""
        if self._shaped.get(slot) == number:
            return
        fields = None if number is None else [part.field for part in self._solids[number].parts]
        for organ in self._organs:
            organ.tissue.set_field(slot, fields)
        if number is None:
            del self._shaped[slot]
        else:
            self._shaped[slot] = number

    def feel(self) -> tuple[list[ToolState], float]:
        """What each hand feels, the sum over all organs, and the strongest force among them [N]."""
        states, strongest = [], 0.0
        for tool, holding, passive in zip(self._tools, self.holdings, self.passives, strict=True):
            gone = self._gone.get(tool.number)
            if gone is not None and gone.grip == tool.grip:
                states.append(gone)
                continue
            fx = fy = fz = tx = ty = tz = 0.0
            slot = self.slots.get(tool.number)
            if slot is not None:
                for organ in self._organs:
                    force, torque = organ.tissue.tool_force(slot)
                    fx, fy, fz = fx + force[0], fy + force[1], fz + force[2]
                    tx, ty, tz = tx + torque[0], ty + torque[1], tz + torque[2]
                holding.feel((fx, fy, fz), (tx, ty, tz), slot)
                share = passive.share(tool, (fx, fy, fz), (tx, ty, tz), holds=self._holds(tool))
                fx, fy, fz, tx, ty, tz = share * fx, share * fy, share * fz, share * tx, share * ty, share * tz
                strongest = max(strongest, math.sqrt(fx * fx + fy * fy + fz * fz))
            x, y, z = tool.tip.tolist()
            qx, qy, qz, qw = tool.orientation.tolist()
            held = (tool.number, (x, y, z), (qx, qy, qz, qw), self.grippers.shown_grip(tool), tool.active)
            force, torque = (fx, fy, fz), (tx, ty, tz)
            states.append(ToolState(*held, force, torque, *_at_handle(tool, force, torque)))
            if tool.number in self._gone:
                self._gone[tool.number] = states[-1]
        return states, strongest

    def _holds(self, tool: Tool) -> bool:
        return any(self.grippers.held(tool, organ) for organ in self._organs)

    def _slot_of(self, tool: Tool) -> int | None:
        if tool.number not in self.slots:
            free = [slot for slot in range(TOOLS) if slot not in self.slots.values()]
            if not free:
                return None
            self.slots[tool.number] = free[0]
        return self.slots[tool.number]

    def _let_go(self, tool: Tool) -> None:
        slot = self.slots.pop(tool.number, None)
        if slot is not None:
            for organ in self._organs:
                organ.tissue.remove_tool(slot)


def _at_handle(tool: Tool, force: Vector3, torque: Vector3) -> tuple[Vector3, Vector3]:
    """What a hand at the handle feels of what the tip does [N], [N·m]."""
    trocar = tool.instrument.trocar
    if trocar is None or not (any(force) or any(torque)):
        return force, torque
    return felt_at_handle(force, torque, tool.tip, trocar, tool.instrument.length)


def _solid(tool: Tool, organs: Sequence[Organ]) -> JointedTool:
    if tool.instrument.solid is None:
        raise InputError(
            f"{tool.instrument.name} pushes with its own shape, but has none.",
            "Give its closed meshes (Instrument.solid), or leave out Pushes(solid=True).",
        )
    return make_tool(tool.instrument.name, tool.instrument.solid(), organs[0].tissue.device)
