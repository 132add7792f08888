"""A source of gaze that looks at a world: once a frame, what it sees becomes an input.

The source is asked beside the world, never by it: what it says goes in as a row of the table that the world has for
gaze, is recorded, and a replay needs no source. Where the eye is not seen nothing is put in; the world keeps the last
place for a while, then refines the surface (`Attention`). A source that breaks counts as an eye that is not seen; it is
asked again every second, and `problem` says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from viscera.errors import InputError, VisceraError
from viscera.gaze.attention import HOLD, Source
from viscera.gaze.choosing import Chosen, open_source
from viscera.gaze.rows import ASPECT, Row, Sight
from viscera.inputs import SetTable
from viscera.timing import TICK, TICKS_PER_FRAME
from viscera.view import Camera, Scene

FARTHEST = 10.0
"""Views beside the view; whatever is farther is no place."""
AGAIN = round(1.0 / TICK)
"""A source that broke is asked again after so many ticks."""


class Looking:
    """`reopen` makes the source anew, from its beginning: a trace, or a model."""

    def __init__(self, table: str, chosen: Chosen, camera: Camera, *, reopen: Callable[[], Source | None]) -> None:
        self.table, self.chosen = table, chosen
        self.problem = ""
        """Why nothing is seen, in words; empty while all is well."""
        self._reopen = reopen
        self._source = self._open()
        self._sight = Sight.through(camera)
        self._begun = 0
        self._not_before = 0
        self._seen = -math.inf
        """The tick at which the eye was last seen."""

    @classmethod
    def at(cls, scene: Scene, chosen: Chosen, tick: int = 0, aspect: float = ASPECT) -> Looking | None:
        """At what this scene shows; None where it asks for no gaze, or the page's own is wanted."""
        table = next((one.name for one in scene.tables if one.source == "gaze"), None)
        if table is None or chosen.kind == "pointer":
            return None
        made = cls(table, chosen, scene.camera, reopen=lambda: open_source(chosen, aspect))
        made._begun = tick
        return made

    def _open(self) -> Source:
        source = self._reopen()
        if source is None:
            raise InputError(f"{self.chosen.name} is no source of its own.", "The page has it.")
        return source

    def see(self, rows: Iterable[Row]) -> None:
        """The page tells what lies behind the tracker's surface: two corners. One row alone is its pointer, which does
        not count."""
        found = tuple(tuple(row) for row in rows)
        if len(found) == 2:
            self._sight = Sight.of_rows(found)

    def restart(self, tick: int) -> None:
        """The world begins again with the next tick: so do a trace and a model. Live ones go on."""
        self._begun = tick
        if self.chosen.kind in ("trace", "model"):
            self._source.close()
            self._source = self._open()

    def inputs(self, tick: int) -> list[SetTable]:
        """Before this tick."""
        if tick % TICKS_PER_FRAME or tick < self._not_before:
            return []
        try:
            sample = self._source.sample((tick - self._begun) * TICK)
        except Exception as error:  # whatever a maker's package raises: the world goes on
            self.problem = _in_words(error)
            self._not_before = tick + AGAIN
            return []
        seen = sample is not None and sample.valid and math.isfinite(sample.x) and math.isfinite(sample.y)
        near = sample is not None and seen and max(abs(sample.x), abs(sample.y)) <= FARTHEST
        if sample is None or not near:
            if tick - self._seen > HOLD / TICK:  # longer than a blink
                self.problem = "The eye is not seen; the surface is refined instead."
            return []
        self.problem, self._seen = "", tick
        return [SetTable(self.table, (self._sight.row(sample.x, sample.y, valid=True),))]

    def close(self) -> None:
        self._source.close()


def _in_words(error: Exception) -> str:
    return str(error) if isinstance(error, VisceraError) else f"{type(error).__name__}: {error}"
