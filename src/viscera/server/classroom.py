"""Trainees behind the server: who has entered, what of their trials is kept, and who may see it.

The database is asked in a thread, so that a slow disk holds up no frame. Without one (`Classroom(None)`)
nothing is kept.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from viscera.errors import InputError, VisceraError
from viscera.scores import Score
from viscera.server import messages as m
from viscera.server.entrance import Entrance, Visitor
from viscera.server.hands import is_trainer
from viscera.session.catalogue import all_trials
from viscera.session.logfile import TrialRecord

if TYPE_CHECKING:
    from viscera.training.store import KeptTrial, Store, Words

MOST_SHOWN = 60
"""Of a trainee's own trials, the newest, that a page gets."""
TRAINER = "\0trainer"
"""Stands for the trainer's token where wrong ones are counted; no trainee has this name."""


class Wrong(Exception):
    """What was shown is not the code, or not the token."""


class Classroom:
    """Of one server. `open_to_all`: no trainer's token is set and only this machine can ask, so all may see all."""

    def __init__(
        self,
        store: Store | None,
        trainer_token: str = "",
        open_to_all: bool = False,
        port: int = 0,
        secure: bool = False,
    ) -> None:
        """`secure`: browsers reach it by https alone."""
        self._store = store
        self._trainer_token = trainer_token
        self._open_to_all = open_to_all and not trainer_token
        self.secure = secure
        self.entrance = Entrance(port)

    def only_entrance(self) -> Classroom:
        """Another room, in which nothing is kept, of which the same people are known."""
        other = Classroom(None, self._trainer_token)
        other.entrance = self.entrance
        return other

    @property
    def there(self) -> bool:
        return self._store is not None

    @property
    def has_trainers(self) -> bool:
        return bool(self._trainer_token)

    @property
    def store(self) -> Store:
        assert self._store is not None
        return self._store

    def close(self) -> None:
        if self._store is not None:
            self._store.close()

    # --- who ---

    def enter(self, trainee: str, code: str, token: str, before: Visitor) -> tuple[Visitor, str]:
        """Who somebody is from now on, who shows these, and the code that was made for them, if one was. What they were
        `before` stays, where they show nothing for it. Raises `Wrong` for a wrong code or token, or after too many, and
        `InputError` for what is no name."""
        trainer, known, made = before.trainer, (before.trainee, before.key), ""
        if token:
            self._may_try(TRAINER)
            trainer = is_trainer(self._trainer_token, token)
            self._note(TRAINER, trainer)
        if trainee:
            if self._store is None:
                raise InputError("no trials are kept here.", "Start the server with --training.")
            name = " ".join(trainee.split())
            self._may_try(name)
            found = self._store.enter(name, code)
            self._note(name, found is not None)
            if found is not None:
                known, made = (found.name, found.key), found.new_code
        return Visitor(*known, trainer), made

    def _may_try(self, name: str) -> None:
        seconds = self.entrance.waits(name)
        if seconds > 0.0:
            raise Wrong(f"too many wrong ones: wait for {seconds:.0f} s, then try again.")

    def _note(self, name: str, right: bool) -> None:
        if right:
            self.entrance.was_right(name)
            return
        self.entrance.was_wrong(name)
        if name == TRAINER:
            raise Wrong("this is not the trainer's token.")
        raise Wrong("this name is taken, and this is not its code. Give its code, or choose another name.")

    def may_see(self, trainee: str | None, visitor: Visitor) -> bool:
        """Whether a visitor may see this trainee's report, or the cohort's (None)."""
        if self._open_to_all or visitor.trainer:
            return True
        return bool(trainee) and visitor.trainee == trainee

    def whose(self, visitor: Visitor) -> dict[str, list[str]]:
        """By recording (its file's name without the ending), whose trials are in it, as far as a visitor may know."""
        if self._store is None:
            return {}
        if self.may_see(None, visitor):
            return self._store.recorders()
        return self._store.recorders(visitor.trainee) if visitor.trainee else {}

    # --- trials ---

    async def keep(self, score: Score, record: TrialRecord, recording: str, session: int) -> m.Standing | None:
        """Keeps a trial; where its trainee stands now. None where nothing is kept."""
        store = self._store
        if store is None or not record.trainee:
            return None

        def work() -> m.Standing | None:
            name = store.name_of(record.trainee)
            if not name:
                return None  # deleted meanwhile
            store.keep(name, score, recording, record.tick, record.id)
            every = [one for one in store.trials(scenario=score.scenario) if one.level == score.level]
            return standing(every, name, session, store.words(score.scenario, score.level))

        return await asyncio.to_thread(work)

    async def catch_up(self, recordings: Path) -> int:
        """Trials that recordings have and the database lacks, since a server died in between, are kept now; how many
        that were. Once or many times: the result is the same."""
        store = self._store
        if store is None:
            return 0

        def work() -> int:
            found = 0
            for path, scenario, record in all_trials(recordings):
                found += store.keep_recorded(scenario, record, str(path))
            return found

        try:
            return await asyncio.to_thread(work)
        except (VisceraError, OSError) as error:
            print(f"viscera: trials of recordings could not be read: {error}", file=sys.stderr)
            return 0


def standing(
    every: Sequence[KeptTrial], trainee: str, session: int, words: dict[str, Words] | None = None
) -> m.Standing:
    """Where a trainee stands in one drill, among all trials of it."""
    from viscera.training.places import Place, places
    from viscera.training.plots import lc_cusum

    own = [trial for trial in every if trial.trainee == trainee]
    found: list[Place] = places(own, every, words or {})
    time = next(one for one in found if one.name == "time")
    return m.Standing(
        session=session,
        trainee=trainee,
        trials=len(own),
        times=[trial.time for trial in own[-MOST_SHOWN:]],
        passed=[trial.passed for trial in own[-MOST_SHOWN:]],
        quartiles=time.quartiles,
        proficient_at=lc_cusum(own).proficient_at,
        places=[
            m.Place(
                name=one.name,
                values=list(one.values[-MOST_SHOWN:]),
                quartiles=one.quartiles,
                plateau=None if one.plateau is None else one.plateau.plateau,
                limit=one.limit,
                proficient_at=None if one.learning is None else one.learning.proficient_at,
            )
            for one in found
        ],
    )
