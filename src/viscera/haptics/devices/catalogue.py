"""Every kind of device by name: how it is made, how it sits in the theatre unless a mapping file says otherwise, and
whether one is there.

A name is a kind, or a kind and which one: `haply`, `haply:1`, `haply:049D`, `touch:Left Device`, `trace:poke.csv`.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as Table
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from viscera.errors import DeviceError, InputError
from viscera.haptics.device import ZERO, HapticDevice
from viscera.haptics.devices.attach import AttachedDevice
from viscera.haptics.devices.forcedimension import ForceDimensionDevice
from viscera.haptics.devices.hand import HandDevice, HandParams, poke
from viscera.haptics.devices.haply import ADDRESS, HaplyDevice, list_haply
from viscera.haptics.devices.openhaptics import DEFAULT_DEVICE, OpenHapticsDevice
from viscera.haptics.devices.pointer import PointerDevice
from viscera.haptics.devices.trace import TraceDevice
from viscera.haptics.mapping import Mapping, with_table

POKE_DEPTH = 0.045
"""How far the simulated hand goes down from the tool's home [m]: scenarios put that some 40 mm above the tissue."""

Tables = Table[str, Table[str, Any]]
"""Tables of a mapping file, by device name."""


@dataclass(frozen=True)
class Found:
    """What looking for a kind of device has shown."""

    name: str
    """For `--haptics`."""
    title: str
    present: bool
    sentence: str


@dataclass(frozen=True)
class Kind:
    title: str
    mapping: Mapping
    make: Callable[..., HapticDevice]
    """Takes which one, and the options of the mapping."""
    look: Callable[[Table[str, Any]], list[tuple[str, str]]]
    """(which one, what it is) for those that are there; `DeviceError` when there are none."""


def _make_hand(which: str = "", depth: float = POKE_DEPTH, seconds: float = 1.0, **grip: float) -> HapticDevice:
    return HandDevice(poke(depth, seconds=seconds), HandParams(**grip))


def _make_trace(which: str = "", repeat: bool = False) -> HapticDevice:
    if not which:
        raise InputError("trace needs a file.", "Say which: trace:poke.csv.")
    return TraceDevice(which, repeat=repeat)


def _make_pointer(which: str = "") -> HapticDevice:
    return PointerDevice()


def _look_for_haply(options: Table[str, Any]) -> list[tuple[str, str]]:
    url = str(options.get("url", ADDRESS))
    ids = list_haply(url)
    if not ids:
        raise DeviceError(f"the Haply service at {url} runs, but no Inverse3 is plugged in.", "Plug it in.")
    return [(one, f"Haply Inverse3 {one}") for one in ids]


def _look_for_touch(options: Table[str, Any]) -> list[tuple[str, str]]:
    device = OpenHapticsDevice()
    device.open()
    device.close()
    return [("", f"{device.model}, {device.peak_force:.1f} N")]


def _look_for_force_dimension(options: Table[str, Any]) -> list[tuple[str, str]]:
    from viscera.haptics.devices.forcedimension import load_library

    count = load_library().getAvailableCount()
    if count <= 0:
        raise DeviceError("the Force Dimension SDK sees no device.", "Plug it in and switch it on.")
    return [("" if index == 0 else str(index), "Force Dimension device") for index in range(count)]


def _always(title: str) -> Callable[[Table[str, Any]], list[tuple[str, str]]]:
    return lambda _options: [("", title)]


KINDS: dict[str, Kind] = {
    "touch": Kind(
        "3D Systems Touch and PHANTOM (OpenHaptics)",
        # x right, y up, z to the user; the stylus points along −z.
        Mapping(axes=("x", "-z", "y")),
        lambda which=DEFAULT_DEVICE: OpenHapticsDevice(which),
        _look_for_touch,
    ),
    "forcedimension": Kind(
        "Force Dimension omega, delta, sigma, lambda, Falcon",
        # x to the user, y right, z up; the handle points along −x.
        Mapping(axes=("y", "-x", "z"), handle=("y", "z", "x")),
        lambda which="0": ForceDimensionDevice(which),
        _look_for_force_dimension,
    ),
    "haply": Kind(
        "Haply Inverse3 (Inverse Service)",
        # Axes as ours; the origin is on the device's own face, the middle of its reach in front of it. A grip points
        # along its +y.
        Mapping(center=(0.0, -0.12, 0.17), handle=("x", "z", "-y")),
        lambda which="0", **options: HaplyDevice(which, **options),
        _look_for_haply,
    ),
    "pointer": Kind(
        "the page's pointer",
        Mapping(place=ZERO),
        _make_pointer,
        _always("always there; its force is shown, not felt"),
    ),
    "trace": Kind(
        "a recorded trace",
        Mapping(place=ZERO),
        _make_trace,
        _always("plays a file: trace:FILE.csv, .npz or .h5"),
    ),
    "hand": Kind(
        "a simulated hand",
        Mapping(),
        _make_hand,
        _always("pokes the tissue and gives when pushed, without a device"),
    ),
}


