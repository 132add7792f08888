"""A trial in which another hand takes the instruments is nobody's: neither the trainee's failure nor their success."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_killed import PATIENCE, begin, kept, serving, trainee

from viscera.server import messages as m

TRAINER = "the trainer's own token"


@pytest.mark.timeout(600)
def test_a_trial_that_a_trainer_takes_over_is_nobody_s(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'trials.sqlite'}"
    with serving(tmp_path / "recordings", database, trainer=TRAINER) as server:
        hers, _ = server.enter("Ada")
        other, _ = server.enter("", trainer=TRAINER)
        with trainee(server, hers) as ada:
            begin(ada, 0.5)
            with trainee(server, other) as trainer:
                trainer.send(m.Hand(action="take"))
                trainer.wait(m.SessionState, lambda state: state.holder == trainer.number, seconds=PATIENCE)
                trainer.send(m.Drill(action="give_up"))
                trainer.wait(m.TrialScore, seconds=PATIENCE)
                trainer.send(m.Hand(action="give", client=ada.number))
                ada.wait(m.SessionState, lambda state: state.holder == ada.number, seconds=PATIENCE)
            assert kept(database) == []
            begin(ada, 0.5)
            ada.send(m.Drill(action="give_up"))
            standing = ada.wait(m.Standing, seconds=PATIENCE)
            assert (standing.trainee, standing.trials) == ("Ada", 1), "what she does alone is hers"
    assert len(kept(database)) == 1
