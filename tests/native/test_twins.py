"""Each loop in C against its plain twin, for every feature on every device; what one lacks it refuses.

The registry (`viscera.native.twins`) has the cases and their tolerances, with the reason beside each number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import viscera
from viscera.device import Device, open_device
from viscera.errors import DeviceError, InputError
from viscera.native import Twin, registered
from viscera.native.twins import difference, run

TWINS = registered(viscera)
DEVICES = {"cpu": "cpu", "cuda": "cuda:0"}


def _on(kind: str, *values: Any, name: str) -> Any:
    marks = [pytest.mark.cuda] if kind == "cuda" else []
    return pytest.param(kind, *values, marks=marks, id=f"{name} on {kind}")


def shared_features() -> Iterator[Any]:
    for twin in TWINS.values():
        for kind in twin.native:
            for feature in twin.features:
                yield _on(kind, twin, feature, name=f"{twin.name}, {feature}")


def lacking_features() -> Iterator[Any]:
    for twin in TWINS.values():
        for kind in twin.native:
            for native, features in ((True, twin.plain_only), (False, twin.native_only)):
                for feature in features:
                    name = f"{twin.name}, {feature}, {'native' if native else 'plain'}"
                    yield _on(kind, twin, feature, native, name=name)


@pytest.fixture(scope="module")
def devices() -> Iterator[dict[str, Device]]:
    """Opened when they are asked for, closed at the end."""
    opened: dict[str, Device] = {}
    yield opened
    for device in opened.values():
        device.close()


def _open(devices: dict[str, Device], kind: str) -> Device:
    if kind not in devices:
        devices[kind] = open_device(DEVICES[kind])
    return devices[kind]


@pytest.mark.parametrize(("kind", "twin", "feature"), list(shared_features()))
def test_plain_and_native_agree(devices: dict[str, Device], kind: str, twin: Twin, feature: str) -> None:
    device = _open(devices, kind)
    plain, native = (run(device, twin.make(device, feature, loops, twin.small)) for loops in (False, True))
    apart = difference(plain, native)
    assert apart, "nothing was compared"
    for name, values in plain.items():
        assert values.size, f"{name} is empty"
        assert values.any(), f"{name} is nothing but zeros: the case shows nothing"
        assert apart[name] <= (0.0 if name in twin.exact else twin.tolerance), f"{name} differs by {apart[name]:.2e}"


@pytest.mark.parametrize(("kind", "twin", "feature", "native"), list(lacking_features()))
def test_a_twin_refuses_what_it_lacks(
    devices: dict[str, Device], kind: str, twin: Twin, feature: str, native: bool
) -> None:
    """Asked for by name it raises, with a hint; the other one does it."""
    device = _open(devices, kind)
    with pytest.raises((InputError, DeviceError)) as refused:
        twin.make(device, feature, native, twin.small)
    assert refused.value.hint
    done = run(device, twin.make(device, feature, not native, twin.small))
    assert all(values.any() for values in done.values())
