"""An instrument through a trocar: it turns about the hole in the body wall, spins about its shaft, and slides in it.

With the tip at x, the trocar at p and the handle at a length L from the tip, the shaft lies along s = (p − x)/a, with
a = |p − x| inside the body and b = L − a outside. A hand chooses x and the spin about s; how the shaft lies follows.

The wall holds the trocar in its place and nothing else: the shaft slides and spins in it without friction. Then the
moments about p of the tissue's force F and torque T at the tip, and of the force that the hand feels at the handle, are
in balance:

    F_handle = F∥ − (a F⊥ + s × T⊥)/b,   T_handle = T∥

where ∥ is along the shaft and ⊥ across it. A push to the left at the tip is felt as one to the right at the handle, a/b
times as strong; the wall takes the rest. The handle moves by v_handle = v∥ − (b/a) v⊥ when the tip moves by v, so the
power at both ends is the same.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from viscera.inputs import Quaternion, Vector3
from viscera.instruments.instrument import Instrument

SHALLOWEST = 0.03
"""The tip stays at least so far inside the trocar [m]: its working end has left the tube."""
SHORTEST_HANDLE = 0.05
"""Of the shaft, at least so much stays outside [m]."""


def deepest(length: float) -> float:
    """How far a tip may go below its trocar when the handle is `length` from it [m]."""
    return length - SHORTEST_HANDLE


def keep_depth(tip: NDArray[np.float64], trocar: Vector3, length: float) -> None:
    """Brings a tip that is too near to its trocar, or too deep, back along the shaft [m]."""
    x, y, z = float(tip[0]) - trocar[0], float(tip[1]) - trocar[1], float(tip[2]) - trocar[2]
    depth = math.sqrt(x * x + y * y + z * z)
    if SHALLOWEST <= depth <= deepest(length):
        return
    if depth < 1e-9:
        x, y, z, depth = 0.0, 0.0, -1e-9, 1e-9  # in the hole itself: straight down
    goal = min(max(depth, SHALLOWEST), deepest(length)) / depth
    tip[:] = (trocar[0] + x * goal, trocar[1] + y * goal, trocar[2] + z * goal)


def through_trocar(orientation: NDArray[np.float64], tip: NDArray[np.float64], trocar: Vector3) -> None:
    """Turns an instrument so that its shaft, +z, runs from its tip to the trocar; of how the hand held it only the spin
    about the shaft is kept. The orientation is split into q = swing · spin, the spin about +z, the swing the shortest
    turn of +z to the shaft; another swing takes the place of that one."""
    z, w = float(orientation[2]), float(orientation[3])
    spin = math.sqrt(z * z + w * w)
    z, w = (0.0, 1.0) if spin < 1e-9 else (z / spin, w / spin)
    sx, sy, sz = shaft_of(tip, trocar)
    # The shortest turn of +z to s is (−s_y, s_x, 0, 1 + s_z), not yet of unit length.
    if 1.0 + sz < 1e-9:
        a, b, c = 1.0, 0.0, 0.0  # straight up from a trocar below: half a turn about x
    else:
        length = math.sqrt(2.0 * (1.0 + sz))
        a, b, c = -sy / length, sx / length, (1.0 + sz) / length
    orientation[:] = (a * w + b * z, b * w - a * z, c * z, c * w)


def shaft_of(tip: NDArray[np.float64], trocar: Vector3) -> Vector3:
    """Unit vector from the tip to the trocar."""
    x, y, z = trocar[0] - float(tip[0]), trocar[1] - float(tip[1]), trocar[2] - float(tip[2])
    length = math.sqrt(x * x + y * y + z * z)
    return (0.0, 0.0, 1.0) if length < 1e-9 else (x / length, y / length, z / length)


ROUNDS = 5
"""Each leaves some 3 % of the error of the one before: how far what acts is aside, over how far the trocar is."""


def tip_for(place: Vector3, instrument: Instrument, orientation: Quaternion = (0.0, 0.0, 0.0, 1.0)) -> Vector3:
    """Where a hand must bring the tip so that what acts of the instrument is at `place` [m], held like this."""
    tip, turn = np.array(place), np.array(orientation)
    for _ in range(ROUNDS):
        if instrument.trocar is not None:
            through_trocar(turn, tip, instrument.trocar)
        tip = np.array(place) - turned(turn, instrument.acts_at)
    x, y, z = tip.tolist()
    return (x, y, z)


def turned(orientation: NDArray[np.float64], vector: Vector3) -> NDArray[np.float64]:
    """A vector of the instrument's own frame, in the theatre's."""
    axis, w = orientation[:3], float(orientation[3])
    across = 2.0 * np.cross(axis, vector)
    return np.asarray(vector) + w * across + np.cross(axis, across)


def felt_at_handle(
    force: Vector3, torque: Vector3, tip: NDArray[np.float64], trocar: Vector3, length: float
) -> tuple[Vector3, Vector3]:
    """Force [N] and torque [N·m] that a hand feels at the handle, `length` from the tip [m], when the tip feels `force`
    and, about itself, `torque`."""
    s = shaft_of(tip, trocar)
    inside = math.dist(tip.tolist(), trocar)
    outside = max(length - inside, SHORTEST_HANDLE)
    along = s[0] * force[0] + s[1] * force[1] + s[2] * force[2]
    spin = s[0] * torque[0] + s[1] * torque[1] + s[2] * torque[2]
    # s × T = s × T⊥
    turn = (
        s[1] * torque[2] - s[2] * torque[1],
        s[2] * torque[0] - s[0] * torque[2],
        s[0] * torque[1] - s[1] * torque[0],
    )
    x, y, z = (along * s[i] - (inside * (force[i] - along * s[i]) + turn[i]) / outside for i in range(3))
    return (x, y, z), (spin * s[0], spin * s[1], spin * s[2])
