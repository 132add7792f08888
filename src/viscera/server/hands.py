"""Who holds the instruments: one browser at a time.

The first that comes holds them; others watch, and may ask. Whoever holds them hands them over or keeps them; a trainer,
who has shown the trainer's token, may take them at any time. When the holder leaves, who asked first gets them, else
who has watched longest.
"""

from __future__ import annotations

import hmac
from typing import Literal

from viscera.server.wishes import Refusal

NOBODY = 0
"""No browser has this number."""

Action = Literal["ask", "give", "keep", "take"]


class Hands:
    """Numbers of browsers, in the order in which they came."""

    def __init__(self) -> None:
        self.holder = NOBODY
        self.asking: list[int] = []
        self._present: list[int] = []

    def join(self, number: int) -> None:
        self._present.append(number)
        if self.holder == NOBODY:
            self.holder = number

    def leave(self, number: int) -> None:
        self._present = [one for one in self._present if one != number]
        self.asking = [one for one in self.asking if one != number]
        if self.holder == number:
            waiting = self.asking or self._present
            self._pass_to(waiting[0] if waiting else NOBODY)

    def may_act(self, number: int) -> bool:
        return number == self.holder

    def check(self, number: int) -> None:
        """Refuses what only the holder may do."""
        if not self.may_act(number):
            raise Refusal("refused", "another viewer holds the instruments.", "Ask for them first.")

    def act(self, number: int, action: Action, other: int, trainer: bool) -> int:
        """What a browser wants; returns who held them before."""
        before = self.holder
        if action == "take":
            if not trainer:
                raise Refusal("refused", "only a trainer takes the instruments.", "Ask for them.")
            self._pass_to(number)
        elif action == "ask":
            if number != self.holder and number not in self.asking:
                self.asking.append(number)
        else:
            self.check(number)
            if action == "keep":
                self.asking.clear()
            elif other in self._present:
                self._pass_to(other)
            else:
                raise Refusal("input", f"viewer {other} is not here.", "Give them to one who asks.")
        return before

    def _pass_to(self, number: int) -> None:
        self.holder = number
        self.asking = [one for one in self.asking if one != number]


def is_trainer(token: str, shown: str) -> bool:
    """Whether a browser has shown the trainer's token; without one there is no trainer."""
    return bool(token) and hmac.compare_digest(token.encode(), shown.encode())
