"""viscera: a real-time virtual surgery simulator.

    import viscera

    world = viscera.make("palpation", device="cpu", seed=1)
    world.step(100)
    print(world.snapshot().tools[0].force)

See docs/ for the scenarios and for how a world is put together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from viscera.scenarios import make as make

__all__ = ["__version__", "make"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Warp takes a second to import; `viscera --help` should not wait for it.
    if name == "make":
        from viscera.scenarios import make

        return make
    raise AttributeError(f"module 'viscera' has no attribute {name!r}")
