"""The haptic process: alone with its devices, so that nothing else of ours can make a hand wait.

The server makes one for as long as it serves; sessions come and go on the other side of its link. It ends when it is
told to, or when whoever made it is gone; in both cases the last thing it writes is no force.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import multiprocessing
import signal
from collections.abc import Callable
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from viscera.errors import DeviceError, InputError, VisceraError
from viscera.haptics.link import TOOLS, Link
from viscera.haptics.priority import HAPTIC_LEVEL, come_first
from viscera.waiting import wake_early

START_S = 60.0
"""Opening a device may take seconds, calibrating one a little more [s]."""

STOP_S = 5.0
"""A process that was told to stop has this long [s]."""

LISTEN_CYCLES = 64
"""The loop looks this often for the word to stop."""


@dataclass(frozen=True)
class HapticSpec:
    devices: tuple[str, ...]
    """Names as in `viscera haptics list`, the first for tool 0."""
    mapping: Path | None = None
    """Mapping file; the user's own when there is none."""
    report: Path | None = None
    """Where to write at the end what was counted and timed, as JSON."""


class HapticProcess:
    """The maker's side of it. `link` is handed to every session."""

    def __init__(self, spec: HapticSpec) -> None:
        if len(spec.devices) > TOOLS:
            raise InputError(f"{len(spec.devices)} haptic devices are too many.", f"At most {TOOLS} can be used.")
        self.spec = spec
        self.link = Link()
        self.names: list[str] = []
        """Of the devices that are open."""
        self.sentences: list[str] = []
        """For people: which devices are not there, and what is used instead."""
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    def start(self) -> None:
        """Returns when the loop runs, or when it turned out that no device is there (`names` is empty then)."""
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.get_context("spawn").Process(
            target=main, args=(self.spec, self.link, theirs), name="viscera-haptics", daemon=True
        )
        self._process.start()
        theirs.close()  # a closed end is how each side learns that the other is gone
        try:
            if not self._pipe.poll(START_S):
                raise DeviceError(
                    f"the haptic devices {', '.join(self.spec.devices)} did not open within {START_S:.0f} s.",
                    "Unplug them, plug them in again, and see `viscera haptics list`.",
                )
            kind, first, second = self._pipe.recv()
        except (EOFError, DeviceError) as error:
            self.stop()
            if isinstance(error, DeviceError):
                raise
            raise DeviceError(
                "the haptic process ended while it opened its devices.", "The terminal may say more."
            ) from None
        if kind == "refused":
            self.stop()
            raise InputError(first, second)
        self.names, self.sentences = first, second
        if not self.names:
            self.stop()

    def stop(self) -> None:
        """Force off, devices closed; by force if it does not listen."""
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        process, self._process = self._process, None
        if process is None:
            return
        for force in (process.terminate, process.kill):
            process.join(STOP_S)
            if process.exitcode is not None:
                return
            force()
        process.join(STOP_S)

    def __enter__(self) -> HapticProcess:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()


def main(spec: HapticSpec, link: Link, pipe: Connection) -> None:
    """Entry point of the spawned process."""
    from viscera.haptics.devices.catalogue import open_devices
    from viscera.haptics.devices.pointer import PointerDevice
    from viscera.haptics.loop import Driven, HapticLoop
    from viscera.haptics.mapping import load_mappings

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole terminal; the server decides what it means
    faulthandler.enable()
    if not come_first(HAPTIC_LEVEL):
        wake_early()
    try:
        devices, sentences = open_devices(list(spec.devices), load_mappings(spec.mapping))
    except VisceraError as error:
        pipe.send(("refused", error.message, error.hint))
        return
    real = [device for device in devices if not isinstance(device.device, PointerDevice)]
    for device in real:
        if device.tool >= TOOLS:
            pipe.send(("refused", f"{device.name} drives tool {device.tool}.", f"There are {TOOLS}, counted from 0."))
            return
    loop = HapticLoop([Driven(device, device.tool) for device in real], link)
    pipe.send(("ready", [device.name for device in real], sentences))
    try:
        if real:
            loop.run(_told_to_stop(pipe))
    finally:
        for device in devices:
            device.close()
        if spec.report is not None and real:
            write_report(link, spec.report, [device.name for device in real])


def report(link: Link) -> dict[str, Any]:
    """What was counted and timed, as plain data."""
    return {"counters": link.counters(), "times": {name: asdict(time) for name, time in link.times().items()}}


def write_report(link: Link, path: Path, names: list[str]) -> None:
    with contextlib.suppress(OSError):  # a figure that cannot be kept is no reason to fail
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"devices": names, **report(link)}, indent=1) + "\n")


def _told_to_stop(pipe: Connection) -> Callable[[], bool]:
    asked = False

    def ask(number: int, frame: object) -> None:
        nonlocal asked
        asked = True

    signal.signal(signal.SIGTERM, ask)
    cycles = 0

    def stopping() -> bool:
        nonlocal cycles
        cycles += 1
        return asked or (cycles % LISTEN_CYCLES == 0 and pipe.poll())

    return stopping
