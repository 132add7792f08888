"""The hashed grid finds every neighbour once: against brute force, with collisions, far from the origin."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from viscera.device import Device
from viscera.errors import InputError
from viscera.neighbors.hashed import (
    HashedView,
    bucket_range,
    build,
    hashed_cell,
    hashed_count,
    make_hashed,
    neighbour,
    same_cell,
)

RADIUS = 0.1


@wp.kernel
def count_neighbours(
    first: int,
    table: HashedView,
    radius: float,
    position: wp.array(dtype=wp.vec3),
    original: wp.array(dtype=wp.int32),
    found_out: wp.array(dtype=wp.int32),
):
    s = first + wp.tid()
    if s >= hashed_count(table):
        return
    here = position[s]
    cell = hashed_cell(table, here)
    total = wp.int32(0)
    for k in range(table.cells):
        wanted = cell + neighbour(table, k)
        begin, end = bucket_range(table, wanted)
        for t in range(begin, end):
            if same_cell(hashed_cell(table, position[t]), wanted) and wp.length(position[t] - here) < radius:
                total += 1
    found_out[original[s]] = total


@pytest.mark.parametrize("buckets", [None, 7, 1], ids=["many", "seven", "one"])
@pytest.mark.parametrize("dimension", [2, 3])
def test_every_neighbour_comes_once(device: Device, dimension: int, buckets: int | None) -> None:
    """On both sides of the origin, where truncation would go wrong; with few buckets, where cells share them."""
    x = np.random.default_rng(2).uniform(-0.5, 0.5, (600, 3)).astype(np.float32)
    if dimension == 2:
        x[:, 2] = 0.0
    x[17] = np.nan
    table = make_hashed(len(x), RADIUS, dimension, device, buckets=buckets)
    positions = wp.array(x, dtype=wp.vec3, device=device.warp)
    found = wp.zeros(len(x), dtype=wp.int32, device=device.warp)

    def both(stage) -> None:
        build(stage, table, positions)
        stage.launch(count_neighbours, len(x), [table.view, RADIUS, table.position, table.original, found])

    program = device.record(both, work=len(x))
    for _ in range(2):  # a recorded build replays
        program.run()
    device.synchronize()
    apart = np.linalg.norm(x[:, None].astype(np.float64) - x[None], axis=-1)
    truth = (apart < RADIUS).sum(axis=1)
    # Pairs within rounding of the radius may go either way.
    unsure = (np.abs(apart - RADIUS) < 1e-6).any(axis=1)
    assert (found.numpy() == truth)[~unsure].all()
    assert unsure.sum() < 5
    assert found.numpy()[17] == 0


def test_bad_tables_are_refused(cpu: Device) -> None:
    for arguments in ((0, RADIUS, 3), (10, 0.0, 3), (10, RADIUS, 4), (10, np.nan, 2)):
        with pytest.raises(InputError):
            make_hashed(*arguments, cpu)