def split_name(name: str) -> tuple[str, str]:
    """(kind, which one) of a device's name."""
    kind, _, which = name.strip().partition(":")
    if kind not in KINDS:
        near = get_close_matches(kind, KINDS, 1)
        hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(KINDS)}."
        raise InputError(f"haptic device {kind!r} is not known.", hint)
    return kind, which


def mapping_for(name: str, tables: Tables | None = None) -> Mapping:
    """As built in, changed by the table of its kind, changed by the table of its full name."""
    kind, _ = split_name(name)
    mapping = KINDS[kind].mapping
    for title in dict.fromkeys((kind, name)):
        if tables and title in tables:
            mapping = with_table(mapping, tables[title], title)
    return mapping


def make_device(name: str, tables: Tables | None = None) -> AttachedDevice:
    """A device of that name, not open yet."""
    kind, which = split_name(name)
    mapping = mapping_for(name, tables)
    try:
        device = KINDS[kind].make(*([which] if which else []), **mapping.options)
    except TypeError as error:
        raise InputError(f"[{kind}] options {dict(mapping.options)} are not allowed: {error}.", "Mend them.") from error
    return AttachedDevice(device, mapping)


def make_devices(names: list[str], tables: Tables | None = None) -> list[AttachedDevice]:
    """Devices for tools 0, 1, … in this order, unless the mapping file names other tools."""
    _check_titles(tables)
    devices = [make_device(name, tables) for name in names]
    for number, (name, device) in enumerate(zip(names, devices, strict=True)):
        if not _names_tool(name, tables):
            device.mapping = replace(device.mapping, tool=number)
    drivers: dict[int, str] = {}
    for name, device in zip(names, devices, strict=True):
        if device.tool in drivers:
            raise InputError(
                f"{drivers[device.tool]} and {name} both drive tool {device.tool}.",
                "Name another tool for one of them.",
            )
        drivers[device.tool] = name
    if len({device.name for device in devices}) < len(devices):
        raise InputError(f"--haptics {' '.join(names)} names a device twice.", "Say which ones: haply:0 haply:1.")
    return devices


def _check_titles(tables: Tables | None) -> None:
    """Refuses a mapping file with a table of no device."""
    for title in tables or {}:
        split_name(title)


def _names_tool(name: str, tables: Tables | None) -> bool:
    kind, _ = split_name(name)
    return any("tool" in (tables or {}).get(title, {}) for title in (kind, name))


def open_devices(names: list[str], tables: Tables | None = None) -> tuple[list[AttachedDevice], list[str]]:
    """The devices, open, and a sentence for each that is not there: the page's pointer takes its place."""
    opened: list[AttachedDevice] = []
    sentences: list[str] = []
    for name, device in zip(names, make_devices(names, tables), strict=True):
        try:
            device.open()
        except DeviceError as error:
            sentences.append(f"No haptic device {name}: {error} The page's pointer is used instead.")
            device = AttachedDevice(PointerDevice(), replace(KINDS["pointer"].mapping, tool=device.tool))
            device.open()
        opened.append(device)
    return opened, sentences


def find_devices(tables: Tables | None = None) -> list[Found]:
    """Looks for every kind; one entry for each device that is there, and one for each kind of which none is."""
    _check_titles(tables)
    found: list[Found] = []
    for name, kind in KINDS.items():
        try:
            there = kind.look(mapping_for(name, tables).options)
        except DeviceError as error:
            found.append(Found(name, kind.title, False, str(error)))
            continue
        found += [Found(f"{name}:{which}" if which else name, kind.title, True, what) for which, what in there]
    return found
