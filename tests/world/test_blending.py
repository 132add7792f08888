"""Water that splits and merges is drawn without a jump: the picture is the same before and after a change."""

from __future__ import annotations

import numpy as np
import pytest

from viscera.world.systems import blending
from viscera.world.systems.blending import Balls, Change

CHILDREN = 2
Particles = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Tags, places and volumes."""


def changed(rng: np.random.Generator, now: Particles, next_tag: int, share: float) -> tuple[Particles, Change, int]:
    """Some split, some neighbours in the order merge: what `adaptive.step` does, one by one."""
    tags, x, volume = now
    heirs, leader = np.ones(len(tags), dtype=np.int32), np.full(len(tags), -1, dtype=np.int32)
    kinds = rng.random(len(tags))
    new: list[tuple[int, np.ndarray, float]] = []
    ends = []
    s = 0
    while s < len(tags):
        if kinds[s] < share and volume[s] > 0.2:
            way = rng.normal(size=3) * 0.1
            heirs[s] = CHILDREN
            new += [(int(tags[s]), x[s] + way, volume[s] / 2), (next_tag, x[s] - way, volume[s] / 2)]
            next_tag += 1
        elif kinds[s] > 1.0 - share and s + 1 < len(tags) and volume[s] == volume[s + 1] < 1.0:
            leader[s] = leader[s + 1] = s
            heirs[s + 1] = 0
            new.append((int(tags[s]), 0.5 * (x[s] + x[s + 1]), 2 * volume[s]))
            ends.append(len(new))
            s += 1
        else:
            new.append((int(tags[s]), x[s], volume[s]))
        ends.append(len(new))
        s += 1
    after = (
        np.array([one[0] for one in new], dtype=np.int32),
        np.array([one[1] for one in new], dtype=np.float32),
        np.array([one[2] for one in new]),
    )
    return after, Change(heirs, np.array(ends, dtype=np.int32), leader), next_tag


def follow(balls: Balls, now: Particles, after: Particles, change: Change) -> None:
    blending.follow_change(balls, (now[0], now[1], np.zeros_like(now[1])), after[:2], change, CHILDREN)


def approach(balls: Balls, now: Particles) -> None:
    blending.approach(balls, now[0], now[1], np.zeros_like(now[1]), 0.016)


def ways(balls: Balls, now: Particles) -> np.ndarray:
    """From particles to balls."""
    tag, place, _, _ = balls.read()
    return place - now[1][blending.place_of(tag, now[0])]


def picture(balls: Balls, now: Particles) -> np.ndarray:
    """Liquid as seen from some places: what each ball holds, weighted by how near it is."""
    tags, x, volume = now
    whose, place, part = blending.drawn(balls, tags, x)
    probes = np.random.default_rng(3).uniform(0.0, 1.0, (40, 3))
    far2 = ((probes[:, None] - place[None]) ** 2).sum(axis=-1)
    return (np.exp(-20.0 * far2) * (volume[whose] * part)).sum(axis=1)


def start(count: int, rng: np.random.Generator) -> Particles:
    x = rng.uniform(0.0, 1.0, (count, 3)).astype(np.float32)
    return np.arange(count, dtype=np.int32), x, np.full(count, 0.5)


@pytest.mark.parametrize("seed", range(3))
def test_the_moment_of_a_change_leaves_the_picture_as_it_was(seed: int) -> None:
    """Over changes of particles that are still on their way too, sorted anew in between. The liquid stays all there. To
    the rounding of float32 places, and to balls that have come within a thousandth of their particle."""
    rng = np.random.default_rng(seed)
    now, tag, balls = start(60, rng), 60, Balls(4000, near=1e-3)
    for _ in range(12):
        before = picture(balls, now)
        after, change, tag = changed(rng, now, tag, 0.2)
        follow(balls, now, after, change)
        np.testing.assert_allclose(picture(balls, after), before, rtol=5e-3)
        whose, _, part = blending.drawn(balls, *after[:2])
        np.testing.assert_allclose(np.bincount(whose, part, len(after[0])), 1.0, rtol=1e-5)
        order = rng.permutation(len(after[0]))
        now = (after[0][order], after[1][order], after[2][order])
        np.testing.assert_allclose(picture(balls, now), picture(balls, after), rtol=1e-5)
        approach(balls, now)


def test_without_blending_the_picture_would_jump() -> None:
    rng = np.random.default_rng(0)
    now, balls = start(60, rng), Balls(400, near=1e-3)
    after, _, _ = changed(rng, now, 60, 0.2)
    assert np.abs(picture(balls, after) / picture(balls, now) - 1.0).max() > 0.02


def test_balls_come_to_their_particles_and_are_one_then() -> None:
    rng = np.random.default_rng(1)
    now, balls = start(50, rng), Balls(400, near=1e-3)
    after, change, _ = changed(rng, now, 50, 0.3)
    follow(balls, now, after, change)
    assert int(balls.count[0]) > 10
    found = [np.abs(ways(balls, after)).max()]
    for _ in range(80):
        approach(balls, after)
        found.append(np.abs(ways(balls, after)).max(initial=0.0))
    assert found[1] == pytest.approx((1.0 - blending.SHARE) * found[0], rel=1e-4), "a little in each frame"
    assert int(balls.count[0]) == 0
    whose, place, part = blending.drawn(balls, *after[:2])
    np.testing.assert_array_equal(place, after[1])
    assert len(whose) == len(after[0])
    assert (part == 1.0).all()


def test_there_are_never_more_balls_than_room() -> None:
    """The nearest join first, and the others stay."""
    rng = np.random.default_rng(2)
    now = start(60, rng)
    after, change, _ = changed(rng, now, 60, 0.3)
    roomy, tight = Balls(400, near=1e-3), Balls(len(after[0]) + 3, near=1e-3)
    for balls in (roomy, tight):
        follow(balls, now, after, change)
    assert len(blending.drawn(roomy, *after[:2])[0]) > tight.capacity, "or there would be nothing to test"
    assert len(blending.drawn(tight, *after[:2])[0]) <= tight.capacity
    assert 0 < int(tight.count[0]) < int(roomy.count[0])
    farthest = [np.linalg.norm(ways(balls, after), axis=1).max() for balls in (roomy, tight)]
    assert farthest[0] == farthest[1]


def test_particles_that_are_gone_take_their_balls_along() -> None:
    rng = np.random.default_rng(4)
    now, balls = start(50, rng), Balls(400, near=1e-3)
    after, change, _ = changed(rng, now, 50, 0.3)
    follow(balls, now, after, change)
    n = len(after[0]) // 2
    half = (after[0][:n], after[1][:n], after[2][:n])
    approach(balls, half)
    assert set(balls.read()[0]) <= set(half[0])


def test_balls_go_with_the_water_and_not_with_each_push() -> None:
    """Water that falls takes them along without a lag; one particle that is pushed aside, its ball does not follow at
    once."""
    rng = np.random.default_rng(5)
    begin, balls, dt = start(50, rng), Balls(400, near=1e-3), 0.016
    now, change, _ = changed(rng, begin, 50, 0.3)
    follow(balls, begin, now, change)
    first = ways(balls, now)
    x, v = now[1].astype(np.float64), np.zeros((len(now[1]), 3))
    gravity = np.array([0.0, 0.0, -9.81])
    for _ in range(5):
        x, v = x + dt * v + 0.5 * dt**2 * gravity, v + dt * gravity
        now = (now[0], x.astype(np.float32), now[2])
        flow = blending.mean_flow(now[1], v.astype(np.float32), 0.5)
        blending.approach(balls, now[0], now[1], flow, dt)
    kept = ways(balls, now)
    assert len(kept) == len(first)
    np.testing.assert_allclose(kept, (1.0 - blending.SHARE) ** 5 * first, atol=2e-5)
    # All stand still from here, and one is pushed by 1.
    place = balls.read()[1].copy()
    owner = int(blending.place_of(balls.read()[0][:1], now[0])[0])
    x[owner] += 1.0
    still = np.zeros_like(now[1])
    balls.flow[:] = 0.0
    blending.approach(balls, now[0], x.astype(np.float32), still, dt)
    moved = np.abs(balls.read()[1][0] - place[0]).max()
    assert moved < 1.1 * blending.SHARE * (1.0 + np.abs(kept[0]).max())
