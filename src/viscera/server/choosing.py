"""Which session comes next: what a browser asks for, as a `SessionSpec`, or a refusal."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path

from viscera.errors import RecordingError
from viscera.server import messages as m
from viscera.server.wishes import Refusal, detail_of, seed_of, tick_of
from viscera.session.catalogue import find
from viscera.session.process import SessionSpec
from viscera.session.recorder import default_folder


@dataclass(frozen=True)
class Choices:
    """What this server was started with."""

    first: SessionSpec
    scenarios: list[m.ScenarioInfo]
    own: str
    """What people call `first.scenario`, where that is a file of theirs."""

    @property
    def recordings(self) -> Path:
        """Where recordings are."""
        return self.first.recordings or default_folder()

    @property
    def titles(self) -> dict[str, str]:
        """What people call a scenario, by its name."""
        return {one.name: one.title for one in self.scenarios}

    def scenario(self, message: m.Choose, now: SessionSpec) -> SessionSpec:
        known = [scenario.name for scenario in self.scenarios]
        if message.scenario not in known:
            raise Refusal("input", f"scenario {message.scenario!r} is not known.", f"There are: {', '.join(known)}.")
        seed = seed_of(message.seed)
        detail = detail_of(message.detail) if message.detail else now.detail
        # The mesh and the parameters from the command line were meant for the scenario named beside them.
        if message.scenario == self.own:
            return dataclasses.replace(self.first, seed=seed, detail=detail, resume=None, state=None)
        return dataclasses.replace(self._plain(), scenario=message.scenario, seed=seed, detail=detail)

    def watch(self, recording: str, at: float) -> SessionSpec:
        try:
            path = find(self.recordings, recording)
        except RecordingError as error:
            raise Refusal("input", error.message, error.hint) from error
        plain = dataclasses.replace(self._plain(), haptics=None)
        return dataclasses.replace(plain, watch=path, at=tick_of(at), record=False)

    def _plain(self) -> SessionSpec:
        return dataclasses.replace(self.first, mesh=None, options={}, parameters={}, resume=None, state=None)


def again(now: SessionSpec, tick: int) -> SessionSpec:
    """What is watched goes on from a moment, as a new run."""
    return dataclasses.replace(now, watch=None, branch=now.watch, at=tick, record=True)
