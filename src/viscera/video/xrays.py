"""`viscera xray`: the X-ray pictures of a recording, or its state in space, as files that other programs read.

The world is made again from its inputs; every picture that its X-ray machine takes on the way is kept, as it was taken,
without the rings of a reader. The end of the file's name says what is written: `.png` the last picture, `.apng` all of
them as a film that keeps every grey value, `.webm` and `.mp4` a video, `.dcm` DICOM XA (several files where field,
distance or collimator change), `.h5` wall, film and particles at the end (`water.coating.write_study`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from viscera.errors import InputError
from viscera.session.archive import read_recording
from viscera.session.playing import Player
from viscera.session.replay import DEFAULT_FACTORY, make_world
from viscera.water.coating import write_study
from viscera.world.systems.enema import Enema
from viscera.xray import Xray, files
from viscera.xray.xray import PULSES

Progress = Callable[[str, float], None]

KINDS = (".png", ".apng", *files.CODECS, ".dcm", ".h5")


@dataclass(frozen=True)
class Written:
    """What came out."""

    files: list[str]
    pictures: int
    """That the machine took."""
    seconds: float
    """Of the recording, from its beginning [s]."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def write_xrays(
    recording: str | Path,
    out: str | Path,
    *,
    begin: float = 0.0,
    end: float | None = None,
    device: str | None = None,
    factory: str = DEFAULT_FACTORY,
    progress: Progress | None = None,
) -> Written:
    """Pictures that a recording took from `begin` to `end` [s] (None: to its end), or what is there at `end`."""
    out = Path(out)
    kind = out.suffix.lower()
    if kind not in KINDS:
        raise InputError(f"{out} is none of the files that can be written.", f"It ends in {', '.join(KINDS)}.")
    if not begin >= 0.0 or (end is not None and not end > begin):
        raise InputError(f"from {begin:g} s to {end} s there is nothing.", "Begin before the end.")
    found = read_recording(recording)
    first, last = round(1000.0 * begin), found.tick if end is None else min(found.tick, round(1000.0 * end))
    if first >= last:
        raise InputError(f"the recording ends at {found.tick / 1000.0:.2f} s.", "Begin earlier (--from).")
    world = make_world(found, device=device, factory=factory, progress=progress)
    try:
        machine, enema = _held(world, Xray), _held(world, Enema)
        if (enema if kind == ".h5" else machine) is None:
            raise InputError(
                f"{found.header.scenario} has no {'fluid in an organ' if kind == '.h5' else 'X-ray'}.",
                "Record the scenario barium.",
            )
        cine = _filmed(world, Player(world, found, keep_most=0), machine, first, last, progress)
        return Written([str(path) for path in _write(out, kind, cine, enema)], len(cine.frames), last / 1000.0)
    finally:
        world.close()


def _held(world: Any, kind: type) -> Any:
    """What the system of a world that holds one of this kind is about."""
    return next((one.holds for one in world.contents.systems if isinstance(one.holds, kind)), None)


def _filmed(
    world: Any, player: Player, machine: Xray | None, first: int, last: int, progress: Progress | None
) -> files.Cine:
    """Every picture of the machine on the way, once."""
    cine = files.Cine(15.0, 0.0)
    player.load_before(first)
    player.advance(first)
    taken = None if machine is None else float(machine.counted[PULSES])
    while world.tick < last:
        player.advance(min(player.next_frame(), last))
        world.wait()
        if machine is not None and machine.counted[PULSES] != taken:
            taken = float(machine.counted[PULSES])
            cine.rate, cine.peak = machine.pulse_rate, machine.params.tube.peak
            files.add(cine, machine)
        if progress is not None and world.tick % 480 == 0:
            progress(f"{world.tick / 1000.0:.1f} s", (world.tick - first) / (last - first))
    return cine


def _write(out: Path, kind: str, cine: files.Cine, enema: Enema | None) -> list[Path]:
    if kind == ".h5":
        assert enema is not None
        write_study(out, enema.coating, enema.fluid, enema.vessel.walls.vertices)
        return [out]
    if not cine.frames:
        raise InputError("no picture was taken there.", "The pedal was up: take another part (--from, --to).")
    if kind == ".png":
        files.write_png(out, cine.frames[-1])
    elif kind == ".apng":
        files.write_film(out, cine)
    elif kind != ".dcm":
        files.write_video(out, cine)
    else:
        parts = files.runs(cine)
        names = [out] if len(parts) == 1 else [out.with_stem(f"{out.stem}-{k}") for k in range(1, len(parts) + 1)]
        for name, part in zip(names, parts, strict=True):
            files.write_dicom(name, part)
        return names
    return [out]
