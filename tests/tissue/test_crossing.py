"""Whatever way a blade takes through soft tissue, the two sides of its cut do not cross by more than half a cell."""

from __future__ import annotations

import itertools
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from cutting_reference import pieces
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from test_cutting import whole_pairs
from test_meeting import whole_springs

from verify.passing import Passing
from viscera.anatomy import gallbladder
from viscera.device import Device, open_device
from viscera.tissue import LatticeParams
from viscera.tissue.cutting import AXES, cut_springs, let_cut, remove_edge, set_edge
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import Material
from viscera.tissue.meeting import make_meeting
from viscera.tissue.springs import NodeIndex
from viscera.world.organ import Body, block, fill

Floats = NDArray[np.float64]
FRAME, LOOK = 16, 4
"""Ticks of a frame, after which what was cut in the one before meets, as in a world; and between two looks."""
SOFT = Material("soft", 4_000.0, 1_000.0, poisson=0.25, viscous_time=2e-4, toughness=4.0)


@cache
def body_of(name: str) -> Body:
    return block((8, 6, 5), 0.002) if name == "block" else fill(gallbladder(), 500)


class Cut:
    """A body that lies on its underside, pulled down by its weight and cut by a blade."""

    def __init__(
        self, body: Body, *, meets: bool = True, device: Device | None = None, viscous_time: float = 2e-4
    ) -> None:
        low = body.nodes[:, 2].min()
        params = LatticeParams(
            nodes=body.nodes, spacing=body.spacing, origin=body.origin, stiffest=SOFT.young,
            material=replace(SOFT, viscous_time=viscous_time),
            anchored=body.nodes[:, 2] == low, drag=10.0,
        )  # fmt: skip
        self.body, self.meets = body, meets
        self.tissue = make_lattice(device or open_device("cpu", cores=1), params)
        self.tissue.set_gravity((0.0, 0.0, -9.81))
        let_cut(self.tissue)
        self.meeting = make_meeting([self.tissue])
        self.looking, self.deepest, self._ticks = Passing(self.tissue), 0.0, 0

    def stroke(self, path: list[Floats]) -> None:
        """An edge goes through these poses, in cells from the lowest node, a tick each."""
        origin = np.array(self.body.origin) + self.body.spacing * self.body.nodes.min(axis=0)
        for old, new in itertools.pairwise(path):
            set_edge(self.tissue, 0, 0, origin + self.body.spacing * old, origin + self.body.spacing * new, need=0.2)
            self.tick()
        remove_edge(self.tissue, 0)

    def tick(self) -> None:
        if self.meets:
            self.meeting.step()
        else:
            self.tissue.step()
        self._ticks += 1
        if self._ticks % FRAME == 0:
            self.meeting.land()
            self.meeting.pieces[0].hang(whole_springs(self.tissue))
        if self._ticks % LOOK == 0:
            self.deepest = max(self.deepest, float(self.looking.look(cut_springs(self.tissue)).max(initial=0.0)))


def stroke_through(
    body: Body, axis: int, at: float, reach: float, depth: float, tilt: float, back: bool
) -> list[Floats]:
    """A straight edge across the whole body goes in along the next axis; `at`, `reach` and `depth` as shares of it."""
    size = np.ptp(body.nodes, axis=0).astype(np.float64)
    a, b = (axis + 1) % 3, (axis + 2) % 3
    first, last = np.zeros((2, 3)), np.zeros((2, 3))
    first[:, axis], last[:, axis] = at * size[axis], at * size[axis] + tilt
    first[:, a], last[:, a] = -1.5, reach * (size[a] + 2.0)
    first[:, b] = last[:, b] = depth * size[b], size[b] + 2.0
    path = [(1.0 - s) * first + s * last for s in np.linspace(0.0, 1.0, 25)]
    return path + path[::-1][1:] if back else path


share = st.sampled_from([0.0, 0.25, 0.4, 0.5, 0.5 + 1e-6, 0.73, 1.0])
strokes = st.tuples(st.integers(0, 2), share, share, share, st.floats(-1.5, 1.5), st.booleans())


