"""Who somebody is: a browser shows a trainee's code or the trainer's token once, in the body of a request, and carries
a cookie from then on. Neither ever stands in an address, where histories and logs would keep it.

A socket that is open already learns of it by a *ticket*, which the answer to that request has in it and which works
once. All of this lives in memory: a server that starts anew asks again.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass

LASTS_S = 12.0 * 3600.0
"""A browser that has not been heard of for so long has to enter again [s]."""
MOST = 2_000
"""Browsers that are known at once; the ones that were heard of least lately are forgotten first."""
TRIES = 5
"""Wrong codes for one name, after which it has to wait."""
WAIT_S = 30.0
"""For so long [s]."""


@dataclass(frozen=True)
class Visitor:
    """Somebody who has entered, or has not."""

    trainee: str = ""
    """Name; empty: nobody's trials are kept."""
    key: str = ""
    """What recordings call the trainee: it says nothing to those who do not have the database."""
    trainer: bool = False


NOBODY = Visitor()


@dataclass
class _Entered:
    visitor: Visitor
    ticket: str
    heard: float


class Entrance:
    """Of one server."""

    def __init__(self, port: int = 0) -> None:
        # Browsers share cookies between the ports of a host.
        self.cookie = f"viscera-who-{port}"
        self._entered: dict[str, _Entered] = {}
        self._wrong: dict[str, tuple[int, float]] = {}

    def enter(self, visitor: Visitor) -> tuple[str, str]:
        """What the cookie holds from now on, and the ticket for an open socket."""
        cookie, ticket = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._entered[cookie] = _Entered(visitor, ticket, time.monotonic())
        while len(self._entered) > MOST:
            del self._entered[min(self._entered, key=lambda one: self._entered[one].heard)]
        return cookie, ticket

    def who(self, cookie: str | None) -> Visitor:
        """Of the cookie that a browser shows; nobody where it has none, or an old one."""
        found = self._entered.get(cookie or "")
        now = time.monotonic()
        if found is None or now - found.heard > LASTS_S:
            return NOBODY
        found.heard = now
        return found.visitor

    def redeem(self, ticket: str) -> Visitor | None:
        """Of a ticket, which then works no more; None where it is not known."""
        for one in self._entered.values():
            if one.ticket and secrets.compare_digest(one.ticket, ticket):
                one.ticket = ""
                return one.visitor
        return None

    def leave(self, cookie: str | None) -> None:
        self._entered.pop(cookie or "", None)

    def forget(self, trainee: str) -> None:
        """Nobody is this trainee any more."""
        for cookie in [key for key, one in self._entered.items() if one.visitor.trainee == trainee]:
            del self._entered[cookie]

    # --- guessing ---

    def waits(self, name: str) -> float:
        """How long this name has to wait after wrong codes [s]; 0 as a rule."""
        count, last = self._wrong.get(name, (0, 0.0))
        return max(0.0, last + WAIT_S - time.monotonic()) if count >= TRIES else 0.0

    def was_wrong(self, name: str) -> None:
        now = time.monotonic()
        self._wrong = {one: told for one, told in self._wrong.items() if now - told[1] < WAIT_S}
        self._wrong[name] = (self._wrong.get(name, (0, now))[0] + 1, now)

    def was_right(self, name: str) -> None:
        self._wrong.pop(name, None)
