"""What an attack is, and what is kept of one that was right."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Case = dict[str, Any]
"""Plain data that JSON knows, so that it can be kept. `steps` is a list that can be made shorter."""

FOUND = Path(__file__).parent.parent / "tests" / "soak" / "found"


class Broken(Exception):
    """A promise was not kept."""


@dataclass(frozen=True)
class Attack:
    name: str
    what: str
    """For the table."""
    draw: Callable[[random.Random, bool], Case]
    """A case; a small one where the second argument is true."""
    attempt: Callable[[Case], None]
    """Raises when something is broken: `Broken`, or whatever the code under attack should not have raised."""
    patience: float = 60.0
    """An attempt that takes longer hangs [s]."""


@dataclass(frozen=True)
class Finding:
    attack: str
    case: Case
    problem: str

    def save(self, folder: Path = FOUND) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"attack": self.attack, "problem": self.problem, "case": self.case}, indent=1) + "\n"
        path = folder / f"{self.attack}-{hashlib.sha256(text.encode()).hexdigest()[:10]}.json"
        path.write_text(text)
        return path


def load(path: Path) -> Finding:
    return Finding(**json.loads(path.read_text()))


def pack(data: bytes) -> str:
    return base64.b64encode(data).decode()


def unpack(text: str) -> bytes:
    return base64.b64decode(text)


def nasty(random: random.Random) -> Any:
    """A value that nobody expects."""
    return random.choice(
        [
            None, True, -1, 0, 1, 2**31, 2**63 - 1, -(2**63), 2**64 - 1, 0.0, -0.0, 1e-320, 1e308, -1e308,
            math.nan, math.inf, -math.inf, "", "\0", "ä" * 50, "x" * random.choice((1, 255, 257, 3000)),
            [], {}, [[]], [[1] * random.choice((1, 400))], [None] * 3, [math.nan] * 3, {"type": "hello"}, "../../etc",
        ]
    )  # fmt: skip


def changed(random: random.Random, data: bytes) -> bytes:
    """The same bytes with something done to them: flipped, cut, doubled, moved, filled."""
    found = bytearray(data)
    for _ in range(random.choice((1, 1, 1, 2, 5, 20))):
        if not found:
            break
        place = random.randrange(len(found))
        length = min(random.choice((1, 2, 4, 8, 64, 1000)), len(found) - place)
        way = random.randrange(7)
        if way == 0:
            found[place] ^= 1 << random.randrange(8)
        elif way == 1:
            del found[place:]
        elif way == 2:
            del found[place : place + length]
        elif way == 3:
            found[place:place] = found[place : place + length]
        elif way == 4:
            found[place : place + length] = random.randbytes(length)
        elif way == 5:
            found[place : place + length] = bytes([random.choice((0, 255, 127, 128))]) * length
        else:
            other = random.randrange(len(found))
            found[place : place + length] = found[other : other + length]
    return bytes(found)
