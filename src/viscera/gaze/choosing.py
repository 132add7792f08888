"""Sources of gaze by name, as the command line has them:

pointer           the page's pointer, or its webcam; what there is without a word
trace:FILE        a recorded one, a CSV file
lsl, lsl:NAME     Lab Streaming Layer, a stream of type `Gaze`, or of this name
tobii, pupil      the makers' trackers, through their own packages
model:SEED        the model of fixations and saccades; 0 where no seed is given
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast, get_args

from viscera.errors import InputError
from viscera.gaze.attention import Source
from viscera.gaze.scanpath import ScanPath
from viscera.gaze.trace import read_trace

Kind = Literal["pointer", "trace", "lsl", "tobii", "pupil", "model"]
Surface = Literal["view", "screen"]
"""What places are shares of: the picture of the world, or the whole screen that a tracker was calibrated on."""

WORDS = "pointer, trace:FILE, lsl, lsl:NAME, tobii, pupil, model:SEED"


@dataclass(frozen=True)
class Chosen:
    """A source that somebody asked for."""

    kind: Kind
    of: str = ""
    """A file, the name of a stream, a seed; empty where there is none."""

    @property
    def name(self) -> str:
        """For people."""
        return {
            "pointer": "the page's pointer or webcam",
            "trace": f"recorded gaze of {Path(self.of).name}",
            "lsl": f"Lab Streaming Layer, {f'stream {self.of}' if self.of else 'the first stream of gaze'}",
            "tobii": "Tobii eye tracker",
            "pupil": "Pupil Labs eye tracker",
            "model": f"model of a viewer, seed {self.of or 0}",
        }[self.kind]

    @property
    def surface(self) -> Surface:
        return "screen" if self.kind in ("lsl", "tobii") else "view"


def parse_gaze(text: str) -> Chosen:
    """`trace:eyes.csv` as a source; nothing is the pointer."""
    word, colon, of = text.partition(":")
    kind, of = (word.strip().lower() or "pointer"), of.strip()
    if kind not in get_args(Kind):
        raise InputError(f"--gaze {text!r} is not known.", f"There are: {WORDS}.")
    if kind == "trace" and not of:
        raise InputError("--gaze trace names no file.", "For example: --gaze trace:eyes.csv")
    if colon and kind in ("pointer", "tobii", "pupil"):
        raise InputError(f"--gaze {kind} takes nothing behind a colon.", f"There are: {WORDS}.")
    if kind == "model" and of and not (of.isascii() and of.isdecimal()):
        raise InputError(f"--gaze {text!r}: {of!r} is no seed.", "Give a whole number: --gaze model:3")
    return Chosen(cast("Kind", kind), of)


def open_source(chosen: Chosen, aspect: float = 16.0 / 9.0) -> Source | None:
    """Ready to be asked; None for the pointer, which the page asks. A device may take seconds to be found."""
    if chosen.kind == "trace":
        return read_trace(chosen.of)
    if chosen.kind == "model":
        return ScanPath(int(chosen.of or 0), aspect)
    if chosen.kind == "lsl":
        from viscera.gaze.lsl import StreamingLayer

        return StreamingLayer(chosen.of)
    if chosen.kind in ("tobii", "pupil"):
        from viscera.gaze.makers import PupilLabs, Tobii

        return Tobii() if chosen.kind == "tobii" else PupilLabs()
    return None


def check_gaze(text: str) -> None:
    """Refuses what cannot be opened, before anything else starts."""
    source = open_source(parse_gaze(text))
    if source is not None:
        source.close()
