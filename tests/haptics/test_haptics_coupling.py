"""The coupling between a hand and the world's tool: true to soft contacts, bounded for hard ones, and passive."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viscera.errors import InputError
from viscera.haptics.check import poke
from viscera.haptics.coupling import (
    HOLD_TICKS,
    NEAR,
    PERIOD,
    ContactEstimator,
    Coupled,
    CouplingParams,
    EnergyTank,
    couple,
)
from viscera.haptics.devices.hand import HandParams
from viscera.haptics.link import Touch
from viscera.inputs import Vector3

ZERO: Vector3 = (0.0, 0.0, 0.0)
PARAMS = CouplingParams()


def floor(stiffness: float, tool: float, known: float | None = None) -> Touch:
    """What a tool at height `tool` meets of a springy floor at z = 0."""
    force = stiffness * max(0.0, -tool)
    return Touch(True, ZERO, (0.0, 0.0, tool), (0.0, 0.0, force), ZERO, (0.0, 0.0, 1.0), known or stiffness)


def felt(touch: Touch, z: float, speed: float = 0.0, params: CouplingParams = PARAMS) -> Coupled:
    out = Coupled()
    couple(params, touch, (0.0, 0.0, z), (0.0, 0.0, speed), out)
    return out


def test_between_ticks_the_hand_feels_its_own_depth() -> None:
    """The tick was made with the tool at 1 mm; by now the hand is at 2 mm, or out."""
    touch = floor(500.0, -0.001)
    assert felt(touch, -0.001).force[2] == pytest.approx(0.5)
    assert felt(touch, -0.002).force[2] == pytest.approx(1.0)
    assert felt(touch, 0.001).force == ZERO
    assert felt(touch, -0.002).tool == (0.0, 0.0, -0.002)
    assert felt(touch, -0.002).stored == pytest.approx(0.5 * 500.0 * 0.002**2)


@pytest.mark.parametrize("stiffness", [2000.0, 5000.0, 1e4, 1e6, 1e9])
def test_a_hard_wall_is_felt_as_the_limit_and_not_entered(stiffness: float) -> None:
    tool = -0.002 * PARAMS.stiffest / stiffness  # where the series of both springs puts it
    out = felt(floor(stiffness, tool), -0.002)
    assert out.force[2] == pytest.approx(PARAMS.stiffest * 0.002)
    assert out.tool[2] == pytest.approx(tool, rel=1e-6)


def test_the_damper_resists_and_never_pulls() -> None:
    touch = floor(1000.0, -0.001)
    still = felt(touch, -0.001).force[2]
    assert felt(touch, -0.001, speed=-0.1).force[2] == pytest.approx(still + 1000.0 * PARAMS.lead * 0.1)
    assert felt(touch, -0.001, speed=0.1).force[2] == pytest.approx(still - 1000.0 * PARAMS.lead * 0.1)
    assert felt(touch, -0.001, speed=50.0).force[2] == 0.0


def test_where_only_the_force_is_known_it_is_passed_on() -> None:
    touch = Touch(True, ZERO, ZERO, (0.1, 0.2, 0.3))
    assert felt(touch, -0.01).force == (0.1, 0.2, 0.3)
    assert felt(Touch(False, force=(1.0, 0.0, 0.0)), -0.01).force == ZERO


def test_what_is_not_a_number_reaches_the_guard() -> None:
    out = felt(Touch(True, ZERO, ZERO, (math.nan, 0.0, 1.0), ZERO, (0.0, 0.0, 1.0), 100.0), -0.01)
    assert not all(map(math.isfinite, out.force))


def test_the_limit_is_what_a_sampled_spring_can_render() -> None:
    """Colgate: b > K·T/2 + B, with B = K·t_lead."""
    assert PARAMS.damping_needed == pytest.approx(PARAMS.stiffest * (0.5 * PERIOD + PARAMS.lead))
    assert PARAMS.damping_needed <= 3.0


def test_a_contact_elsewhere_is_not_felt() -> None:
    """The plane goes on for ever, the tissue does not."""
    touch = floor(1e6, -1e-6)
    assert felt(touch, -0.9 * NEAR).force[2] > 0.0
    for z in (-1.1 * NEAR, -1.0):
        assert felt(touch, z).force == ZERO
        assert felt(touch, z).tool == (0.0, 0.0, z)


@pytest.mark.parametrize(
    "wrong",
    [
        *({name: value} for name in ("stiffest", "leaving") for value in (math.nan, math.inf, 0.0, -1.0)),
        *({name: value} for name in ("lead", "budget", "power", "most") for value in (math.nan, math.inf, -1e-3)),
        {"most": 1e-5},
    ],
    ids=str,
)
def test_a_coupling_without_limits_is_refused(wrong: dict[str, float]) -> None:
    (name,) = wrong
    with pytest.raises(InputError, match=name):
        CouplingParams(**wrong)


# --- the tank --------------------------------------------------------------------------------------------------------


def test_the_tank_gives_back_what_was_put_in() -> None:
    tank = EnergyTank(PARAMS)
    assert tank.share(PARAMS.budget, leaving=1.0) == 1.0
    assert tank.share(10 * PARAMS.budget, leaving=1.0) == pytest.approx(0.1)
    for _ in range(10):  # 1 N against 1 mm
        tank.book((0.0, 0.0, 1.0), (0.0, 0.0, -1e-4), 1e-3, stored=0.0)
    assert tank.level == pytest.approx(PARAMS.budget + 1e-3)
    assert tank.share(PARAMS.budget + 1e-3, leaving=1.0) == 1.0
    for _ in range(10):
        tank.book((0.0, 0.0, 1.0), (0.0, 0.0, 1e-4), 1e-3, stored=0.0)
    assert tank.level == pytest.approx(PARAMS.budget, abs=10 * PARAMS.power * 1e-3)


def test_a_hand_that_stays_or_goes_in_feels_everything() -> None:
    tank = EnergyTank(PARAMS)
    assert tank.share(1.0, leaving=0.0) == tank.share(1.0, leaving=-0.3) == 1.0
    shares = [tank.share(1.0, leaving=PARAMS.leaving * step / 10) for step in range(15)]
    assert shares == sorted(shares, reverse=True)
    assert max(a - b for a, b in pairwise(shares)) <= 0.1 + 1e-9


def test_rubbing_saves_up_nothing_for_a_blow() -> None:
    tank = EnergyTank(PARAMS)
    for _ in range(100_000):
        tank.book((1.0, 0.0, 0.0), (-1e-3, 0.0, 0.0), 1e-3, stored=0.0)
    assert tank.level == PARAMS.most
    tank.settle()
    assert tank.level == PARAMS.budget


def test_a_world_that_moves_by_itself_may_give_a_little() -> None:
    """A hand rests on a heart that would give more than was put in: `power` in the long run, no more."""
    tank = EnergyTank(PARAMS)
    given = 0.0
    for _ in range(10_000):
        share = tank.share(0.01, leaving=0.05)
        tank.book((0.0, 0.0, share), (0.0, 0.0, 5e-5), 1e-3, stored=0.01)
        given += share * 5e-5
    assert given <= PARAMS.budget + 10.0 * PARAMS.power + 1e-6


def test_a_sum_that_is_not_a_number_is_not_booked() -> None:
    tank = EnergyTank(PARAMS)
    tank.book((math.nan, 0.0, 0.0), (1.0, 0.0, 0.0), 1e-3, stored=0.0)
    assert tank.level == PARAMS.budget


# --- what a contact is -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stiffness", [20.0, 500.0, 2000.0, 1e6])
def test_stiffness_is_found_in_two_ticks_of_contact(stiffness: float) -> None:
    estimator, touch = ContactEstimator(), Touch()
    height, contact_ticks = 3e-4, 0
    while contact_ticks < 3:
        height -= 1e-4
        push = stiffness * max(0.0, -height)
        contact_ticks += push > 1e-4
        estimator.update((0.0, 0.0, height), (0.0, 0.0, push), touch)
    assert touch.normal == (0.0, 0.0, 1.0)
    assert touch.stiffness == pytest.approx(stiffness, rel=0.01)


def test_stiffness_holds_while_nothing_moves() -> None:
    estimator, touch = ContactEstimator(), Touch()
    for tick in range(50):
        z = -1e-4 * min(tick, 20)
        estimator.update((0.0, 0.0, z), (0.0, 0.0, -300.0 * z), touch)
    assert touch.stiffness == pytest.approx(300.0)
    for tick in range(1000):  # a hum of 1 mN, no movement
        estimator.update((0.0, 0.0, -2e-3), (0.0, 0.0, 0.6 + 1e-3 * (tick % 2)), touch)
    assert touch.stiffness == pytest.approx(300.0, rel=0.01)


def test_a_tip_that_jumps_teaches_nothing() -> None:
    estimator, touch = ContactEstimator(), Touch()
    for aside in (0.0, 1.0, 0.0):
        for tick in range(30):
            z = -1e-4 * tick
            estimator.update((aside, 0.0, aside + z), (0.0, 0.0, -300.0 * z), touch)
            assert tick < 3 or touch.stiffness == pytest.approx(300.0, rel=0.01)
    for _ in range(100):
        estimator.update((0.0, 0.0, -2.9e-3), (0.0, 0.0, 0.87), touch)
    assert touch.stiffness == pytest.approx(300.0, rel=0.01)


def test_a_contact_that_flickers_stays_where_it_was_for_a_moment() -> None:
    estimator, touch = ContactEstimator(), Touch()
    for tick in range(10):
        estimator.update((0.0, 0.0, -1e-5 * tick), (0.0, 0.0, 1e-5 * tick * 1e4), touch)
    for _ in range(HOLD_TICKS - 1):
        estimator.update((0.0, 0.0, 1e-5), ZERO, touch)
        assert touch.stiffness > 0.0
    estimator.update((0.0, 0.0, 1e-5), ZERO, touch)
    assert touch.stiffness == 0.0
    assert touch.normal == ZERO


def test_a_force_that_is_not_a_number_is_forgotten() -> None:
    estimator, touch = ContactEstimator(), Touch()
    for z in (-1e-4, -2e-4, -3e-4):
        estimator.update((0.0, 0.0, z), (0.0, 0.0, -100.0 * z), touch)
    estimator.update((0.0, 0.0, -4e-4), (math.nan, 0.0, 0.0), touch)
    assert touch.stiffness == 0.0
    assert math.isnan(touch.force[0])


# --- hand, coupling, link, guard and a wall together -----------------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    stiffness=st.floats(30.0, 1e6),
    damping=st.floats(3.0, 10.0),
    mass=st.floats(0.08, 0.4),
    grip=st.floats(150.0, 800.0),
    quick=st.booleans(),
)
def test_no_wall_gives_back_more_than_it_took(
    stiffness: float, damping: float, mass: float, grip: float, quick: bool
) -> None:
    """Any wall, any hand that damps as the limit asks: passive, but for the tank's allowances."""
    hand = HandParams(mass=mass, stiffness=grip, damping=damping)
    done = poke(stiffness, hand=hand, quick=quick)
    contact = 1e-3 * float((done.force > 0.0).sum())
    assert done.given_back <= done.put_in + PARAMS.budget + PARAMS.power * contact
    assert done.force.max() <= hand.peak_force + 1e-9


def test_a_bare_device_on_a_hard_wall_is_bounded() -> None:
    """Nobody holds it, it damps next to nothing, and the wall is 10⁶ N/m: it may not gain speed from the wall."""
    hand = HandParams(mass=0.05, stiffness=150.0, damping=0.2)
    done = poke(1e6, hand=hand)
    assert done.force.max() <= hand.peak_force
    held = done.during(2.2, 2.6)
    assert abs(done.speed[held]).max() < 0.25
