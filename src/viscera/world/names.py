"""Names that somebody wrote a little wrong."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def closest_names(name: str, known: Iterable[str]) -> str:
    """A hint for a name that is not there."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    maybe = f"Did you mean {close[0]!r}? " if close else ""
    return f"{maybe}There are: {', '.join(names)}."
