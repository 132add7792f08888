"""Loops over the links of a lattice, on one core: what hangs together, and which masses a point hangs on."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

# Loops stay loops: unrolled they take long to compile.
wp.set_module_options({"enable_backward": False, "max_unroll": 0})

HANGS_ON = 8
"""Masses of a point, at most."""
BEHIND = 100.0
"""Added to the squared distance of nodes that come after all others; more than any [cells²]."""

_HANGS_ON, _BEHIND = wp.constant(HANGS_ON), wp.constant(wp.float64(BEHIND))


@wp.kernel
def hang_roots(
    # params
    rows: int,
    count: int,
    # in
    links: wp.array(dtype=wp.uint8),
    other: wp.array(dtype=wp.int32),
    # out
    root_out: wp.array(dtype=wp.int32),
):
    """A disjoint-set forest: a root is hung under a lower one that it is linked to, and ways to a root are halved as
    they are walked (Tarjan and van Leeuwen 1984)."""
    for node in range(count):
        root_out[node] = node
    for row in range(rows):
        for node in range(count):
            at = row * count + node
            if links[at] != wp.uint8(0):
                a = wp.int32(node)
                b = other[at]
                while root_out[a] != a:
                    root_out[a] = root_out[root_out[a]]
                    a = root_out[a]
                while root_out[b] != b:
                    root_out[b] = root_out[root_out[b]]
                    b = root_out[b]
                if a < b:
                    root_out[b] = a
                elif b < a:
                    root_out[a] = b
    # A root is lower than what hangs on it, so its own is known already.
    for node in range(count):
        root_out[node] = root_out[root_out[node]]


def roots_of(links: NDArray[np.bool_], other: NDArray[np.integer]) -> NDArray[np.int64]:
    """For each node the lowest one that it hangs together with, as `topology.components` says it. `links`, shape
    (directions, nodes): whether a node is linked to the one that `other` names there."""
    rows, count = links.shape
    found = np.empty(count, dtype=np.int32)
    inputs = [rows, count, _flat(links, np.uint8), _flat(other, np.int32), found]
    wp.launch(hang_roots, dim=1, inputs=inputs, device="cpu")
    return found.astype(np.int64)


@wp.kernel
def choose_nearest(
    # params
    columns: int,
    first: int,
    # in
    every: wp.array(dtype=wp.int32),
    position: wp.array(dtype=wp.int64),
    point: wp.array(dtype=wp.float64),
    # out
    distance_out: wp.array(dtype=wp.float64),
    found_out: wp.array(dtype=wp.int32),
):
    """Each thread a row. Its list is in order all the time; a node that comes again counts where it is nearer."""
    row = wp.tid()
    begin = _HANGS_ON * row
    count = wp.int32(0)
    for column in range(columns):
        node = every[columns * row + column]
        takes = node >= 0
        squared = wp.float64(0.0)
        if takes:
            dx = wp.float64(position[3 * node]) - point[3 * row]
            dy = wp.float64(position[3 * node + 1]) - point[3 * row + 1]
            dz = wp.float64(position[3 * node + 2]) - point[3 * row + 2]
            squared = dx * dx + dy * dy + dz * dz
            if column >= first:
                squared = squared + _BEHIND
            known = wp.int32(-1)
            for k in range(count):
                if found_out[begin + k] == node:
                    known = k
            if known >= 0:
                takes = squared < distance_out[begin + known]
                if takes:
                    for k in range(known + 1, count):
                        found_out[begin + k - 1] = found_out[begin + k]
                        distance_out[begin + k - 1] = distance_out[begin + k]
                    count = count - 1
        at = begin + count
        if takes and count == _HANGS_ON:
            at = at - 1
            last = distance_out[at]
            takes = squared < last or (squared == last and node < found_out[at])
        elif takes:
            count = count + 1
        if takes:
            while at > begin and (
                distance_out[wp.max(at - 1, 0)] > squared
                or (distance_out[wp.max(at - 1, 0)] == squared and found_out[wp.max(at - 1, 0)] > node)
            ):
                distance_out[at] = distance_out[at - 1]
                found_out[at] = found_out[at - 1]
                at = at - 1
            distance_out[at] = squared
            found_out[at] = node
    for k in range(count, _HANGS_ON):
        found_out[begin + k] = -1


def nearest_eight(
    every: NDArray[np.int32], positions: NDArray[np.int64], point: NDArray[np.float64], first: int
) -> NDArray[np.int32]:
    """Of each row's nodes (-1 for none, several times the same) eight: the `first` columns before all others, then the
    nearest to the point, of those as near the one with the lower number; -1 where there are fewer."""
    found = np.empty((len(every), HANGS_ON), dtype=np.int32)
    if len(every):
        distance = np.empty(found.size)
        inputs = [
            every.shape[1], first, _flat(every, np.int32), _flat(positions, np.int64), _flat(point, np.float64),
            distance, found.reshape(-1),
        ]  # fmt: skip
        wp.launch(choose_nearest, dim=len(every), inputs=inputs, device="cpu")
    return found


def _flat(values: NDArray[Any], kind: type[np.generic]) -> NDArray[Any]:
    """The same memory, where it is contiguous and of this kind already: kernels on cpu read it as it is."""
    own = values.view(np.uint8) if values.dtype == np.bool_ else values
    return np.ascontiguousarray(own, dtype=kind).reshape(-1)
