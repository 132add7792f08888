"""Trainees and trials: learning curves with known answers, a database that is never half written, ways out of it."""

from __future__ import annotations

import asyncio
import csv
import hashlib
import json
import math
import multiprocessing
import os
import signal
import sqlite3
import time
import traceback
from pathlib import Path
from urllib.parse import quote, quote_plus

import numpy as np
import pytest

from viscera.errors import InputError
from viscera.scores import Row, Score, learning
from viscera.server import entrance
from viscera.server.classroom import Classroom, Wrong
from viscera.server.entrance import NOBODY, Entrance, Visitor
from viscera.server.messages import Standing
from viscera.session.logfile import trial_record
from viscera.session.recorder import Recorder, make_header
from viscera.training import codes, plots
from viscera.training.database import open_database
from viscera.training.export import statement, write
from viscera.training.places import places
from viscera.training.report import curves, facts, html, weakest
from viscera.training.report import write as write_report
from viscera.training.store import Counted, Store, Words

# --- formulas ---


def test_cusum_as_bolsin_and_colson_have_it() -> None:
    """p0 = 0.1, p1 = 0.2, α = β = 0.1: P = ln 2, Q = ln(9/8), s = 0.1452, limits ±ln 9/(P + Q) = ±2.7095."""
    found = learning.cusum([True, False, True, True], 0.1, 0.2)
    assert found.s == pytest.approx(0.14524, abs=1e-5)
    assert (found.upper, found.lower) == pytest.approx((2.70951, -2.70951), abs=1e-5)
    assert found.path == pytest.approx(np.cumsum([-found.s, 1.0 - found.s, -found.s, -found.s]))


def test_lc_cusum_rises_with_success_and_never_falls_below_zero() -> None:
    gain, loss = math.log(0.9 / 0.7), math.log(0.1 / 0.3)
    found = learning.lc_cusum([False, True, True, False, True], 0.3, 0.1, limit=0.5)
    assert found.path == pytest.approx(
        [0.0, gain, 2.0 * gain, 2.0 * gain + loss if 2.0 * gain + loss > 0 else 0.0, gain]
    )
    assert found.proficient_at == 3


def test_the_limit_keeps_the_rate_of_false_proficiency() -> None:
    """Other learners than those it was found with: the rate is a share of 20 000, known to 0.5 % at four sigma."""
    limit = learning.lc_limit(0.3, 0.1, trials=40, rate=0.05)
    failed = np.random.default_rng(99).random((20_000, 40)) < 0.3
    called = [learning.lc_cusum(~row, 0.3, 0.1, limit).proficient_at is not None for row in failed[:4_000]]
    assert np.mean(called) < 0.05 + 4.0 * math.sqrt(0.05 * 0.95 / 4_000)
    able = np.random.default_rng(7).random((500, 40)) < 0.05
    assert np.mean([learning.lc_cusum(~row, 0.3, 0.1, limit).proficient_at is not None for row in able]) > 0.8


def test_the_plateau_of_an_exact_curve() -> None:
    found = learning.plateau([40.0 + 60.0 / n for n in range(1, 9)])
    assert found is not None
    assert (found.plateau, found.first) == pytest.approx((40.0, 100.0))
    assert learning.plateau([3.0, 2.0, 1.0]) is None
    steep = learning.plateau([9.0, 2.0, 0.0, 0.0, 0.0])
    assert steep is not None
    assert steep.plateau == 0.0, "no measure of time or force comes below none"
    falling = learning.plateau([-9.0, -5.0, -4.0, -3.5])
    assert falling is not None
    assert falling.plateau < 0.0


def test_rates_that_cannot_be_are_refused() -> None:
    with pytest.raises(InputError, match=r"failure rates 0\.3 and 0\.1"):
        learning.cusum([True], 0.3, 0.1)
    with pytest.raises(InputError, match=r"alpha = 0\.7"):
        learning.cusum([True], 0.1, 0.3, alpha=0.7)


# --- the database ---


def scored(time: float, outcome: str = "met", **values: float) -> Score:
    rows = [Row("time", "Time", "s", time, 1, "less")]
    rows += [Row(name, name, "", value, 1, "less") for name, value in values.items()]
    return Score("cautery", 3, "Standard", outcome, outcome == "met", time, tuple(rows), "Press less.")


