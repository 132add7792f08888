"""Trainees behind the server: who holds the instruments, what of their trials is kept, and their reports.

The database is asked in a thread, so that a slow disk holds up no frame. Without one (`Classroom(None)`)
nothing is kept.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from viscera.scores import Score, learning
from viscera.server import messages as m
from viscera.server.hands import is_trainer

if TYPE_CHECKING:
    from viscera.training.store import KeptTrial, Store

MOST_SHOWN = 60
"""Of a trainee's own trials, the newest, that a page gets."""


class Classroom:
    """Of one server. `open_to_all`: no trainer's token is set and only this machine can ask, so all may see all."""

    def __init__(self, store: Store | None, trainer_token: str = "", open_to_all: bool = False) -> None:
        self._store = store
        self._trainer_token = trainer_token
        self._open_to_all = open_to_all and not trainer_token

    @property
    def there(self) -> bool:
        return self._store is not None

    def close(self) -> None:
        if self._store is not None:
            self._store.close()

    async def keep(self, trainee: str, score: Score, recording: str, tick: int, session: int) -> m.Standing | None:
        """Keeps a trial; where its trainee stands now. None where nothing is kept."""
        store = self._store
        if store is None or not trainee:
            return None

        def work() -> m.Standing:
            store.keep(trainee, score, recording, tick)
            every = [one for one in store.trials(scenario=score.scenario) if one.level == score.level]
            return standing(every, trainee, session)

        return await asyncio.to_thread(work)

    def may_see(self, trainee: str | None, code: str, trainer: str) -> bool:
        """Whether somebody who shows these may see this trainee's report, or the cohort's (None)."""
        if self._open_to_all or is_trainer(self._trainer_token, trainer):
            return True
        return trainee is not None and self._store is not None and self._store.knows(trainee, code)

    def report(self, trainee: str | None) -> str:
        """As HTML."""
        from viscera.training.report import html

        assert self._store is not None
        return html(self._store.trials(), trainee)


def standing(every: list[KeptTrial], trainee: str, session: int) -> m.Standing:
    """Where a trainee stands in one drill, among all trials of it."""
    from viscera.training.report import ACCEPTABLE, UNACCEPTABLE, proficiency_limit

    own = [trial for trial in every if trial.trainee == trainee]
    told = learning.lc_cusum([trial.passed for trial in own], UNACCEPTABLE, ACCEPTABLE, proficiency_limit())
    return m.Standing(
        session=session,
        trainee=trainee,
        trials=len(own),
        times=[trial.time for trial in own[-MOST_SHOWN:]],
        passed=[trial.passed for trial in own[-MOST_SHOWN:]],
        quartiles=learning.quartiles([trial.time for trial in every if trial.passed]),
        proficient_at=told.proficient_at,
    )
