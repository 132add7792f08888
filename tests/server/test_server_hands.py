"""One hand at a time: the first viewer holds the instruments, others ask, a trainer takes them; nobody watching, the
world rests."""

from __future__ import annotations

import time
from pathlib import Path
from urllib.parse import urlencode

import pytest
from server_browser import Browser, get, running_server

from viscera.scenarios import catalogue
from viscera.server import hub as hub_module
from viscera.server import messages as m
from viscera.server.hands import Hands, is_trainer
from viscera.server.wishes import Refusal

TRAINER = "the trainer's own token"


def test_the_first_holds_them_and_who_asks_gets_them_when_the_holder_leaves() -> None:
    hands = Hands()
    for number in (1, 2, 3):
        hands.join(number)
    assert hands.holder == 1
    hands.act(3, "ask", 0, trainer=False)
    hands.leave(1)
    assert (hands.holder, hands.asking) == (3, [])
    hands.leave(3)
    assert hands.holder == 2, "else who has watched longest"
    hands.leave(2)
    assert hands.holder == 0
    hands.join(4)
    assert hands.holder == 4


def test_they_are_given_kept_and_taken() -> None:
    hands = Hands()
    for number in (1, 2):
        hands.join(number)
    hands.act(2, "ask", 0, trainer=False)
    hands.act(2, "ask", 0, trainer=False)
    assert hands.asking == [2]
    hands.act(1, "keep", 0, trainer=False)
    assert hands.asking == []
    with pytest.raises(Refusal, match="another viewer holds"):
        hands.act(2, "give", 2, trainer=False)
    with pytest.raises(Refusal, match="viewer 7 is not here"):
        hands.act(1, "give", 7, trainer=False)
    with pytest.raises(Refusal, match="only a trainer"):
        hands.act(2, "take", 0, trainer=False)
    hands.act(2, "take", 0, trainer=True)
    assert hands.holder == 2
    assert hands.act(2, "give", 1, trainer=False) == 2
    assert hands.holder == 1


def test_without_a_token_nobody_is_trainer() -> None:
    assert not is_trainer("", "")
    assert not is_trainer(TRAINER, "")
    assert is_trainer(TRAINER, TRAINER)


def test_a_watcher_s_hover_moves_nothing_until_the_instruments_are_handed_over(tmp_path: Path) -> None:
    with running_server(tmp_path) as server, Browser(server) as first, Browser(server) as second:
        first.wait_state("running")
        first.move(1, position=(0.0, 0.0, 0.01))
        first.wait(m.FrameMessage, lambda frame: [first.number, 1] in [list(one) for one in frame.state.applied])
        second.move(1, position=(0.05, 0.0, 0.02))
        second.send(m.SetParameter(name="pull", value=2.0))
        assert "another viewer holds" in second.wait(m.Problem).message
        second.send(m.Hand(action="ask"))
        asked = first.wait(m.SessionState, lambda state: bool(state.asking))
        assert (asked.holder, asked.asking) == (first.number, [second.number])
        first.send(m.Hand(action="give", client=second.number))
        second.wait(m.SessionState, lambda state: state.holder == second.number)
        second.wait(m.FrameMessage, lambda frame: not frame.state.tools[0].active)
        second.move(2, position=(0.05, 0.0, 0.02))
        moved = second.wait(m.FrameMessage, lambda frame: frame.state.tools[0].position == (0.05, 0.0, 0.02))
        assert [first.number, 1] not in [list(one) for one in moved.state.applied]


def test_a_trainer_takes_over_and_sees_the_cohort(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'trials.sqlite'}"
    with running_server(tmp_path, trainer_token=TRAINER, database=database) as server, Browser(server) as first:
        first.wait_state("running")
        with Browser(server, query={"trainer": TRAINER}) as trainer:
            trainer.send(m.Hand(action="take"))
            assert first.wait(m.SessionState, lambda state: state.holder == trainer.number)
        assert first.wait(m.SessionState, lambda state: state.holder == first.number), "the trainer has left"
        first.send(m.Trainee(name="Ada"))
        first.send(m.Trainee(name="x" * 200))
        assert "no name" in first.wait(m.Problem).message
        assert get(server, "/training/cohort")[0] == 403
        assert get(server, "/training/report?trainee=Ada&code=guess")[0] == 403
        status, _, page = get(server, f"/training/cohort?{urlencode({'trainer': TRAINER})}")
        assert (status, b"Cohort" in page) == (200, True)


def test_a_world_that_nobody_watches_rests_and_wakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "UNWATCHED_S", 0.2)
    with running_server(tmp_path) as server:
        hub = server.hub
        end = time.monotonic() + 20.0
        while hub.status.state != "paused" and time.monotonic() < end:
            time.sleep(0.05)
        assert hub.status.state == "paused"
        tick = hub.frames.newest_tick()
        time.sleep(0.3)
        assert hub.frames.newest_tick() == tick
        with Browser(server) as browser:
            browser.wait_state("running")
            browser.wait(m.FrameMessage, lambda frame: frame.state.tick > tick)


def test_the_gaze_of_who_holds_the_instruments_counts(tmp_path: Path) -> None:
    """A gaze is a table: another viewer's is refused, whatever the world. Each scenario that asks for gaze says so."""
    with running_server(tmp_path) as server, Browser(server) as first, Browser(server) as second:
        first.wait_state("running")
        for viewer, answer in ((second, "another viewer holds"), (first, "gaze")):
            viewer.send(m.SetTable(name="gaze", rows=[[0.3, 0.5]]))
            assert answer in viewer.wait(m.Problem).message, "this world has no such table, which only the holder hears"
    asking = [one for one in catalogue().values() if "gaze" in one.instructions]
    assert {one.name for one in asking} >= {"dambreak", "waves", "perception"}
    for one in asking:
        assert "gaze of the one who holds the instruments counts" in one.instructions, one.name
