"""Formulas of the scores on made-up paths and forces whose answers are known."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from viscera.scores import HandTrace, Trial, Wanted, motion, score
from viscera.scores.force import force
from viscera.scores.table import mistels
from viscera.scores.trial import FloatArray, Measured

DT = 0.016


def inside(path: FloatArray) -> np.ndarray:
    return np.ones(len(path), dtype=np.bool_)


def minimum_jerk(share: FloatArray) -> FloatArray:
    """From 0 to 1, the smoothest there is (Flash and Hogan 1985)."""
    return share**3 * (10.0 - 15.0 * share + 6.0 * share**2)


def move(begin: FloatArray, end: FloatArray, seconds: float) -> FloatArray:
    share = minimum_jerk(np.arange(0.0, seconds + 0.5 * DT, DT) / seconds)
    return begin + np.clip(share, 0.0, 1.0)[:, None] * (end - begin)


def hold(place: FloatArray, seconds: float) -> FloatArray:
    return np.repeat(place[None], round(seconds / DT), axis=0)


def test_path_of_a_circle_is_its_circumference() -> None:
    angle = np.linspace(0.0, 2.0 * np.pi, 2001)
    circle = np.stack([0.03 * np.cos(angle), 0.03 * np.sin(angle), np.zeros_like(angle)], axis=1)
    # A polygon of n corners is shorter by (π/n)²/6 of itself.
    assert motion.path_length(circle, inside(circle)) == pytest.approx(2.0 * np.pi * 0.03, rel=1e-6)
    assert motion.depth_path(circle, inside(circle), None) == 0.0


def test_a_way_back_to_where_it_began_has_no_straight_one() -> None:
    angle = np.linspace(0.0, 2.0 * np.pi, 501)
    circle = np.stack([0.03 * np.cos(angle), 0.03 * np.sin(angle), np.zeros_like(angle)], axis=1)
    assert math.isnan(motion.path_ratio(circle, inside(circle), DT))
    half = circle[:251]
    assert motion.path_ratio(half, inside(half), DT) == pytest.approx(0.5 * np.pi, rel=1e-3)


def test_what_happens_outside_the_body_does_not_count() -> None:
    path = np.array([[0.0, 0.0, 0.0], [0.1, 0.0, 0.0], [0.5, 0.0, 0.0], [0.5, 0.2, 0.0]])
    active = np.array([True, True, False, False])
    assert motion.path_length(path, active) == pytest.approx(0.1)


def test_depth_is_along_the_shaft_of_a_trocar() -> None:
    """In by 3 cm and out by 1 cm towards a trocar that lies askew, then aside on a sphere about it."""
    trocar = np.array([0.1, 0.0, 0.2])
    towards = -trocar / np.linalg.norm(trocar)
    radii = np.concatenate([np.linspace(0.10, 0.13, 50), np.linspace(0.13, 0.12, 50)])
    way = trocar + radii[:, None] * towards
    turned = trocar + 0.12 * np.stack([np.zeros(40), np.sin(np.linspace(0, 1, 40)), -np.cos(np.linspace(0, 1, 40))], 1)
    path = np.concatenate([way, turned])
    assert motion.depth_path(path, inside(path), (0.1, 0.0, 0.2)) == pytest.approx(0.04, rel=1e-6)


def test_ratio_and_rests_of_a_detour_between_two_rests() -> None:
    """Rest 1 s, go 6 cm with a corner (8 cm of path over a straight 10 cm would be wrong: 6 and 8 make 14 over 10)."""
    start, corner, end = np.zeros(3), np.array([0.06, 0.0, 0.0]), np.array([0.06, 0.08, 0.0])
    legs = [np.linspace(start, corner, 60)[1:], np.linspace(corner, end, 80)[1:]]
    path = np.concatenate([hold(start, 1.0), *legs, hold(end, 2.0)])
    assert motion.path_ratio(path, inside(path), DT) == pytest.approx(1.4, rel=1e-9)
    assert motion.idle_time(path, inside(path), DT) == pytest.approx(3.0, abs=2 * DT)
    back = np.concatenate([path, path[::-1]])
    assert motion.path_ratio(back, inside(back), DT) == pytest.approx(1.4, rel=1e-9), "there and back is as straight"


def test_nothing_moved_is_no_number() -> None:
    path = hold(np.zeros(3), 1.0)
    assert math.isnan(motion.path_ratio(path, inside(path), DT))
    assert math.isnan(motion.smoothness(path, inside(path), DT))


def test_spectral_arc_length_of_a_gaussian_is_the_integral() -> None:
    """The spectrum of a Gaussian speed is a Gaussian: from 1 to 0.05, over frequency normalised to where it gets there,
    V(x) = exp(−x² ln 20). Its length by quadrature. The grid of frequencies ends up to one step early."""
    time = np.arange(-4.0, 4.0, 0.01)
    speed = np.exp(-0.5 * (time / 0.25) ** 2)
    x = np.linspace(0.0, 1.0, 20001)
    slope = -2.0 * math.log(20.0) * x * np.exp(-(x**2) * math.log(20.0))
    exact = np.trapezoid(np.sqrt(1.0 + slope**2), x)
    assert motion.spectral_arc_length(speed, 0.01) == pytest.approx(-exact, rel=5e-3)
    assert motion.spectral_arc_length(37.0 * speed, 0.01) == pytest.approx(-exact, rel=5e-3), "how far does not matter"


def test_a_correction_makes_a_movement_less_smooth() -> None:
    one = np.diff(minimum_jerk(np.linspace(0.0, 1.0, 101)))
    two = np.concatenate([one, one, one])
    assert motion.spectral_arc_length(one, DT) == pytest.approx(-1.5, abs=0.1), "as Balasubramanian 2015 has it"
    assert motion.spectral_arc_length(two, DT) < 1.5 * motion.spectral_arc_length(one, DT)


def test_force_of_a_push_that_rises_and_falls() -> None:
    """A triangle up to 3 N in 1 s and down again: impulse 3 N·s, mean 1.5 N, above 1.2 N for 1.2 s."""
    time = np.arange(0.0, 2.0, 0.001)
    newtons = 3.0 - 3.0 * np.abs(time - 1.0)
    found = force(newtons, newtons, 0.001)
    assert found.peak == pytest.approx(3.0)
    assert found.impulse == pytest.approx(3.0, rel=1e-3)
    assert found.mean == pytest.approx(1.5, rel=1e-2)
    assert found.contact == pytest.approx(2.0, abs=0.01)
    assert found.above == pytest.approx((2.0 * 2.3 / 3.0, 1.2, 2.0 * 0.4 / 3.0), abs=0.003)


def test_the_form_of_mistels() -> None:
    assert mistels(98.0, 20.0, 300.0) == 182.0
    assert mistels(290.0, 20.0, 300.0) == 0.0


# --- the table and its sentence ---


def hand(newtons: float, path: FloatArray | None = None) -> HandTrace:
    where = move(np.zeros(3), np.array([0.1, 0.0, 0.0]), 2.0) if path is None else path
    felt = np.full(len(where), newtons)
    return HandTrace("hook", "Hook", DT, where, felt, felt, inside(where), None)


def trial(
    outcome: str = "met", value: float = 0.0, hands: tuple[HandTrace, ...] = (), off: float | None = None
) -> Trial:
    goal = Wanted("charred", "Charred", "mm²", 1, None, 0.5, value)
    return Trial("cautery", 0, "Standard", outcome, 12.0, (goal,), {"charred": value}, off, None, hands)


def test_a_score_has_time_goals_and_hands() -> None:
    values = score(trial(value=0.2, hands=(hand(0.5),))).values()
    assert values["time"] == 12.0
    assert values["charred"] == 0.2
    assert values["hook.path"] == pytest.approx(10.0)
    assert values["hook.ratio"] == pytest.approx(1.0)
    assert values["hook.peak_force"] == 0.5
    assert values["hook.above_1.2"] == 0.0


def test_instruments_that_were_not_used_are_not_scored() -> None:
    idle = hand(0.0)
    out = HandTrace("probe", "Probe", DT, idle.positions, idle.mean_force, idle.peak_force, ~idle.active)
    names = {row.name for row in score(trial(hands=(hand(0.5), out))).rows}
    assert "hook.path" in names
    assert not any(name.startswith("probe") for name in names)


def test_what_the_world_measured_is_scored_though_no_goal_asks_for_it() -> None:
    lost = Measured("blood_lost", "Blood lost", "mL", 2, 3.25, "less")
    told = score(replace(trial(value=0.2), others=(lost,)))
    (row,) = [row for row in told.rows if row.name == "blood_lost"]
    assert (row.label, row.value, row.better, row.limit) == ("Blood lost", 3.25, "less", None)
    (goal,) = [row for row in told.rows if row.name == "charred"]
    assert (goal.note, goal.limit) == ("goal: at most 0.5", 0.5)


def test_each_hand_is_scored_with_all_that_it_held() -> None:
    """The hook goes 10 cm in the first 2 s, stays out, and the forceps go 20 cm in the last 2 s: one hand, 30 cm. A
    probe that is in the body all the time, at 1 N, needs a second one."""
    rows = round(2.0 / DT)
    rest, way = np.zeros((rows, 3)), np.linspace(0.0, 1.0, rows)[:, None] * np.array([1.0, 0.0, 0.0])
    out, into = np.zeros(rows, dtype=np.bool_), np.ones(rows, dtype=np.bool_)

    def trace(name: str, positions: list[FloatArray], active: list[NDArray[np.bool_]], newtons: float) -> HandTrace:
        felt = np.full(3 * rows, newtons)
        return HandTrace(name, name, DT, np.concatenate(positions), felt, felt, np.concatenate(active))

    hook = trace("hook", [0.1 * way, rest, rest], [into, out, out], 0.5)
    forceps = trace("forceps", [rest, rest, 0.2 * way], [out, out, into], 2.0)
    probe = trace("probe", [rest, rest, rest], [into, into, into], 1.0)
    values = score(trial(hands=(hook, forceps, probe))).values()
    assert values["hand_1.path"] == pytest.approx(30.0)
    assert values["hand_1.path"] == pytest.approx(values["hook.path"] + values["forceps.path"])
    assert values["hand_1.peak_force"] == 2.0
    assert values["hand_1.impulse"] == pytest.approx(2.0 * 0.5 + 2.0 * 2.0, rel=1e-2)
    assert (values["hand_2.path"], values["hand_2.above_0.7"]) == pytest.approx((0.0, 6.0))
    assert "hand_3.path" not in values
    alone = score(trial(hands=(hook,))).values()
    assert not any(name.startswith("hand_") for name in alone), "the same numbers twice"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (trial("failed", 26.0), "Charred: 26.0 mm². Keep it at or below 0.5 mm²."),
        (trial("given_up", 1.0), "Not reached: charred. Stay with it"),
        (trial("missed", off=0.021), "The place was 21 mm off"),
        (trial(hands=(hand(3.0),)), "Press less: the strongest push was 3.0 N"),
        (trial(hands=(hand(1.5),)), "Press less: 2 s above 1.2 N"),
        (trial(hands=(hand(0.3, np.concatenate([hold(np.zeros(3), 9.0), hand(0.3).positions])),)), "Plan the next"),
        (replace(trial(hands=(hand(0.3),)), harder=True), "steady hand: go on to a harder level."),
        (trial(hands=(hand(0.3),)), "All goals were met with a light and steady hand."),
    ],
)  # fmt: skip
def test_the_sentence_says_the_gravest(given: Trial, words: str) -> None:
    assert words in score(given).advice


def test_who_holds_still_and_works_does_not_wait() -> None:
    """A suction in its pool, a needle that turns: while the pedal is pressed nothing is to be planned."""
    still = hand(0.3, np.concatenate([hold(np.zeros(3), 9.0), hand(0.3).positions]))
    at_work = replace(still, working=np.arange(len(still.active)) * DT < 9.0)
    idle = replace(still, working=np.zeros(len(still.active), dtype=np.bool_))
    assert score(trial(hands=(idle,))).advice.startswith("Plan the next")
    assert score(trial(hands=(at_work,))).advice.startswith("All goals were met")
    assert score(trial(hands=(at_work,))).values() == score(trial(hands=(idle,))).values(), "the numbers are the same"


def test_what_made_a_trial_fail_comes_before_what_is_not_done_yet() -> None:
    done = Wanted("done", "Line done", "%", 0, 90.0, None, 2.0)
    gap = Wanted("gap", "Gap", "mm", 1, None, 1.0, 2.0)
    torn = Wanted("torn", "Torn", "mm²", 0, None, 10.0, 13.0, grows=True)
    for goals, words in (((done, gap, torn), "Torn: 13 mm²"), ((done, gap), "Gap: 2.0 mm"), ((done,), "Line")):
        assert score(replace(trial("failed"), goals=goals)).advice.startswith(words)
