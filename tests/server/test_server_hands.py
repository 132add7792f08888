"""One hand at a time: the first viewer holds the instruments, others ask, a trainer takes them; nobody watching, the
world rests."""

from __future__ import annotations

import http.client
import json
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from server_browser import Browser, get, running_server

from viscera.scenarios import catalogue
from viscera.server import hub as hub_module
from viscera.server import messages as m
from viscera.server.app import Server
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
        _, cookie, told = post(server, "enter", trainer=TRAINER)
        assert (told["trainer"], told["cohort"], told["trainee"]) == (True, True, "")
        with Browser(server, additional_headers={"Cookie": cookie}) as trainer:
            trainer.send(m.Hand(action="take"))
            assert first.wait(m.SessionState, lambda state: state.holder == trainer.number)
        assert first.wait(m.SessionState, lambda state: state.holder == first.number), "the trainer has left"
        assert get(server, "/training/cohort")[0] == 403
        assert get(server, f"/training/cohort?trainer={quote(TRAINER)}")[0] == 403, "addresses are kept by histories"
        status, _, page = get(server, "/training/cohort", Cookie=cookie)
        assert (status, b"Cohort" in page) == (200, True)


def test_whoever_enters_with_a_name_that_is_taken_sees_nothing_of_it(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'trials.sqlite'}"
    with running_server(tmp_path, trainer_token=TRAINER, database=database) as server, Browser(server) as ada:
        status, mine, told = post(server, "enter", trainee="Ada")
        assert (status, told["trainee"], told["cohort"]) == (200, "Ada", False)
        assert told["code"]
        ada.send(m.Enter(ticket=told["ticket"]))
        ada.send(m.Enter(ticket=told["ticket"]))
        assert "ticket is not known" in ada.wait(m.Problem).message, "it works once"
        for code in ("", "a guess of mine"):
            status, cookie, refused = post(server, "enter", trainee="Ada", code=code)
            assert (status, cookie, "name is taken" in refused["error"]) == (403, "", True)
        assert get(server, "/training/report?trainee=Ada")[0] == 403
        other = post(server, "enter", trainee="Grace")[1]
        assert get(server, "/training/report?trainee=Ada", Cookie=other)[0] == 403
        assert get(server, "/training/export?trainee=Ada&as=csv", Cookie=other)[0] == 403
        assert get(server, "/training/export?as=csv", Cookie=other)[0] == 403
        assert get(server, "/training/report?trainee=Ada", Cookie=mine)[0] == 200
        assert post(server, "enter", trainee="x" * 200)[0] == 400
        again = post(server, "enter", trainee="Ada", code=told["code"])
        assert (again[0], again[2]["code"]) == (200, "")


def test_a_trainer_adds_exports_and_deletes_with_forms_alone(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'trials.sqlite'}"
    with running_server(tmp_path, trainer_token=TRAINER, database=database) as server:
        status, headers, page = get(server, "/training/")
        assert (status, b"Enter as a trainer" in page, b"Everybody" in page) == (200, True, False)
        assert "form-action 'self'" in headers["Content-Security-Policy"]
        assert headers["Referrer-Policy"] == "same-origin", "without it a browser's form comes from `null`"
        for origin, status in (
            ("null", 403),
            ("http://elsewhere.example", 403),
            (f"http://127.0.0.1:{server.port}", 303),
        ):
            assert submit(server, "enter", origin=origin, trainer=TRAINER)[0] == status
        cookie = submit(server, "enter", trainer=TRAINER)[1]
        for action in ("add", "code", "delete"):
            assert submit(server, action, trainee="Ada")[0] == 403, "nobody has entered"
        status, _, page = submit(server, "add", cookie, trainee="<Ada>")
        assert status == 200
        assert "The code of &lt;Ada&gt; is" in page
        assert submit(server, "add", cookie, trainee="<Ada>")[0] == 400
        assert "code of &lt;Ada&gt; is" in submit(server, "code", cookie, trainee="<Ada>")[2]
        status, headers, data = get(server, "/training/export?as=csv", Cookie=cookie)
        assert (status, data.startswith(b"id,trainee,scenario")) == (200, True)
        assert 'filename="viscera-cohort.csv"' in headers["Content-Disposition"]
        assert get(server, "/training/export?as=exe", Cookie=cookie)[0] == 404
        assert "&lt;Ada&gt; and 0 trials are deleted" in submit(server, "delete", cookie, trainee="<Ada>")[2]
        assert "&lt;Ada&gt;" not in get(server, "/training/", Cookie=cookie)[2].decode()
        assert submit(server, "leave", cookie)[0] == 303
        assert get(server, "/training/cohort", Cookie=cookie)[0] == 403


def request(server: Server, path: str, body: str, kind: str, cookie: str, origin: str = "") -> tuple[int, str, str]:
    """Status, the cookie that was set, and the body."""
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=20)
    try:
        headers = {"Content-Type": kind, "Cookie": cookie} | ({"Origin": origin} if origin else {})
        line.request("POST", f"/training/{path}", body, headers)
        answer = line.getresponse()
        return answer.status, (answer.headers.get("Set-Cookie") or "").split(";")[0], answer.read().decode()
    finally:
        line.close()


def post(server: Server, path: str, **given: str) -> tuple[int, str, dict[str, Any]]:
    """As the page does it."""
    status, cookie, body = request(server, path, json.dumps(given), "application/json", "")
    return status, cookie, json.loads(body)


def submit(server: Server, path: str, cookie: str = "", origin: str = "", **given: str) -> tuple[int, str, str]:
    """As a form does it."""
    return request(server, path, urlencode(given), "application/x-www-form-urlencoded", cookie, origin)


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
