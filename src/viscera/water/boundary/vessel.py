"""A vessel around a fluid: contacts at the end of each of its steps, moving walls at the beginning.

    fluid.boundaries.append(Vessel(fluid, walls, ContactParams(friction=0.1)))

The fluid sorts its particles in every step, so what each knows about the walls is sorted along.
"""

from __future__ import annotations

import warp as wp

from viscera.device import Stage
from viscera.errors import InputError
from viscera.water.boundary.contacts import ContactParams, Contacts, make_contacts, step_contacts
from viscera.water.boundary.known import Known, make_known, take_known
from viscera.water.boundary.start import check_start
from viscera.water.boundary.walls import Walls, check_walls, move_walls
from viscera.water.state import Fluid, Images

wp.set_module_options({"enable_backward": False})


@wp.kernel
def sort_known(
    first: int,
    # in
    count: wp.array(dtype=wp.int32),
    original: wp.array(dtype=wp.int32),
    last_known: wp.array(dtype=Known),
    # out
    known_out: wp.array(dtype=Known),
):
    s = first + wp.tid()
    if s < count[0]:
        take_known(last_known, original[s], 0.0, 0.0, s, known_out)


@wp.kernel
def follow_period(
    first: int,
    # params
    images: Images,
    # in
    count: wp.array(dtype=wp.int32),
    before: wp.array(dtype=wp.vec3),
    position: wp.array(dtype=wp.vec3),
    # out
    before_out: wp.array(dtype=wp.vec3),
):
    """Where particles were, moved by whole periods to be beside where they are: one that left the box at its end and
    came in at its beginning has not flown through all that is between."""
    s = first + wp.tid()
    if s >= count[0]:
        return
    p = before[s]
    for axis in range(3):
        length = images.length[axis]
        if length > 0.0:
            p[axis] = p[axis] + length * wp.round((position[s][axis] - p[axis]) / length)
    before_out[s] = p


class Vessel:
    """Walls with their contacts as one of a fluid's `boundaries`."""

    adds_density = False
    adds_force = False

    def __init__(
        self, fluid: Fluid, walls: Walls, params: ContactParams | None = None, *, moving: bool = False, parts: int = 1
    ) -> None:
        """`moving`: shapes with a velocity, or a mesh that is aimed (`aim_walls`) and gets there in `parts` steps."""
        if walls.device is not fluid.device:
            raise InputError("walls and fluid are on different devices.", "Make both with the same device.")
        count = int(fluid.count.numpy()[0])
        own = fluid.tag.numpy()[:count] >= 0
        check_start(walls, fluid.position.numpy()[:count][own])
        for places in fluid.nozzles:
            check_start(walls, places, "particles of an emitter's layer")
        fluid.vessels.append(walls)
        self.walls = walls
        self.contacts: Contacts = make_contacts(walls, fluid.capacity, params)
        self.contacts.last_known = make_known(fluid.capacity, fluid.device)
        self.moving, self.parts = moving, parts
        periodic = any(fluid.params.periodic)
        self._before = wp.zeros(fluid.capacity if periodic else 0, dtype=wp.vec3, device=fluid.device.warp)
        """Where particles were, beside where they are; of length 0 where there is no period."""
        self.dt, self.live = live_dt(fluid), fluid.live  # the second keeps the memory of the first

    def before_step(self, stage: Stage, fluid: Fluid) -> None:
        if self.moving:
            move_walls(stage, self.walls, self.dt, self.parts)

    def check(self, tick: int = 0) -> None:
        """StateError if a mesh that moves has outgrown its table, or could pass particles: once per frame, by whoever
        aims it."""
        if self.walls.deforming:
            check_walls(self.walls, parts=self.parts, tick=tick)

    def add_density(self, stage: Stage, fluid: Fluid) -> None:
        pass

    def add_force(self, stage: Stage, fluid: Fluid) -> None:
        pass

    def contact(self, stage: Stage, fluid: Fluid) -> None:
        known = [self.contacts.last_known, self.contacts.known]
        before = fluid.grid.position
        stage.launch(sort_known, fluid.capacity, [fluid.count, fluid.grid.original, *known])
        if len(self._before):
            args = [fluid.images, fluid.count, before, fluid.position, self._before]
            stage.launch(follow_period, fluid.capacity, args)
            before = self._before
        moved = [before, fluid.position, fluid.velocity, fluid.tag]
        step_contacts(stage, self.contacts, fluid.count, self.dt, *moved)


def live_dt(fluid: Fluid) -> wp.array:
    """The fluid's dt as an array of its own, float (1,): the same memory as in `fluid.live`."""
    offset = fluid.live.numpy().dtype.fields["dt"][1]
    return wp.array(ptr=fluid.live.ptr + offset, dtype=wp.float32, shape=1, device=fluid.live.device)
