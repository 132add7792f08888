"""viscera: a real-time virtual surgery simulator.

A whole world:

    import viscera

    world = viscera.make("palpation", device="cpu", seed=1)
    world.step(100)
    print(world.snapshot().tools[0].force)

One phenomenon alone, all with the same verbs (docs/conventions.md, "One contract"):

    from viscera import anatomy, film, open_device, skin

    device = open_device("cpu")
    liver = skin.make(anatomy.liver(), device=device)
    blood = film.make(liver, capacity=20_000)
    film.add(blood, liver.mesh.vertices[:100], "blood")
    device.record(lambda stage: film.step(stage, blood)).run(100)

See docs/ for the scenarios and for how a world is put together.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from viscera import anatomy as anatomy
    from viscera import grid as grid
    from viscera import heat as heat
    from viscera import skin as skin
    from viscera import tissue as tissue
    from viscera import water as water
    from viscera import xray as xray
    from viscera.blood import drops as drops
    from viscera.blood import film as film
    from viscera.blood import ledger as ledger
    from viscera.blood import picture as picture
    from viscera.blood import pools as pools
    from viscera.blood import stains as stains
    from viscera.blood import wounds as wounds
    from viscera.device import open_device as open_device
    from viscera.heat import burns as burns
    from viscera.heat import electrodes as electrodes
    from viscera.inputs import Reset as Reset
    from viscera.inputs import SetParameter as SetParameter
    from viscera.inputs import SetTable as SetTable
    from viscera.inputs import ToolInput as ToolInput
    from viscera.instruments import kit as kit
    from viscera.scenarios import Scenario as Scenario
    from viscera.scenarios import Setting as Setting
    from viscera.scenarios import make as make
    from viscera.showing import show as show
    from viscera.tissue import materials as materials
    from viscera.world import Contents as Contents
    from viscera.world import LiveParameter as LiveParameter
    from viscera.world import System as System
    from viscera.world import World as World
    from viscera.world import block as block
    from viscera.world import cuttable as cuttable
    from viscera.world import fill as fill
    from viscera.world import looking_down as looking_down
    from viscera.world import organ as organ
    from viscera.world import systems as systems

__version__ = "0.2.0.dev0"

_MODULES = {
    "anatomy": "viscera.anatomy",
    "burns": "viscera.heat.burns",
    "drops": "viscera.blood.drops",
    "electrodes": "viscera.heat.electrodes",
    "film": "viscera.blood.film",
    "grid": "viscera.grid",
    "heat": "viscera.heat",
    "ledger": "viscera.blood.ledger",
    "picture": "viscera.blood.picture",
    "pools": "viscera.blood.pools",
    "stains": "viscera.blood.stains",
    "skin": "viscera.skin",
    "tissue": "viscera.tissue",
    "water": "viscera.water",
    "wounds": "viscera.blood.wounds",
    "xray": "viscera.xray",
}
_MODULES |= {
    "kit": "viscera.instruments.kit",
    "materials": "viscera.tissue.materials",
    "systems": "viscera.world.systems",
}
_NAMES = {
    "viscera.device": ("open_device",),
    "viscera.inputs": ("Reset", "SetParameter", "SetTable", "ToolInput"),
    "viscera.scenarios": ("Scenario", "Setting", "make"),
    "viscera.showing": ("show",),
    "viscera.world": ("Contents", "LiveParameter", "System", "World"),
    "viscera.world.contents": ("looking_down",),
    "viscera.world.organ": ("block", "cuttable", "fill", "organ"),
}
_FUNCTIONS = {name: home for home, names in _NAMES.items() for name in names}

__all__ = [  # noqa: RUF022 (worlds first, then phenomena)
    "__version__",
    "make",
    "show",
    "open_device",
    "Contents",
    "LiveParameter",
    "Reset",
    "Scenario",
    "SetParameter",
    "SetTable",
    "Setting",
    "System",
    "ToolInput",
    "World",
    "block",
    "cuttable",
    "fill",
    "kit",
    "looking_down",
    "materials",
    "organ",
    "systems",
    "anatomy",
    "burns",
    "drops",
    "electrodes",
    "film",
    "grid",
    "heat",
    "ledger",
    "picture",
    "pools",
    "stains",
    "skin",
    "tissue",
    "water",
    "wounds",
]


def __getattr__(name: str) -> Any:
    # Warp takes a second to import; `viscera --help` should not wait for it.
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _FUNCTIONS:
        return getattr(import_module(_FUNCTIONS[name]), name)
    raise AttributeError(f"module 'viscera' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
