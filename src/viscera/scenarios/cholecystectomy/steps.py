"""What scripted surgeons do: strokes, each chosen when the one before is over, by what the tissue looks like then.

`operation` is the order of the textbook: hold, free the triangle and the lower bed, clip, cut, free the rest of the
bed, stop what oozes, suck, take out. `clumsiness` cuts first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from viscera.instruments import Instrument
from viscera.instruments.trocar import shaft_of
from viscera.scenarios.cholecystectomy.eyes import Eyes, Springs
from viscera.scenarios.cholecystectomy.patient import LIVER_TOP, Line
from viscera.scenarios.cholecystectomy.surgeon import (
    ACROSS,
    BIPOLAR,
    CLIPS,
    DOWN,
    EVACUATOR,
    GRASPER,
    HOOK,
    IRRIGATOR,
    SCISSORS,
    SUCTION,
    TAKES_AT,
    Stroke,
    Vector3,
    along_path,
)

SPEED = 0.02
"""Of a hook through tissue [m/s]."""
FREED = 0.25
"""Share of what is to be parted that may stay."""
TIED, DEEPER = 0.35, 0.0015
"""Where more than this share of what ties duct and arteries to the fold is left, the hook goes along them once more, so
much deeper [-, m]: half a cell, and its wire is in the upper half of a tube."""
ROUNDS = 4
"""At most, along all rows that are to be parted."""
WORTHWHILE = 0.95
"""What a stroke must have left at most, of what there was, to be followed by another."""
LOWER = 0.003
"""How far along x the bed is parted before a clip is put on [m]."""
BESIDE_CUT = 0.0042
"""From where a tube is cut to its clips, along x [m]."""
BEYOND = 0.005
"""From the middle of a tube on, along the shaft, to the tips of scissors that cut it [m]."""
SNIPS = 8
"""At most, across a tube, and across the rest of the fold."""
OTHERWISE = ((0.0, 0.0), (-0.0025, 0.003), (0.0025, 0.003))
"""How far aside along y, and how much deeper, snips at the same tube are one after the other [m]."""
ACROSS_STRANDS = np.array([[0.0, -0.005, 0.0005], [0.0, 0.005, 0.0005]])
"""The way of a hook's foot across a strand, from its middle [m]: the wire stays above it."""
CLIP_TRIES = ((0.0, 0.003), (0.0, 0.0045), (0.001, 0.0015), (0.002, 0.004), (0.001, 0.0))
"""To put on a clip: how much farther from the cut each try is, and how far from the tube, out along the shaft, the tips
are [m]. Clips reach 6 mm; jaws that need not go as deep push less aside."""
SETTLES = 0.4
"""Jaws are given so long to come where they are to close [s]."""
CLEAR = 0.0015
"""Of tips above the liver [m]."""
SNIP = 0.003
"""What a snip parts, to either side along y [m]."""
LIGHT, MORE, MOST = (0.002, 0.0, 0.004), (0.002, 0.0, 0.007), (0.004, 0.0, 0.012)
"""How far the grasper pulls [m]."""
HIGHER = ((0.004, 0.0, 0.020), (0.004, -0.004, 0.028), (0.004, 0.004, 0.036))
"""The same, to draw strands of the bed taut that are left, one after the other [m]."""
OUT = (0.01, 0.0, 0.055)
"""How far it carries the gall bladder in the end [m]."""
COAGULATED, SUCKED = (-0.005, 0.0, 0.005), (-0.006, 0.004)
"""Rows of the bed that forceps and suction go along, along y [m]."""

Phase = tuple[str, Callable[[], Iterator[Stroke]]]
"""Its name, and what is done in it."""


def operation(eyes: Eyes, scissors: Instrument) -> Iterator[Stroke]:
    """A whole operation, as it should be."""
    for _, strokes in phases(eyes, scissors):
        yield from strokes()


def phases(eyes: Eyes, scissors: Instrument) -> list[Phase]:
    """In the order of the textbook."""
    return [
        ("hold", lambda: iter([Stroke(GRASPER, np.array([TAKES_AT]), 1.0, pull=LIGHT)])),
        ("triangle", lambda: free_tubes(eyes, LIGHT)),
        ("lower bed", lambda: part(eyes, eyes.bed(up_to=LOWER), MORE)),
        ("clips", lambda: clip_all(eyes, scissors)),
        ("cuts", lambda: divide(eyes, scissors, LIGHT)),
        ("bed", lambda: part(eyes, eyes.bed(), MOST, share=0.0)),
        ("strands", lambda: strands(eyes)),
        ("dry", lambda: dry(eyes)),
        ("take out", take_out),
    ]


