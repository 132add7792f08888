"""Saving a state and bringing it back: arrays by name.

Each phenomenon lists the arrays that a continued run needs; the rest follows from how it was made. `save` copies them
to the host, `load` puts copies into a state that was made in the same way. Arrays of structs, which files do not know,
are kept as bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Port
from viscera.errors import InputError, StateError

Arrays = dict[str, NDArray[Any]]
"""What `save` gives and `load` takes: the caller owns the copies."""


def copy_out(kept: Mapping[str, Any]) -> Arrays:
    """Copies of `wp.array`s, `Port`s and NumPy arrays. Waits for the device."""
    return {name: _as_plain(_host(one)) for name, one in kept.items()}


def copy_in(what: str, kept: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Puts saved arrays back where `copy_out` took them from. Nothing is written unless all of them fit; `what` names
    the phenomenon in the refusal."""
    ready: dict[str, NDArray[Any]] = {}
    for name, one in kept.items():
        host = _host(one)
        shape = _as_plain(host).shape
        values = arrays.get(name)
        if values is None or values.shape != shape:
            found = "nothing" if values is None else f"shape {values.shape}"
            raise InputError(
                f"{what}: {name} needs shape {shape}, {found} was saved.",
                "Load it into one that was made in the same way: same parameters, same capacity.",
            )
        ready[name] = values.view(host.dtype).reshape(host.shape) if host.dtype.fields else values
    for name, one in kept.items():
        if isinstance(one, np.ndarray):
            one[...] = ready[name]
        elif isinstance(one, Port):
            one.host[...] = ready[name].reshape(one.host.shape)
            if one.staging is not one.array:
                wp.copy(one.array, one.staging)
        else:
            one.assign(ready[name])


def require_names(what: str, names: Iterable[str], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Refuses saved arrays that lack one of `names`."""
    missing = sorted(set(names) - set(arrays))
    if missing:
        raise InputError(
            f"{what}: {', '.join(missing)} was not saved.", f"Give all that `save` of {what} gave, under its names."
        )


def require_finite(what: str, arrays: Mapping[str, Any], tick: int, hint: str) -> None:
    """Raises StateError if one of the arrays has a number that is not finite. Waits for the device."""
    for name, one in arrays.items():
        values = _host(one)
        broken = int((~np.isfinite(values)).sum())
        if broken:
            raise StateError(
                f"{what}: {broken} of {values.size} numbers of {name} are not finite.", hint, stage=what, tick=tick
            )


def _host(one: Any) -> NDArray[Any]:
    if isinstance(one, Port):
        if one.staging is not one.array:
            wp.synchronize_device(one.array.device)
        return one.host
    return one if isinstance(one, np.ndarray) else one.numpy()


def _as_plain(values: NDArray[Any]) -> NDArray[Any]:
    """A copy, of bytes where the entries are structs."""
    if values.dtype.fields:
        return np.frombuffer(values.tobytes(), dtype=np.uint8).copy()
    return values.copy()
