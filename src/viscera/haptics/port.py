"""The session's end of the link: hands in before a tick, touches out after it.

Nothing here is part of the world: what a hand does reaches it as recorded inputs only, so a session with haptic devices
replays as any other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, cast

from viscera.haptics.coupling import ContactEstimator
from viscera.haptics.link import TOOLS, ZERO, Hands, Link, Touches
from viscera.haptics.safety import Mode
from viscera.inputs import ToolInput, Vector3
from viscera.view import HapticState, ToolState

GONE_S = 0.1
"""A haptic process that says nothing for this long is gone [s]; its tools are put aside."""

SETTLE_S = 0.005
"""So long after the first tick of a world poses may still be meant for the one before, at another place [s]."""

WARM_UP_TICKS = 1000
"""The first second of a world is not timed: programs are recorded in it."""


class SessionPort:
    """`take`, tick, `publish`. It costs a tick some 30 µs per device."""

    def __init__(self, link: Link, homes: Sequence[Vector3], clock: Callable[[], float] = time.perf_counter) -> None:
        """`homes` are where the world's tools wait [m]."""
        self._link = link
        self._clock = clock
        self._hands = Hands()
        self._touches = Touches()
        self.homes = list(homes)
        self._estimators = [ContactEstimator() for _ in range(TOOLS)]
        self._held = [False] * TOOLS
        self._fresh = False
        self._taken = 0.0
        self._published: float | None = None
        self._settled: float | None = None
        self._ticks = 0

    def holds(self, tool: int) -> bool:
        """Whether a device drives this tool; then no pointer does."""
        return 0 <= tool < TOOLS and self._held[tool]

    def take(self) -> list[ToolInput]:
        """What the hands did since the last tick."""
        hands = self._hands
        fresh = self._link.read_hands(hands) and self._clock() - hands.time < GONE_S
        self._fresh = fresh = fresh and self._settled is not None and hands.time > self._settled
        given: list[ToolInput] = []
        held = [False] * TOOLS
        for hand in hands.hands:
            if fresh and hand.present and hand.tool < min(TOOLS, len(self.homes)):
                held[hand.tool] = True
                if hands.time != self._taken:
                    given.append(ToolInput(hand.tool, hand.position, hand.orientation, hand.grip, direct=True))
        for tool, home in enumerate(self.homes[:TOOLS]):
            if self._held[tool] and not held[tool]:
                given.append(ToolInput(tool, home, active=False))
        self._held = held
        self._taken = hands.time
        return given

    def publish(self, tick: int, tools: Sequence[ToolState]) -> None:
        """The world has made `tick` ticks and its tools felt this."""
        touches = self._touches
        for touch, estimator, home, tool in zip(touches.tools, self._estimators, self.homes, tools, strict=False):
            touch.active, touch.home = tool.active, home
            if tool.active:
                estimator.update(tool.position, tool.force, touch)
                # Through a trocar the hand turns a tool about its shaft only, and feels no other torque.
                touch.torque = tool.handle_torque
            else:
                estimator.forget()
                touch.force = touch.torque = touch.normal = ZERO
                touch.stiffness = 0.0
        now = self._clock()
        touches.tick, touches.time, touches.hand_time = tick, now, self._taken
        self._link.post_touches(touches)
        self._link.count("ticks")
        if self._settled is None:
            self._settled = now + SETTLE_S
        self._ticks += 1
        if self._published is not None and self._ticks > WARM_UP_TICKS:
            self._link.tick.add(now - self._published)
        self._published = now

    def rest(self) -> None:
        """The world is paused: the time until the next tick is not a late one."""
        self._published = None

    def states(self) -> list[HapticState]:
        """The devices as people should see them."""
        found: list[HapticState] = []
        for place, hand in enumerate(self._hands.hands):
            name = self._link.name(place)
            if name:
                mode = cast(Any, Mode(hand.mode).name.lower())
                present = hand.present and self._fresh
                found.append(HapticState(hand.tool, name, present, hand.force, mode, hand.gain))
        return found