def clumsiness(eyes: Eyes, scissors: Instrument) -> Iterator[Stroke]:
    """Cuts the artery before there is a clip, and goes into the gall bladder with the hook."""
    yield from cut_tube(eyes, scissors, 2, (0.0, 0.0, 0.0))
    yield Stroke(HOOK, np.array([[0.002, 0.0, 0.0240], [0.022, 0.0, 0.0240]]), 1.0, DOWN)


# --- places ---


def cut_at(eyes: Eyes) -> float:
    """Where all tubes are cut, along x at rest [m]: half way along the duct."""
    return float(along_path(eyes.patient.duct, 0.5)[0])


def place_of(eyes: Eyes, line: Line, aside: float = 0.0) -> NDArray[np.float64]:
    """Where a tube is to be cut, or so far beside along x, as it lies now [m], shape (1, 3)."""
    x = cut_at(eyes) + aside
    rest = np.array([[x, np.interp(x, line[:, 0], line[:, 1]), np.interp(x, line[:, 0], line[:, 2])]])
    return eyes.seen(rest)


# --- strokes ---


def free_tubes(eyes: Eyes, pull: Vector3) -> Iterator[Stroke]:
    """The hook along either side of each tube, its foot through the fold, until little is left there."""
    sides = eyes.ties()

    def tied() -> float:
        return sum(int((side.springs & eyes.left()).sum()) for side in sides) / before

    before = sum(int(side.springs.sum()) for side in sides)
    for deeper in (0.0, DEEPER):

        def beside(k: int, left: Springs, deeper: float = deeper) -> Stroke | None:
            way = eyes.way_beside(sides[k], left, deeper)
            return _drawn(way, DOWN, pull) if len(way) else None

        yield from _in_rounds(eyes, [side.springs for side in sides], FREED, beside)
        if tied() < TIED:
            return


def part(eyes: Eyes, rows: list[Springs], pull: Vector3, share: float = FREED) -> Iterator[Stroke]:
    """The hook under the gall bladder, its foot level, along rows of springs, until no more than this share of each row
    is left; or until it is free."""
    yield from _in_rounds(eyes, rows, share, lambda _, left: _drawn(eyes.path(left), ACROSS, pull))


def strands(eyes: Eyes) -> Iterator[Stroke]:
    """What still ties it to the liver, from where the fold was cut on, is drawn taut, while smoke is drawn off: it
    tears, or the hook parts it, no longer in the shadow of the gall bladder."""
    for pull in HIGHER:
        if not _tied(eyes).any():
            return
        yield Stroke(EVACUATOR, np.array([[-0.02, -0.02, 0.05]]), 0.4, pull=pull)
        left = _tied(eyes)
        if not left.any():
            return
        yield _drawn(eyes.path(left), ACROSS, pull)


def _tied(eyes: Eyes) -> Springs:
    """None once it is free."""
    left = eyes.in_its_piece(eyes.on_liver(cut_at(eyes)) & eyes.left())
    return left & (not eyes.is_free())


def _in_rounds(
    eyes: Eyes, rows: list[Springs], share: float, stroke: Callable[[int, Springs], Stroke | None]
) -> Iterator[Stroke]:
    """Strokes along rows of springs, one after the other and again, until no more than this share of each is left. A
    row that a stroke did not make less is left alone."""
    before = [2 * int(row.sum()) for row in rows]
    first = [int(row.sum()) for row in rows]
    for _ in range(ROUNDS):
        for k, row in enumerate(rows):
            left = eyes.in_its_piece(row & eyes.left())
            count = int(left.sum())
            if count <= share * first[k] or count > WORTHWHILE * before[k]:
                continue
            if share == 0.0 and eyes.is_free():
                return
            before[k] = count
            one = stroke(k, left)
            if one is not None:
                yield one


