"""The phenomena of a world, one file each: a function that makes a `System` of them.

| function, file | one frame |
| --- | --- |
| `cutting`, `cuts` | what blades have cut opens, and is counted |
| `cut_vessel`, `cut_vessels` | a vessel that was cut through bleeds there |
| `tubes_through`, `tubes` | tubes leak where they are cut or torn; clips and burns shut them, clips slip |
| `lumen_of`, `lumen` | a hollow organ leaks bile where its wall is open, and empties |
| `oozing`, `ooze` | faces of cuts ooze until they have clotted, or are burnt |
| `clamping`, `clamps` | clips and staples are put on, hold, and slip |
| `sewing`, `sutures` | needle and thread as they are seen; stitches are counted |
| `heating`, `heat` | where electrodes are and whether the pedal is down → power per texel → conduction |
| `burning`, `burns` | temperature → boiling, coagulation, char → areas → picture |
| `burnt_cutting`, `burnt_cuts` | what is burnt through has no toughness: a hot wire cuts it |
| `stiffening` | burn level → stiffness of the springs; what is burnt and stretched too far tears |
| `bleeding`, `wounds` | pulse → wounds bleed, closed by clips or by burns |
| `Rest(...).system()`, `resting` | whether blood rests: then what follows sleeps |
| `flying`, `drops` | suction and nozzle → drops let go, fly and land |
| `pooling`, `pools` | fluid stands in hollows, level, and overflows |
| `staining`, `stains` | what hit cloth, instruments and gauze stays there; gauze wipes |
| `flowing`, `film` | the film of blood takes its steps |
| `accounting`, `ledger` | where every picolitre is |
| `lattice_picture`, `lattice_view` | masses and springs instead of the skin, or beside it |
| `painting`, `film_picture` | the film as a picture on the skin |
| `covering`, `gauze` | cloth on an organ keeps blood off, and reddens |
| `ink_on`, `ink` | what is drawn on the skin |
| `scope` | the lens fogs while it is cold, and is wiped |
| `tinting`, `tint` | outside and cut faces have the colour of the material beneath |
| `pressing` | how hard a tool presses, and the most so far |
| `Search(...).system()`, `search` | pins that mark where something is hidden |
| `bathing`, `saline` | vessels bleed into a cavity full of saline, which is rinsed and sucked |
| `smoking`, `smoke` | burning tissue → smoke, which rises and is drawn away |
| `swirling`, `water` | particles in a vessel, around the tools |
| `filling`, `barium` | a suspension is let into a hollow organ, runs as the table tilts, coats the wall |
| `whitening`, `coat_picture` | the film that it leaves, as a picture on the open wall |
| `fluoroscopy` | a C-arm's pulses while the pedal is down → the X-ray picture and its dose |
| (by itself) `goals`, `drill` | the life of a drill: waiting, running, ended |
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from viscera.world.systems.barium import Enema as Enema
    from viscera.world.systems.barium import filling as filling
    from viscera.world.systems.burns import burning as burning
    from viscera.world.systems.burnt_cuts import burnt_cutting as burnt_cutting
    from viscera.world.systems.clamps import clamping as clamping
    from viscera.world.systems.coat_picture import whitening as whitening
    from viscera.world.systems.cut_vessels import cut_vessel as cut_vessel
    from viscera.world.systems.cuts import cutting as cutting
    from viscera.world.systems.drops import flying as flying
    from viscera.world.systems.film import flowing as flowing
    from viscera.world.systems.film import make_film_on as make_film_on
    from viscera.world.systems.film_picture import painting as painting
    from viscera.world.systems.fluoroscopy import fluoroscopy as fluoroscopy
    from viscera.world.systems.gauze import Gauze as Gauze
    from viscera.world.systems.gauze import covering as covering
    from viscera.world.systems.heat import heating as heating
    from viscera.world.systems.heat import make_heat_on as make_heat_on
    from viscera.world.systems.ink import ink_on as ink_on
    from viscera.world.systems.lattice_view import lattice_picture as lattice_picture
    from viscera.world.systems.ledger import accounting as accounting
    from viscera.world.systems.lumen import lumen_of as lumen_of
    from viscera.world.systems.ooze import oozing as oozing
    from viscera.world.systems.pools import pooling as pooling
    from viscera.world.systems.pressing import pressing as pressing
    from viscera.world.systems.resting import Rest as Rest
    from viscera.world.systems.saline import bathing as bathing
    from viscera.world.systems.scope import scope as scope
    from viscera.world.systems.search import Search as Search
    from viscera.world.systems.smoke import smoking as smoking
    from viscera.world.systems.stains import Aim as Aim
    from viscera.world.systems.stains import make_stains_around as make_stains_around
    from viscera.world.systems.stains import staining as staining
    from viscera.world.systems.stiffening import stiffening as stiffening
    from viscera.world.systems.sutures import sewing as sewing
    from viscera.world.systems.tint import tinting as tinting
    from viscera.world.systems.tubes import Tube as Tube
    from viscera.world.systems.tubes import tubes_through as tubes_through
    from viscera.world.systems.water import Stream as Stream
    from viscera.world.systems.water import balls as balls
    from viscera.world.systems.water import swirling as swirling
    from viscera.world.systems.wounds import Wound as Wound
    from viscera.world.systems.wounds import bleeding as bleeding

# A world that has no blood in it loads none of blood's kernels.
_HOMES = {
    "barium": ("Enema", "filling"),
    "burns": ("burning",),
    "burnt_cuts": ("burnt_cutting",),
    "clamps": ("clamping",),
    "coat_picture": ("whitening",),
    "cut_vessels": ("cut_vessel",),
    "cuts": ("cutting",),
    "drops": ("flying",),
    "film": ("flowing", "make_film_on"),
    "film_picture": ("painting",),
    "fluoroscopy": ("fluoroscopy",),
    "gauze": ("Gauze", "covering"),
    "heat": ("heating", "make_heat_on"),
    "ink": ("ink_on",),
    "lattice_view": ("lattice_picture",),
    "ledger": ("accounting",),
    "lumen": ("lumen_of",),
    "ooze": ("oozing",),
    "pools": ("pooling",),
    "pressing": ("pressing",),
    "resting": ("Rest",),
    "saline": ("bathing",),
    "scope": ("scope",),
    "search": ("Search",),
    "smoke": ("smoking",),
    "stains": ("Aim", "make_stains_around", "staining"),
    "stiffening": ("stiffening",),
    "sutures": ("sewing",),
    "tint": ("tinting",),
    "tubes": ("Tube", "tubes_through"),
    "water": ("Stream", "balls", "swirling"),
    "wounds": ("Wound", "bleeding"),
}


class _Functions(ModuleType):
    """This package: a file that is called like its function does not take the function's place once it is loaded."""

    def __setattr__(self, name: str, value: Any) -> None:
        hides = isinstance(value, ModuleType) and name in _HOMES.get(name, ())
        super().__setattr__(name, getattr(value, name) if hides else value)


sys.modules[__name__].__class__ = _Functions


def __getattr__(name: str) -> Any:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(name for names in _HOMES.values() for name in names)