# Without shrinking: each example is a world.
@settings(max_examples=8, deadline=None, derandomize=True, phases=(Phase.explicit, Phase.generate))
@given(name=st.sampled_from(["block", "gall bladder"]), some=st.lists(strokes, min_size=1, max_size=3))
def test_two_sides_never_cross_by_more_than_half_a_cell(
    name: str, some: list[tuple[int, float, float, float, float, bool]]
) -> None:
    """At 0.5 to 1 m/s along planes of the lattice, through masses, tilted, half way, back again, across older cuts;
    then what is loose falls onto what is below."""
    cut = Cut(body_of(name))
    for one in some:
        cut.stroke(stroke_through(cut.body, *one))
    for _ in range(64):
        cut.tick()
    assert cut.deepest <= 0.5
    edge = cut.meeting.pieces[0].edge
    label = pieces(len(cut.body.nodes), *whole_pairs(cut.tissue))[edge.mass]
    # Both number the same pieces.
    assert len({*zip(label.tolist(), edge.piece.tolist(), strict=True)}) == len(set(label.tolist()))


def test_what_was_cut_a_moment_ago_is_held_apart_as_the_reference_says(device: Device) -> None:
    """Against float64, link by link: a block cut level and never landed, its masses and their speeds shaken."""
    cut = Cut(body_of("block"), device=device, viscous_time=0.0)
    cut.stroke(stroke_through(cut.body, 2, 0.5, 1.0, -0.2, 0.0, False)[:20])
    tissue, h, nodes = cut.tissue, cut.body.spacing, cut.body.nodes
    fresh, rng = cut.meeting.fresh[0], np.random.default_rng(3)
    assert fresh is not None
    u, v = rng.normal(size=(len(nodes), 3)) * 0.1 * h, rng.normal(size=(len(nodes), 3)) * 0.1
    tissue.set_motion(u, v)
    fresh.hold_apart(tissue.state.position[tissue.current])
    gone, index = cut_springs(tissue)[list(AXES)], NodeIndex(nodes)
    up = np.stack([index.find(nodes + step) for step in np.eye(3, dtype=np.int32)])
    x = tissue.rest_positions() + u
    # The axes as each mass' own tissue has turned them: the mean of the links that are left, or as they were.
    ways = np.zeros((3, len(nodes), 3))
    for axis in range(3):
        low = np.flatnonzero((up[axis] >= 0) & ~gone[axis])
        for ends in (low, up[axis][low]):
            ways[axis, ends] += x[up[axis][low]] - x[low]
        ways[axis, ~ways[axis].any(axis=1)] = np.eye(3)[axis]
        ways[axis] /= np.linalg.norm(ways[axis], axis=1, keepdims=True)
    axes, lows = np.nonzero(gone)
    highs = up[axes, lows]
    links = np.bincount(np.concatenate([lows, highs]), minlength=len(nodes))
    yields = np.where(tissue.params.anchored, 0.0, 1.0 / tissue.mass)
    dv, dx = np.zeros_like(v), np.zeros_like(u)
    for axis, i, j in zip(axes, lows, highs, strict=True):
        n = ways[axis, i] + ways[axis, j]
        n /= np.linalg.norm(n)
        missing = h - n @ (x[j] - x[i])
        if missing > 0.0:
            share = n / (links[i] * yields[i] + links[j] * yields[j])
            closing, apart = max(0.0, float(n @ (v[i] - v[j]))), min(0.8 * missing, 0.1 * h)
            for one, side in ((i, -1.0), (j, 1.0)):
                dv[one] += side * yields[one] * closing * share
                dx[one] += side * yields[one] * apart * share
    assert len(lows) > 30
    assert np.abs(dv).max() > 0.05
    assert np.allclose(tissue.velocities(), v + dv, atol=1e-5)
    assert np.allclose(tissue.displacement(), u + dx, atol=1e-8)
    # What one gets the other loses.
    assert np.allclose(tissue.mass @ dv, 0.0, atol=1e-12)


@pytest.mark.parametrize("meets", [True, False])
def test_without_contact_the_upper_half_falls_through_the_lower(meets: bool) -> None:
    cut = Cut(body_of("block"), meets=meets)
    cut.stroke(stroke_through(cut.body, 2, 0.5, 1.0, -0.2, 0.0, False))
    for _ in range(64):
        cut.tick()
    assert (cut.deepest <= 0.5) == meets
