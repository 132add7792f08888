"""Trainees behind the server: who holds the instruments, what of their trials is kept, and their reports.

The database is asked in a thread, so that a slow disk holds up no frame. Without one (`Classroom(None)`)
nothing is kept.
"""

from __future__ import annotations

import asyncio
from pathlib import PurePath
from typing import TYPE_CHECKING
from urllib.parse import quote

from viscera.scores import Score, learning
from viscera.server import messages as m
from viscera.server.hands import is_trainer
from viscera.timing import TICK

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

    def whose(self, trainee: str, code: str, trainer: str) -> dict[str, list[str]]:
        """By recording (its file's name without the ending), whose trials are in it, as far as somebody who shows these
        may know."""
        if self._store is None:
            return {}
        if self.may_see(None, "", trainer):
            return self._store.recorders()
        return self._store.recorders(trainee) if trainee and self.may_see(trainee, code, "") else {}

    def report(self, trainee: str | None, shown: str = "") -> str:
        """As HTML; `shown` is what its links show of who asks, as in an address."""
        from viscera.training.report import html

        assert self._store is not None
        after = f"&{shown}" if shown else ""

        def watch(trial: KeptTrial) -> str:
            begin = max(0.0, TICK * trial.tick - trial.time)
            name = PurePath(trial.recording).with_suffix(".h5").name if trial.recording else ""
            return f"../?watch={quote(name)}&at={begin:.1f}{after}" if name else ""

        return html(self._store.trials(), trainee, watch, lambda one: f"./report?trainee={quote(one.trainee)}{after}")


def standing(every: list[KeptTrial], trainee: str, session: int) -> m.Standing:
    """Where a trainee stands in one drill, among all trials of it."""
    from viscera.training.plots import lc_cusum

    own = [trial for trial in every if trial.trainee == trainee]
    return m.Standing(
        session=session,
        trainee=trainee,
        trials=len(own),
        times=[trial.time for trial in own[-MOST_SHOWN:]],
        passed=[trial.passed for trial in own[-MOST_SHOWN:]],
        quartiles=learning.quartiles([trial.time for trial in every if trial.passed]),
        proficient_at=lc_cusum(own).proficient_at,
    )
