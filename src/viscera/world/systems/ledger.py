"""Where every picolitre is: one ledger over vessels, film, air, saline around the organ and what has gone. Stops the
world when one is missing."""

from __future__ import annotations

import numpy as np

from viscera.blood.balance import Balance, check_balance, make_ledger, read_balance, step_ledger
from viscera.blood.drops.drops import Drops
from viscera.blood.film.film import Film
from viscera.blood.film.params import LITTLE
from viscera.blood.wounds.wounds import Wounds
from viscera.errors import InputError, StateError
from viscera.units import MILLILITRE
from viscera.view import Measure
from viscera.world.system import Moment, Saved, System
from viscera.world.systems.saline import Saline, SalineBalance

BLOOD_LOST = Measure("blood_lost", "Blood lost", "mL", "All that has left the vessels so far.", digits=2, grows=True)
ON_ORGAN = Measure("on_organ", "On the organ", "mL", "Blood and saline that lie on it.", digits=2)
POOLED = Measure("pooled", "In pools", "mL", "Of that, what stands in hollows.", digits=2)
STAINED = Measure("stained", "On cloth and tools", "mL", "Stains beside the organ and on instruments.", digits=2)
SOAKED = Measure("soaked", "In gauze", "mL", "What gauze has taken up.", digits=2)
SUCKED = Measure("sucked", "Sucked off", "mL", "What the suction has taken, of all fluids together.", digits=2)
RINSED = Measure("rinsed", "Rinsed", "mL", "What has come out of nozzles.", digits=2, grows=True, side=True)


class Accounts:
    """`balance` is where all fluid is, as of the last frame."""

    def __init__(self, film: Film, wounds: Wounds, drops: Drops, saline: Saline | None = None) -> None:
        self._device = drops.device
        self._saline = saline
        self._pools, self._stains = drops.pools is not None, drops.stains is not None
        self._ledger = make_ledger(film.state, wounds, drops)
        self._program = self._device.record(
            lambda stage: step_ledger(stage, self._ledger), work=len(drops.state.position)
        )
        self.load({})

    def save(self) -> Saved:
        """All but what somebody added follows from what it counts."""
        return {"added": np.array([self._ledger.added], dtype=np.int64)} if self._ledger.added else {}

    def load(self, saved: Saved) -> None:
        self._ledger.before = self._ledger.put_in - (int(saved["added"][0]) if "added" in saved else 0)
        self._program.run()
        self._device.synchronize()
        self.balance: Balance = read_balance(self._ledger)

    def frame(self, now: Moment) -> None:
        self._program.run()
        self._device.synchronize()
        self.balance = check_balance(self._ledger, now.tick)
        if self._saline is not None:
            self.check_saline(now.tick)

    def check_saline(self, tick: int) -> SalineBalance:
        """What the film gave is what the saline got, and none of that is missing; else StateError."""
        assert self._saline is not None
        found = self._saline.balance()
        lost = round((self.balance.dissolved - found.dissolved - found.washed) / LITTLE)
        if found.missing or lost:
            raise StateError(
                f"saline: {found.missing} pL of blood are missing, {lost} pL on their way from the film.",
                "Report this: volume is kept exactly.",
                stage="saline",
                tick=tick,
            )
        return found

    def measures(self) -> list[tuple[Measure, float]]:
        now = self.balance
        found = [
            (BLOOD_LOST, now.blood_lost / MILLILITRE),
            (ON_ORGAN, (now.film + now.queue + now.pool) / MILLILITRE),
        ]
        if self._pools:
            found.append((POOLED, now.pool / MILLILITRE))
        if self._stains:
            stained = (now.cloth + now.tools) / MILLILITRE
            found += [(STAINED, stained), (SOAKED, now.gauze / MILLILITRE)]
        return [*found, (SUCKED, now.sucked / MILLILITRE), (RINSED, now.rinsed / MILLILITRE)]


def accounting(
    film: Film, wounds: Wounds | None = None, drops: Drops | None = None, saline: Saline | None = None
) -> System[Accounts]:
    """After `flowing`, and `bathing` where the film lies under saline, in the order of a frame."""
    if drops is None:
        raise InputError(
            "accounting needs the film's drops.",
            "Give them: drops = drops.make(film); accounting(film, wounds, drops).",
        )
    if wounds is None:
        raise InputError(
            "accounting needs the film's wounds.",
            "Where nothing bleeds, give none: wounds.make(film, drops=drops) begins without any.",
        )
    accounts = Accounts(film, wounds, drops, saline)
    return System(
        name="ledger",
        skins=drops.surface.parts,
        frame=accounts.frame,
        after=("wounds", "drops", "pools", "stains", "film", "saline"),
        save=accounts.save,
        load=accounts.load,
        measures=accounts.measures,
        holds=accounts,
    )
