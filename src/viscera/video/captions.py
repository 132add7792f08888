"""Words on a picture: what is being done, the time, and what people measure, in the lower left corner."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.view import Frame, Scene

Bytes = NDArray[np.uint8]

MOST_ROWS = 8
"""Of measures."""
INK, MET, LOST = (235, 240, 242), (126, 231, 135), (255, 138, 128)
"""Colours of words: as a rule, of a goal that is met, of one that is lost."""
SHADE = 150
"""How dark the panel behind the words is, of 255."""

ENDS = {
    "met": "Done",
    "failed": "Failed",
    "given_up": "Given up",
    "found": "Found",
    "missed": "Missed",
}

Line = tuple[str, tuple[int, int, int]]


def clock(seconds: float) -> str:
    """75.26 s is 1:15.3."""
    tenths = round(10.0 * seconds)
    return f"{tenths // 600}:{tenths % 600 // 10:02d}.{tenths % 10}"


def lines_of(scene: Scene, frame: Frame) -> list[Line]:
    """What is written on the picture of a frame."""
    lines: list[Line] = [(f"{scene.title}  {clock(frame.time)}", INK)]
    drill = frame.drill
    if drill is not None and drill.phase == "running":
        lines.append((f"{scene.levels[drill.level].name}, since {clock(drill.time)}", INK))
    elif drill is not None and drill.phase == "ended":
        lost = drill.outcome in ("failed", "missed", "given_up")
        lines.append((f"{ENDS[drill.outcome]} after {clock(drill.time)}", LOST if lost else MET))
    goals = {} if drill is None or not scene.levels else {g.measure: g for g in scene.levels[drill.level].goals}
    begun = drill is not None and drill.phase != "waiting"
    there = [measure for measure in scene.measures if measure.name in frame.measures]
    there.sort(key=lambda measure: measure.name not in goals)  # goals first, else as the scene has them
    for measure in there[:MOST_ROWS]:
        value = frame.measures[measure.name]
        goal = goals.get(measure.name)
        colour = INK
        if goal is not None and begun and drill is not None:
            colour = LOST if measure.name in drill.failed else MET if goal.met(value) else INK
        lines.append((f"{measure.label}  {value:.{measure.digits}f} {measure.unit}".rstrip(), colour))
    force = max((float(np.linalg.norm(tool.force)) for tool in frame.tools if tool.active), default=None)
    if force is not None:
        lines.append((f"Force  {force:.2f} N", INK))
    return lines


class Captions:
    """Draws lines onto pictures of one height; words that have not changed are not drawn anew."""

    def __init__(self, height: int) -> None:
        self._size = max(11, round(height / 36))
        self._width = 0
        self._strips: dict[Line, tuple[NDArray[np.uint16], NDArray[np.uint16]]] = {}
        """Of the lines that were put last: the words, times their cover, and what is left of the picture below."""

    def put(self, picture: Bytes, lines: list[Line]) -> None:
        """Writes them onto the picture (height, width, 3), in place."""
        font = _font(self._size)
        high = round(1.45 * self._size)
        wide = round(max(font.getlength(text) for text, _ in lines)) + 2 * self._size
        if wide > self._width:  # it never shrinks: a panel that breathes is restless
            self._width, self._strips = wide, {}
        self._strips = {line: self._strips.get(line) or self._draw(line, high) for line in lines}
        top = len(picture) - self._size - high * len(lines)
        for row, line in enumerate(lines):
            words, left = self._strips[line]
            first = max(0, top + row * high)
            corner = picture[first : max(0, top + (row + 1) * high), self._size : self._size + self._width]
            height, width = corner.shape[:2]
            if height == high:
                np.copyto(corner, (corner * left[:, :width] + words[:, :width]) >> 8, casting="unsafe")

    def _draw(self, line: Line, high: int) -> tuple[NDArray[np.uint16], NDArray[np.uint16]]:
        image, draw_on = _pillow()
        panel = image.new("RGBA", (self._width, high), (8, 12, 14, SHADE))
        text, colour = line
        draw_on.Draw(panel).text((self._size // 2, high // 8), text, font=_font(self._size), fill=(*colour, 255))
        pixels = np.asarray(panel).astype(np.uint16)
        cover = pixels[:, :, 3:]
        return pixels[:, :, :3] * cover, 256 - cover


def _pillow() -> tuple[Any, Any]:
    try:
        from PIL import Image, ImageDraw
    except ImportError as error:
        raise InputError("Pillow is not installed.", "Install it: pip install 'viscera[video]'.") from error
    return Image, ImageDraw


@cache
def _font(size: int) -> Any:
    """The typeface that comes with matplotlib: the same on every machine."""
    import matplotlib
    from PIL import ImageFont

    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"), size)
