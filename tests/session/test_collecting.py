"""Garbage collection keeps out of what must be in time."""

from __future__ import annotations

import gc
import weakref

from viscera.collecting import ALL, EACH, Collecting


class Knot:
    """Refers to itself."""

    def __init__(self) -> None:
        self.itself = self


def test_cycles_are_collected_when_the_loop_says_so_and_not_before() -> None:
    before = gc.isenabled(), gc.get_freeze_count()
    kept = [Knot()]
    with Collecting() as collecting:
        assert not gc.isenabled()
        assert gc.get_freeze_count() > before[1], "what was there is not looked at again"
        lost = weakref.ref(Knot())
        for _ in range(5_000):
            kept.append(Knot())  # as many as bring a collection about by themselves
        assert lost() is not None
        begun = collecting._last
        collecting.look(begun + 0.5 * EACH)
        assert lost() is not None
        collecting.look(begun + EACH)
        assert lost() is None
        lost, kept = weakref.ref(kept[-1]), []
        for late in range(2, ALL):
            collecting.look(begun + late * EACH)
        assert lost() is not None, "it has lasted"
        collecting.look(begun + ALL * EACH)
        assert lost() is None
    assert (gc.isenabled(), gc.get_freeze_count()) == (True, 0)


def test_it_is_put_back_when_the_loop_fails() -> None:
    try:
        with Collecting():
            raise ValueError
    except ValueError:
        assert gc.isenabled()