@pytest.fixture
def address(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'sub' / 'trials.sqlite'}"


def test_trials_are_kept_by_trainee_and_deleted_by_one_word(address: str) -> None:
    store = Store(open_database(address))
    store.keep("Ada", scored(12.0, charred=0.25), "a.h5", 900)
    store.keep("Ada", scored(9.0))
    store.keep("  Grace   H.", scored(30.0, "failed"))
    assert store.names() == ["Ada", "Grace H."]
    first = store.trials("Ada")[0]
    assert (first.time, first.values, first.recording, first.tick) == (
        12.0,
        {"time": 12.0, "charred": 0.25},
        "a.h5",
        900,
    )
    assert [trial.trainee for trial in store.trials()] == ["Ada", "Ada", "Grace H."]
    assert store.delete("Ada") == 2
    assert store.names() == ["Grace H."]
    assert [trial.trainee for trial in store.trials()] == ["Grace H."]
    with pytest.raises(InputError, match="'Ada' is not known"):
        store.delete("Ada")
    store.close()


def test_a_code_is_shown_once_and_never_kept(address: str) -> None:
    store = Store(open_database(address))
    code = store.add("Ada")
    assert store.knows("Ada", code)
    assert not store.knows("Ada", code + "x")
    assert not store.knows("Grace", code)
    with pytest.raises(InputError, match="there already"):
        store.add("Ada")
    other = store.new_code("Ada")
    assert store.knows("Ada", other)
    assert not store.knows("Ada", code), "the old one works no more"
    store.close()
    kept = sqlite3.connect(address.removeprefix("sqlite:///")).execute("SELECT * FROM trainees").fetchall()
    assert code not in str(kept)
    assert other not in str(kept)


def test_the_first_use_of_a_name_makes_it_one_s_own(address: str) -> None:
    store = Store(open_database(address))
    first = store.enter("  Ada   L. ", "")
    assert first is not None
    assert (first.name, len(first.new_code)) == ("Ada L.", 14)
    assert store.enter("Ada L.", "") is None, "a name that is taken needs its code"
    assert store.enter("Ada L.", "another code") is None
    again = store.enter("Ada L.", first.new_code)
    assert again is not None
    assert (again.key, again.new_code) == (first.key, "")
    assert store.name_of(first.key) == "Ada L."
    own = store.enter("Grace", "my own words")
    assert own is not None
    assert own.new_code == "", "whoever chose a code knows it"
    assert store.enter("Grace", "my own words") is not None
    with pytest.raises(InputError, match="a code of 3 characters"):
        store.enter("Mary", "abc")
    store.keep("Lise", scored(9.0))
    assert store.enter("Lise", "") is None, "trials that are there are nobody's to take: the trainer gives a code"
    store.close()


def test_codes_of_the_second_schema_still_work() -> None:
    """One round of SHA-256 over 128 random bits."""
    code = "b3Jhbmdlcy1hbmQtbGVtb25z"
    kept = hashlib.sha256(code.encode()).hexdigest()
    assert codes.same(code, kept)
    assert not codes.same(code + "x", kept)
    assert not codes.same("", "")


def test_a_migration_keeps_all_rows(address: str) -> None:
    engine = open_database(address, revision="0001")
    engine.dispose()
    raw = sqlite3.connect(address.removeprefix("sqlite:///"))
    raw.execute("INSERT INTO trainees (id, name, created) VALUES (1, 'Ada', '2026-01-01 10:00:00')")
    raw.executemany(
        "INSERT INTO trials (id, trainee, scenario, level, seed, outcome, passed, time, advice, ended)"
        " VALUES (?, 1, 'cautery', 'Standard', 3, 'met', 1, ?, '', '2026-01-01 10:00:00')",
        [(f"t{number}", 10.0 + number) for number in range(50)],
    )
    raw.execute("INSERT INTO trial_values VALUES ('t7', 'charred', 0.5)")
    raw.commit()
    raw.close()
    store = Store(open_database(address))
    trials = store.trials("Ada")
    assert sorted(trial.time for trial in trials) == [10.0 + number for number in range(50)]
    assert next(trial for trial in trials if trial.id == "t7").values == {"charred": 0.5}
    assert {trial.recording for trial in trials} == {""}
    assert len(store.new_code("Ada")) == 14
    store.close()


