"""The ledger: where all the fluid is, in vessels, film and air and in what has gone, to the picolitre.

    book = ledger.make(blood, bleeding, spray)              # a film, its wounds, its drops
    ledger.step(stage, book)                                # ends a frame
    ledger.check(book, tick); ledger.read(book).blood_lost  # [m³]

The equation is in `balance`. A ledger only counts: it has no parameters to `set`.
"""

from __future__ import annotations

import numpy as np

from viscera.blood.balance import Balance, Ledger, check_balance, make_ledger, read_balance, step_ledger
from viscera.blood.drops.drops import Drops
from viscera.blood.film.film import Film
from viscera.blood.wounds.wounds import Wounds
from viscera.device import Stage
from viscera.states import Arrays, copy_in, copy_out, require_names

__all__ = ["Balance", "Ledger", "check", "load", "make", "read", "save", "step"]


def make(film: Film, wounds: Wounds, drops: Drops) -> Ledger:
    """What is there now counts as begun."""
    return make_ledger(film.state, wounds, drops)


def step(stage: Stage, ledger: Ledger) -> None:
    """Ends a frame: counts everything."""
    step_ledger(stage, ledger)


def read(ledger: Ledger) -> Balance:
    """As the last `step` counted it. Waits for the device."""
    return read_balance(ledger)


def check(ledger: Ledger, tick: int = 0) -> None:
    """Raises StateError if it does not add up or a drop is no longer finite. Waits for the device: once per frame."""
    check_balance(ledger, tick)


def save(ledger: Ledger) -> Arrays:
    """What was counted last, and what it began with."""
    numbers = {"begun": ledger.begun, "added": ledger.added}
    return copy_out({"entries": ledger.entries}) | {
        name: np.array([number], dtype=np.int64) for name, number in numbers.items()
    }


def load(ledger: Ledger, arrays: Arrays) -> None:
    """Puts a ledger into a state that `save` gave. Film, wounds and drops are loaded by themselves."""
    require_names("ledger", ["begun", "added"], arrays)
    copy_in("ledger", {"entries": ledger.entries}, arrays)
    ledger.begun = int(arrays["begun"][0])
    ledger.before = ledger.put_in - int(arrays["added"][0])
