"""A world whose lattice is spread over several devices is the world on one, bit for bit. Devices of the same kind stand
in for several: programs and copies between them are apart."""

from __future__ import annotations

import numpy as np
import pytest

import viscera
from viscera.device import open_device
from viscera.errors import InputError
from viscera.inputs import SetParameter, ToolInput
from viscera.world import World

DETAIL = 0.1


def make(device: str) -> World:
    return viscera.make("palpation", device=device, cores=1, seed=4, detail=DETAIL)


def course(world: World) -> list[tuple[float, ...]]:
    """Presses across the cuts, slides, lets go and comes back, while the tissue becomes softer and its nodule another.
    What was felt, tick by tick."""
    top = float(world.organs[0].body.positions[:, 2].max())
    x, y, _ = world.organs[0].body.positions.mean(axis=0).tolist()
    felt: list[tuple[float, ...]] = []
    for tick in range(180):
        if tick == 96:
            world.apply(ToolInput(0, (x, y, top), active=False))
        elif tick < 96 or tick > 100:
            beside = 0.0002 * tick
            world.apply(ToolInput(0, (x + beside, y, top - 0.004)))
        if tick == 80:
            world.apply(SetParameter("stiffness", 2.0))
            world.apply(SetParameter("difficulty", 2.0))
        world.step()
        felt.append((*world.tools[0].force, *world.tools[0].torque, *world.tools[0].position))
    return felt


@pytest.mark.parametrize("name", ["cpu", pytest.param("cuda:0", marks=pytest.mark.cuda)])
def test_a_world_over_several_devices_is_the_world_on_one(name: str) -> None:
    one, spread = make(name), make(f"{name}+{name}+{name}")
    slabs = spread.organs[0].tissue.slabs
    assert slabs is not None
    assert len({id(part.device) for part in slabs.parts}) == 3
    felt = course(one)
    assert course(spread) == felt
    assert max(abs(row[2]) for row in felt[:96]) > 0.02, "the probe never touched"
    assert max(abs(row[2]) for row in felt[130:]) > 0.02, "it never came back"
    mine, theirs = one.organs[0].tissue, spread.organs[0].tissue
    np.testing.assert_array_equal(theirs.displacement(), mine.displacement())
    np.testing.assert_array_equal(theirs.velocities(), mine.velocities())
    assert np.abs(mine.displacement()).max() > 1e-4
    one.wait()
    spread.wait()
    np.testing.assert_array_equal(spread.organs[0].vertices.numpy(), one.organs[0].vertices.numpy())
    assert spread.state_hash() == one.state_hash()
    for world in (one, spread):
        world.close()


def test_what_a_spread_lattice_cannot_do_is_refused() -> None:
    with pytest.raises(InputError, match="cutting"):
        viscera.make("incision", device="cpu+cpu", cores=1, detail=DETAIL)
    assert open_device("cpu + cpu", cores=1).others[0].name == "cpu"