def _drawn(path: NDArray[np.float64], side: Vector3, pull: Vector3) -> Stroke:
    seconds = float(np.linalg.norm(np.diff(path, axis=0), axis=1).sum()) / SPEED
    return Stroke(HOOK, path, seconds, side, pull=pull)


def clip_all(eyes: Eyes, applier: Instrument) -> Iterator[Stroke]:
    """Two on each tube, one on either side of where it is cut; one that did not take is tried again, with the tips
    farther out or in: jaws that tissue holds back do not come to where they are to close. `applier` has the same
    trocar."""
    assert applier.trocar is not None
    for number, line in eyes.tubes():
        for towards in (-1, 1):
            for aside, out in CLIP_TRIES:
                if eyes.is_clipped(number, cut_at(eyes), towards):
                    break
                place = place_of(eyes, line, towards * (BESIDE_CUT + aside))
                place = place + out * np.array(shaft_of(place[0], applier.trocar))
                yield Stroke(CLIPS, _above_liver(place), SETTLES, ACROSS, pressed=False, pull=LIGHT)


def divide(eyes: Eyes, scissors: Instrument, pull: Vector3) -> Iterator[Stroke]:
    """Between the clips: tubes first, then what is left of the fold, snip by snip across it. Strands that no snip parts
    tear when the gall bladder is lifted."""
    for number, _ in eyes.tubes():
        yield from cut_tube(eyes, scissors, number, pull)
    before = -1
    for _ in range(SNIPS):
        left = eyes.in_its_piece(eyes.across_fold(cut_at(eyes)) & eyes.left())
        count = int(left.sum())
        if count == 0 or count == before:
            return
        before = count
        places = eyes.middles(left)
        first = places[:, 1] <= places[:, 1].min() + 2.0 * SNIP
        yield snip(places[first].mean(axis=0, keepdims=True), scissors, pull)


def cut_tube(eyes: Eyes, scissors: Instrument, number: int, pull: Vector3) -> Iterator[Stroke]:
    """Snip by snip, each at what is left of it; strands that jaws push aside are parted by the hook, across them."""
    for attempt in range(SNIPS):
        left = eyes.across_tube(number, cut_at(eyes)) & eyes.left()
        if eyes.is_cut(number) or not left.any():
            return
        place = np.median(eyes.middles(left), axis=0)
        if attempt < len(OTHERWISE):
            aside, deeper = OTHERWISE[attempt]
            yield snip((place + np.array([0.0, aside, 0.0]))[None], scissors, pull, deeper)
        else:
            yield _drawn(place + ACROSS_STRANDS, DOWN, pull)


def snip(place: NDArray[np.float64], scissors: Instrument, pull: Vector3, deeper: float = 0.0) -> Stroke:
    """Scissors that straddle a place, with their tips beyond it, and close."""
    assert scissors.trocar is not None
    on = -(BEYOND + deeper) * np.array(shaft_of(place[0], scissors.trocar))
    return Stroke(SCISSORS, _above_liver(place + on), SETTLES, ACROSS, pressed=False, pull=pull)


def _above_liver(place: NDArray[np.float64]) -> NDArray[np.float64]:
    """Tips that go deeper would be in it [m]."""
    return np.concatenate([place[:, :2], np.maximum(place[:, 2:], LIVER_TOP + CLEAR)], axis=1)


def dry(eyes: Eyes) -> Iterator[Stroke]:
    """The bed's face is coagulated, rinsed and sucked dry."""
    for y in COAGULATED:
        yield Stroke(BIPOLAR, _along_bed(eyes, y), 2.0, ACROSS, pull=MOST)
    yield Stroke(IRRIGATOR, _along_bed(eyes, 0.0) + np.array([0.0, 0.0, 0.004]), 0.6, pull=MOST)
    for y in SUCKED:
        yield Stroke(SUCTION, _along_bed(eyes, y), 1.5, pull=MOST)


def _along_bed(eyes: Eyes, y: float) -> NDArray[np.float64]:
    return eyes.seen(np.array([[-0.006, y, LIVER_TOP], [0.030, y, LIVER_TOP]]))


def take_out() -> Iterator[Stroke]:
    """The grasper carries it away, while smoke is drawn off."""
    yield Stroke(EVACUATOR, np.array([[0.0, -0.01, 0.05]]), 1.5, pull=OUT)
