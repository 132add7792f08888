"""Names that somebody wrote a little wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from viscera.errors import InputError


class Named(Protocol):
    name: str


Part = TypeVar("Part", bound=Named)


def part_called(name: str, kind: str, parts: Sequence[Part]) -> Part:
    """The one of that name."""
    for part in parts:
        if part.name == name:
            return part
    raise InputError(f"the world has no {kind} {name!r}.", closest_names(name, [part.name for part in parts]))


def closest_names(name: str, known: Iterable[str]) -> str:
    """A hint for a name that is not there."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    maybe = f"Did you mean {close[0]!r}? " if close else ""
    return f"{maybe}There are: {', '.join(names) or 'none'}."
