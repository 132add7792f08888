"""An attack that is always right, in three ways: for the test of the harness itself."""

from __future__ import annotations

import os
import signal
import time

from soak.attack import Attack, Broken, Case


def attempt(case: Case) -> None:
    for step in case["steps"]:
        if step == "break":
            raise Broken("as planted")
        if step == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if step == "hang":
            time.sleep(60.0)


ATTACK = Attack("planted", "for tests", lambda chance, small: {"steps": ["fine"]}, attempt, patience=2.0)
