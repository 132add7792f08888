"""From a device's own axes to the theatre: x to the right, y away from the user, z up, right-handed, metres.

    x_theatre = place + s A (x_device − center)        F_device = f Aᵀ F_theatre

A is a rotation (determinant +1: a mirrored hand would feel left where the eye sees right), s the motion scale, f the
force scale. Power at the hand is F_device · v_device = (f/s) F_theatre · v_theatre, so f = s, the default, neither
makes nor takes energy; the hand feels s·f times the stiffness of the tissue. Torque goes by f/s, as angles are not
scaled.

A tool lies with its tip at the origin and its shaft along +z, a stylus lies otherwise in its own frame: `handle` says
which axes of the handle are the tool's x, y, z. Then R_tool = A R_device H.

A mapping file is TOML with a table per device; what it leaves out stays as built in:

    [touch]
    tool = 1
    scale = 0.5                  # the tool moves half as far as the hand
    axes = ["x", "-z", "y"]      # the theatre's x, y, z are these axes of the device
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping as Table
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viscera.errors import InputError
from viscera.haptics.device import NO_TURN, ZERO, Pose
from viscera.inputs import Quaternion, Vector3
from viscera.instruments.turning import product

Axes = tuple[str, str, str]
Row = tuple[float, float, float]

SAME: Axes = ("x", "y", "z")

SMALLEST_SCALE, LARGEST_SCALE = 0.01, 100.0

LARGEST_FILE = 2**20
"""[bytes]; a file of mappings has a few hundred."""

_UNIT = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


@dataclass(frozen=True)
class Mapping:
    """How one device sits in the theatre and which tool it drives."""

    tool: int = 0
    axes: Axes = SAME
    """The theatre's x, y, z are these axes of the device, such as ("x", "-z", "y")."""
    turn: float = 0.0
    """The device stands on the table turned by this angle about the vertical, counter-clockwise [degrees]."""
    scale: float = 1.0
    """Way of the tool over way of the hand."""
    force_scale: float | None = None
    """Force at the hand over force at the tool; None: as `scale`, which keeps power."""
    center: Vector3 = ZERO
    """The point of the device, in its own axes, that goes to `place` [m]."""
    place: Vector3 | None = None
    """In the theatre [m]; None: the home of the tool that it drives."""
    handle: Axes = SAME
    """The tool's x, y, z are these axes of the handle; the shaft runs along z, away from the tip."""
    rest: Quaternion = NO_TURN
    """How the tool is held by a device that cannot say how it is turned."""
    options: Table[str, Any] = field(default_factory=dict)
    """For the driver, such as the address of a service."""

    def __post_init__(self) -> None:
        if isinstance(self.tool, bool) or not isinstance(self.tool, int) or self.tool < 0:
            raise InputError(f"tool = {self.tool!r} is not allowed.", "It is a number from 0.")
        _check_scale("scale", self.scale)
        if self.force_scale is not None:
            _check_scale("force_scale", self.force_scale)
        for name, numbers in (("turn", (self.turn,)), ("center", self.center), ("place", self.place or ZERO)):
            if not all(_is_finite(number) for number in numbers):
                raise InputError(f"{name} = {getattr(self, name)!r} is not allowed.", "Give finite numbers.")
        if not (all(map(_is_finite, self.rest)) and abs(math.hypot(*self.rest) - 1.0) < 1e-3):
            raise InputError(f"rest = {self.rest!r} is not allowed.", "Give a unit quaternion x, y, z, w.")
        _rotation_of("axes", self.axes)
        _rotation_of("handle", self.handle)

    @cached_property
    def rotation(self) -> NDArray[np.float64]:
        """A."""
        angle = math.radians(self.turn)
        c, s = math.cos(angle), math.sin(angle)
        return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]) @ _rotation_of("axes", self.axes)

    @property
    def force_gain(self) -> float:
        """f."""
        return self.scale if self.force_scale is None else self.force_scale

    @property
    def stiffness_gain(self) -> float:
        """Stiffness that the hand feels over stiffness in the theatre."""
        return self.scale * self.force_gain

    @cached_property
    def _motion(self) -> tuple[Row, Row, Row, Vector3]:
        """Rows of s A, and where the device's origin is in the theatre: plain floats, for a thousand calls a second."""
        matrix = self.scale * self.rotation
        origin = np.array(self.place or ZERO) - matrix @ np.array(self.center)
        first, second, third = (_triple(row) for row in matrix)
        return first, second, third, _triple(origin)

    @cached_property
    def _turning(self) -> tuple[Quaternion, Quaternion]:
        return quaternion_of(self.rotation), quaternion_of(_rotation_of("handle", self.handle).T)

    def point_to_theatre(self, point: Vector3) -> Vector3:
        """[m]"""
        a, b, c, o = self._motion
        x, y, z = point
        return (
            a[0] * x + a[1] * y + a[2] * z + o[0],
            b[0] * x + b[1] * y + b[2] * z + o[1],
            c[0] * x + c[1] * y + c[2] * z + o[2],
        )

    def point_to_device(self, point: Vector3) -> Vector3:
        """[m]"""
        o = self._motion[3]
        x, y, z = self._against((point[0] - o[0], point[1] - o[1], point[2] - o[2]))
        inverse = 1.0 / (self.scale * self.scale)
        return (x * inverse, y * inverse, z * inverse)

    def turn_to_theatre(self, orientation: Quaternion) -> Quaternion:
        rotation, handle = self._turning
        return product(product(rotation, orientation), handle)

    def pose_to_theatre(self, pose: Pose) -> Pose:
        turned = self.turn_to_theatre(pose.orientation) if pose.oriented else self.rest
        place = self.point_to_theatre(pose.position)
        return Pose(place, turned, pose.oriented, pose.grip, pose.buttons, pose.time, pose.present)

    def force_to_device(self, force: Vector3) -> Vector3:
        """[N]"""
        x, y, z = self._against(force)
        gain = self.force_gain / self.scale
        return (gain * x, gain * y, gain * z)

    def torque_to_device(self, torque: Vector3) -> Vector3:
        """[N·m]"""
        x, y, z = self._against(torque)
        gain = self.force_gain / (self.scale * self.scale)
        return (gain * x, gain * y, gain * z)

    def _against(self, vector: Vector3) -> Vector3:
        """s Aᵀ v."""
        a, b, c, _ = self._motion
        x, y, z = vector
        return (
            a[0] * x + b[0] * y + c[0] * z,
            a[1] * x + b[1] * y + c[1] * z,
            a[2] * x + b[2] * y + c[2] * z,
        )