def test_what_is_no_database_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no address"):
        open_database("trials.sqlite")
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(InputError, match="cannot be used"):
        open_database(f"sqlite:///{tmp_path / 'file' / 'trials.sqlite'}")
    with pytest.raises(InputError, match=r"cannot be used|not known"):
        open_database("mysql://user:secret@localhost/x")


def keep_on(address: str, name: str) -> None:
    """Keeps trials until it is killed."""
    store = Store(open_database(address))
    for number in range(100_000):
        store.keep(name, scored(float(number), charred=1.0, astray=2.0))


@pytest.mark.slow
def test_two_servers_share_it_and_one_that_is_killed_leaves_whole_trials(address: str) -> None:
    spawn = multiprocessing.get_context("spawn")
    both = [spawn.Process(target=keep_on, args=(address, name), daemon=True) for name in ("Ada", "Grace")]
    for one in both:
        one.start()
    store = Store(open_database(address))
    end = time.monotonic() + 60.0
    while {trial.trainee for trial in store.trials()} != {"Ada", "Grace"} and time.monotonic() < end:
        time.sleep(0.2)
    for one in both:
        assert one.pid is not None
        os.kill(one.pid, signal.SIGKILL)
        one.join()
    trials = store.trials()
    for name in ("Ada", "Grace"):
        mine = [trial for trial in trials if trial.trainee == name]
        assert [trial.time for trial in mine] == [float(number) for number in range(len(mine))]
        assert all(set(trial.values) == {"time", "charred", "astray"} for trial in mine)
    store.close()


# --- behind the server ---


def test_a_server_keeps_trials_and_says_where_one_stands(address: str) -> None:
    store = Store(open_database(address))
    room = Classroom(store, trainer_token="the trainer's own")
    (ada, _), (grace, _) = (room.enter(name, "", "", NOBODY) for name in ("Ada", "Grace"))

    async def keep() -> Standing | None:
        nobody = scored(1.0)
        assert await room.keep(nobody, trial_record(0, nobody), "", 1) is None, "nobody said who they are"
        for seconds in (40.0, 30.0, 35.0):
            one = scored(seconds, charred=0.01 * seconds)
            await room.keep(one, trial_record(0, one, ada.key), "", 1)
        last = scored(20.0, "failed", charred=0.9)
        return await room.keep(last, trial_record(0, last, grace.key), "", 1)

    told = asyncio.run(keep())
    assert told is not None
    assert (told.trainee, told.trials, told.times, told.passed, told.proficient_at) == (
        "Grace",
        1,
        [20.0],
        [False],
        None,
    )
    assert told.quartiles is None, "three that were passed are too few"
    assert [(one.name, one.values) for one in told.places] == [("time", [20.0]), ("charred", [0.9])], "her own alone"
    room.close()


