"""Worlds by the thousand: many worlds of one scenario in one set of device arrays and one recorded program.

    from viscera import batch

    worlds = batch.make("palpation", worlds=64, seed=1, stiffness=(0.7, 1.3))
    worlds.set_tools(poses)            # (worlds, tools, 7)
    worlds.step(ticks=10)
    worlds.forces.mean.numpy()         # (worlds, tools, 6)
    worlds.reset(mask)

docs/batch.md says what a batch can do, docs/decisions/011-batched-worlds.md why it is built so.
"""

from viscera.batch.batch import Batch, Forces, make
from viscera.batch.burns import Burns, burns
from viscera.batch.films import Films, film
from viscera.batch.pictures import Pictures, pictures
from viscera.batch.wounds import Wounds, wounds

__all__ = ["Batch", "Burns", "Films", "Forces", "Pictures", "Wounds", "burns", "film", "make", "pictures", "wounds"]