# --- files ---------------------------------------------------------------------------------------------------------


def mapping_file() -> Path:
    """Where a user's own mappings are looked for."""
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "viscera" / "haptics.toml"


def load_mappings(path: Path | None = None) -> dict[str, dict[str, Any]]:
    """The tables of a mapping file, by device name. Without a path: the user's file, or nothing if there is none."""
    chosen = mapping_file() if path is None else path
    if path is None and not chosen.exists():
        return {}
    # A pipe or a device may have no end.
    if chosen.exists() and not (chosen.is_file() or chosen.is_dir()):
        raise InputError(f"the mapping file {chosen} is no file.", "Give the path of a TOML file.")
    try:
        if chosen.exists() and chosen.stat().st_size > LARGEST_FILE:
            raise InputError(f"the mapping file {chosen} is larger than 1 MiB.", "Check its path.")
        tables = tomllib.loads(chosen.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"the mapping file {chosen} cannot be read: {error.strerror}.", "Check its path.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"the mapping file {chosen} is not TOML: {error}.", "Mend the line it names.") from error
    for name, table in tables.items():
        if not isinstance(table, dict):
            raise InputError(
                f"{chosen}: {name} = {table!r} stands outside a table.", "Put it below the name of a device: [haply]."
            )
    return tables


def with_table(mapping: Mapping, table: Table[str, Any], device: str) -> Mapping:
    """A mapping with what a table of the file says otherwise."""
    known = {one.name for one in fields(Mapping)}
    changes: dict[str, Any] = {}
    for name, value in table.items():
        if name not in known:
            raise InputError(f"[{device}] {name} is not known.", f"Known are {', '.join(sorted(known))}.")
        changes[name] = tuple(value) if isinstance(value, list) else value
    for name, length in (("axes", 3), ("handle", 3), ("center", 3), ("place", 3), ("rest", 4)):
        if name in changes and not (isinstance(changes[name], tuple) and len(changes[name]) == length):
            raise InputError(f"[{device}] {name} = {table[name]!r} is not allowed.", f"It is a list of {length}.")
    if "options" in changes:
        if not isinstance(changes["options"], dict):
            raise InputError(f"[{device}] options = {table['options']!r} is not allowed.", "It is a table.")
        changes["options"] = {**mapping.options, **changes["options"]}
    try:
        return replace(mapping, **changes)
    except InputError as error:
        raise InputError(f"[{device}] {error.message}", error.hint) from None


# --- rotations -----------------------------------------------------------------------------------------------------


def _rotation_of(name: str, axes: Axes) -> NDArray[np.float64]:
    """The matrix whose rows are these signed axes."""
    rows = []
    for axis in axes:
        letter = axis.removeprefix("-").removeprefix("+") if isinstance(axis, str) else ""
        if letter not in _UNIT:
            raise InputError(f"{name} = {list(axes)!r} is not allowed.", 'Name three axes, such as ["x", "-z", "y"].')
        rows.append(np.array(_UNIT[letter]) * (-1.0 if axis.startswith("-") else 1.0))
    matrix = np.array(rows)
    handedness = round(float(np.linalg.det(matrix)))
    if handedness == 0:
        raise InputError(f"{name} = {list(axes)!r} is not allowed.", "Name each of x, y and z once.")
    if handedness < 0:
        raise InputError(
            f"{name} = {list(axes)!r} mirrors: left would become right.", "Turn the sign of one axis, or swap two."
        )
    return matrix


def quaternion_of(matrix: Any) -> Quaternion:
    """Of a rotation matrix, rows first; of the two that there are, the one with w ≥ 0."""
    (a, b, c), (d, e, f), (g, h, i) = matrix
    # The largest of the four is found first, so that nothing small is divided by.
    squares = (1.0 + a - e - i, 1.0 - a + e - i, 1.0 - a - e + i, 1.0 + a + e + i)
    largest = squares.index(max(squares))
    x, y, z, w = (
        (squares[0], b + d, c + g, h - f),
        (b + d, squares[1], f + h, c - g),
        (c + g, f + h, squares[2], d - b),
        (h - f, c - g, d - b, squares[3]),
    )[largest]
    length = math.sqrt(x * x + y * y + z * z + w * w) * (1.0 if w >= 0.0 else -1.0)
    return (float(x / length), float(y / length), float(z / length), float(w / length))


def _triple(row: Any) -> Row:
    return (float(row[0]), float(row[1]), float(row[2]))


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _check_scale(name: str, value: Any) -> None:
    if not (_is_finite(value) and SMALLEST_SCALE <= value <= LARGEST_SCALE):
        raise InputError(f"{name} = {value!r} is not allowed.", f"Allowed are {SMALLEST_SCALE} to {LARGEST_SCALE:g}.")