def test_nobody_takes_another_s_name_nor_guesses_its_code(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    room = Classroom(Store(open_database(address)), trainer_token="the trainer's own")
    ada, code = room.enter("Ada", "", "", NOBODY)
    for _ in range(entrance.TRIES):
        with pytest.raises(Wrong, match="this name is taken"):
            room.enter("Ada", "a guess of mine", "", NOBODY)
    with pytest.raises(Wrong, match="too many wrong ones: wait"):
        room.enter("Ada", code, "", NOBODY)
    monkeypatch.setattr(entrance, "WAIT_S", 0.0)
    assert room.enter("Ada", code, "", NOBODY)[0] == ada
    with pytest.raises(Wrong, match="not the trainer's token"):
        room.enter("", "", "a guess of mine", NOBODY)
    both, _ = room.enter("", "", "the trainer's own", ada)
    assert (both.trainee, both.trainer) == ("Ada", True)
    room.close()


def test_a_trainee_sees_their_own_and_the_trainer_all(address: str) -> None:
    store = Store(open_database(address))
    room = Classroom(store, trainer_token="the trainer's own", open_to_all=True)
    (ada, _), (trainer, _) = room.enter("Ada", "", "", NOBODY), room.enter("", "", "the trainer's own", NOBODY)
    assert room.may_see("Ada", ada)
    assert not room.may_see("Grace", ada)
    assert not room.may_see(None, ada)
    assert not room.may_see("", NOBODY)
    assert room.may_see(None, trainer)
    assert Classroom(store, open_to_all=True).may_see(None, NOBODY), "alone on one's own machine"
    assert not Classroom(store, open_to_all=False).may_see(None, NOBODY)
    store.keep("Ada", scored(12.0), "/somewhere/cautery-1.log", tick=20_000)
    store.keep("Grace", scored(14.0), "/somewhere/cautery-2.log")
    assert room.whose(trainer) == {"cautery-1": ["Ada"], "cautery-2": ["Grace"]}
    assert room.whose(ada) == {"cautery-1": ["Ada"]}
    assert room.whose(NOBODY) == {}
    room.close()


def test_a_cookie_is_forgotten_with_its_trainee_and_a_ticket_works_once() -> None:
    here = Entrance(1234)
    cookie, ticket = here.enter(Visitor("Ada", "key"))
    assert here.who(cookie).trainee == "Ada"
    assert here.who("guess") == here.who(None) == NOBODY
    assert here.redeem(ticket) == Visitor("Ada", "key")
    assert here.redeem(ticket) is None
    assert here.redeem("") is None
    here.forget("Ada")
    assert here.who(cookie) == NOBODY


def test_what_a_killed_server_had_not_kept_is_kept_at_the_next_start_and_once(address: str, tmp_path: Path) -> None:
    """A recording has two trials of Ada's, one of which is in the database, one of somebody who was deleted, and one of
    nobody's."""
    store = Store(open_database(address))
    room = Classroom(store)
    ada, gone = (room.enter(name, "", "", NOBODY)[0] for name in ("Ada", "Gone"))
    folder = tmp_path / "recordings"
    log = Recorder.create(folder, make_header("cautery", 3, "cpu"))
    kept, missing = (trial_record(tick, scored(time, charred=0.2), ada.key) for tick, time in ((900, 8.0), (1900, 9.0)))
    for record in (kept, missing, trial_record(2500, scored(3.0), gone.key), trial_record(2600, scored(3.0))):
        log.trial(record)
    log.flush(3000)
    log.close()
    asyncio.run(room.keep(scored(8.0, charred=0.2), kept, str(log.path), 1))
    store.delete("Gone")
    assert [asyncio.run(room.catch_up(folder)) for _ in range(3)] == [1, 0, 0]
    trials = store.trials("Ada")
    assert {trial.id for trial in trials} == {kept.id, missing.id}
    late = next(trial for trial in trials if trial.id == missing.id)
    assert (late.time, late.values, late.tick) == (9.0, {"time": 9.0, "charred": 0.2}, 1900)
    assert late.ended.isoformat(timespec="milliseconds") == missing.ended
    assert store.names() == ["Ada"]
    convert_later = asyncio.run(room.catch_up(tmp_path / "nowhere"))
    assert convert_later == 0
    room.close()


def test_no_password_is_ever_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the driver says: it may repeat the whole address, or the connection's options."""
    import sqlalchemy
    from sqlalchemy.exc import OperationalError

    secret = "s3cr3t/&word"
    address = f"postgresql+psycopg://ada:{quote_plus(secret)}@nowhere.invalid/trials"
    said = f'connection to {address} failed: password={secret} host=nowhere; "{secret}" is wrong'

    def refuse(*args: object, **options: object) -> None:
        raise OperationalError("SELECT 1", {}, Exception(said))

    monkeypatch.setattr(sqlalchemy, "create_engine", refuse)
    with pytest.raises(InputError) as caught:
        open_database(address)
    told = "".join(traceback.format_exception(caught.value))
    for shown in (secret, quote_plus(secret), quote(secret, safe="")):
        assert shown not in told
    assert "connection to" in told, "what is wrong is said"
    no_address = address.replace("://", "//", 1)
    with pytest.raises(InputError, match=r"is no address") as caught:
        open_database(no_address)
    assert quote_plus(secret) not in "".join(traceback.format_exception(caught.value))


# --- ways out ---


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Three people who get better at different rates."""
    store = Store(open_database(f"sqlite:///{tmp_path_factory.mktemp('cohort') / 'trials.sqlite'}"))
    for name, first in (("Ada", 40.0), ("Grace", 60.0), ("Mary", 90.0)):
        for trial in range(1, 13):
            store.keep(
                name, scored(15.0 + first / trial, "met" if trial > first / 20.0 else "failed", charred=0.1 * trial)
            )
    return store


def test_exports_hold_every_trial_and_every_number(cohort: Store, tmp_path: Path) -> None:
    trials = cohort.trials()
    write(trials, tmp_path / "all.csv")
    with open(tmp_path / "all.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["time"]) for row in rows] == [trial.time for trial in trials]
    assert [float(row["charred"]) for row in rows] == [trial.values["charred"] for trial in trials]
    write(trials, tmp_path / "all.json")
    told = json.loads((tmp_path / "all.json").read_text())
    assert len({one["id"] for one in told}) == len(trials)
    assert told[0] == json.loads(json.dumps(statement(trials[0]))), "the same each time"
    assert told[0]["verb"]["display"]["en"] == "failed"
    assert told[-1]["result"] == {
        "success": True, "completion": True, "duration": "PT22.50S",
        "extensions": {
            "https://viscera.invalid/measures/charred": pytest.approx(1.2),
            "https://viscera.invalid/measures/time": 22.5,
        },
    }  # fmt: skip
    with pytest.raises(InputError, match=r"cannot export to 'all.txt'"):
        write(trials, tmp_path / "all.txt")


@pytest.mark.slow
def test_parquet_holds_the_same(cohort: Store, tmp_path: Path) -> None:
    import pyarrow.parquet

    write(cohort.trials(), tmp_path / "all.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "all.parquet").to_pydict()
    assert table["time"] == [trial.time for trial in cohort.trials()]


def test_a_report_says_where_one_stands(cohort: Store) -> None:
    (curve,) = curves(cohort.trials(), "Ada")
    told = dict(facts(curve))
    assert told["Trials"] == "12, 10 passed"
    assert told["Where practice leads"] == "15.0 s (plateau), from 55.0 s at first"
    passed = [trial.time for trial in cohort.trials() if trial.passed]
    low, half, high = np.percentile(passed, (25, 50, 75))
    assert told["All who passed"] == f"half took {low:.1f} to {high:.1f} s, the middle one {half:.1f} s"
    assert told["To do better"] == "Press less."


def test_the_list_of_trainees_counts_their_trials(address: str) -> None:
    store = Store(open_database(address))
    store.add("Ada")
    store.keep("Grace", scored(30.0, "failed"))
    store.keep("Grace", scored(20.0))
    newest = store.trials("Grace")[-1].ended.replace(tzinfo=None)
    counts = store.counts()
    assert counts["Ada"] == Counted(0, 0, None)
    assert (counts["Grace"].trials, counts["Grace"].passed) == (2, 1)
    assert counts["Grace"].last is not None
    assert counts["Grace"].last.replace(tzinfo=None) == newest
    store.close()


def test_a_measure_that_some_trials_lack_keeps_their_numbers(address: str) -> None:
    """A path over the straight one is none where nothing moved."""
    store = Store(open_database(address))
    for trial in range(1, 6):
        store.keep("Ada", scored(10.0) if trial == 2 else scored(10.0, ratio=float(trial)))
    (curve,) = curves(store.trials(), "Ada")
    (ratio,) = (place for place in curve.places() if place.name == "ratio")
    assert (ratio.numbers, ratio.values) == ((1, 3, 4, 5), (1.0, 3.0, 4.0, 5.0))
    store.close()


def test_a_cohort_s_report_says_what_somebody_needs_work_on(cohort: Store) -> None:
    """Everybody burns more from trial to trial and is quicker: in the newest trials too much is charred, in the first
    one it took too long."""
    (curve,) = curves(cohort.trials(), None, cohort.every_word())
    assert weakest(places(curve.of("Ada"), curve.cohort, curve.words)) == "charred"
    assert weakest(places(curve.of("Ada")[:1], curve.cohort, curve.words)) == "Time"
    page = html(cohort.trials(), None, titles={"cautery": "Burning a line"})
    assert "Burning a line, Standard" in page
    assert "Needs work" in page


def test_legends_of_a_report_lie_within_its_figures(address: str) -> None:
    """With every kind of mark, and with names as long as names may be told apart."""
    store = Store(open_database(address))
    for trainee in range(6):
        for trial in range(1, 9):
            outcome = "failed" if trial % 3 == 0 else "met"
            store.keep(f"Somebody with a long name {trainee}", scored(60.0 / trial, outcome, charred=9.0 / trial))
    words = {"charred": Words("charred", "mm²", 1, "less", 4.0)}
    (own,) = curves(store.trials(), "Somebody with a long name 0", {("cautery", "Standard"): words})
    (everybody,) = curves(store.trials(), None)
    figures = [plots.learning_figure(own), plots.measures_figure(own), plots.cohort_figure(everybody)]
    for made in figures:
        made.draw_without_rendering()
        (legend,) = made.legends
        found = legend.get_window_extent()
        assert found.x0 >= 0.0
        assert found.x1 <= made.bbox.width
    store.close()


@pytest.mark.slow
def test_reports_are_written_as_html_and_pdf(cohort: Store, tmp_path: Path) -> None:
    for name in ("Ada", None):
        for ending, start in (("html", b"<!doctype html>"), ("pdf", b"%PDF-")):
            path = tmp_path / f"{name}.{ending}"
            write_report(cohort.trials(), name, path)
            assert path.read_bytes().startswith(start)
    page = html(cohort.trials(), None)
    assert all(name in page for name in ("Ada", "Grace", "Mary"))
    with pytest.raises(InputError, match="no trial to report on"):
        write_report([], None, tmp_path / "none.html")


@pytest.mark.slow
def test_a_migration_keeps_all_rows_in_postgresql(postgresql: str) -> None:
    """From the first schema to the newest; a code of 64 letters becomes one that is longer."""
    import sqlalchemy as sql

    engine = open_database(postgresql, revision="0002")
    with engine.begin() as connection:
        for number, name in enumerate(("Ada", "Grace"), 1):
            connection.execute(
                sql.text("INSERT INTO trainees (id, name, created, code_hash) VALUES (:id, :name, now(), :hash)"),
                {"id": number, "name": name, "hash": hashlib.sha256(b"an old code").hexdigest()},
            )
        for number in range(50):
            connection.execute(
                sql.text(
                    "INSERT INTO trials (id, trainee, scenario, level, seed, outcome, passed, time, advice, ended)"
                    " VALUES (:id, 1, 'cautery', 'Standard', 3, 'met', true, :time, '', now())"
                ),
                {"id": f"t{number}", "time": 10.0 + number},
            )
        connection.execute(sql.text("INSERT INTO trial_values VALUES ('t7', 'charred', 0.5)"))
    engine.dispose()
    store = Store(open_database(postgresql))
    trials = store.trials("Ada")
    assert sorted(trial.time for trial in trials) == [10.0 + number for number in range(50)]
    assert next(trial for trial in trials if trial.id == "t7").values == {"charred": 0.5}
    assert store.knows("Ada", "an old code")
    assert store.knows("Grace", store.new_code("Grace")), "which is longer than the old column"
    known = [store.enter(name, store.new_code(name)) for name in store.names()]
    assert len({one.key for one in known if one is not None}) == 2, "each has a key of their own"
    store.close()


@pytest.mark.slow
def test_postgresql_keeps_the_same(postgresql: str) -> None:
    store = Store(open_database(postgresql))
    store.keep("Ada", scored(12.0, charred=0.25))
    other = Store(open_database(postgresql))
    other.keep("Ada", scored(9.0))
    assert [trial.time for trial in store.trials("Ada")] == [12.0, 9.0]
    assert store.trials("Ada")[0].values == {"time": 12.0, "charred": 0.25}
    assert other.delete("Ada") == 2
    assert store.trials() == []
    store.close()
    other.close()
