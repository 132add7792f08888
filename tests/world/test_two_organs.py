"""Two organs of one world, each with heat, burns, film and wounds of its own: what belongs to which is in the names, of
what is saved, measured, set, timed and seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import viscera
from viscera import Contents, Scenario, Setting, World, block, drops, heat, organ, systems, wounds
from viscera.blood.film import Film
from viscera.blood.wounds import VESSELS
from viscera.device import Device
from viscera.errors import InputError
from viscera.heat import Heat, burns
from viscera.inputs import Reset, SetParameter, ToolInput
from viscera.instruments import Tool, kit
from viscera.timing import TICKS_PER_FRAME
from viscera.tissue.materials import LIVER, SOFT_TISSUE
from viscera.view import Camera, Goal, Measure
from viscera.world import Body, Organ, System

SIDE, ASIDE = 0.02, 0.03
"""Of both blocks, and where their middles are, to the left and to the right [m]."""
CAMERA = Camera((0.0, -0.3, 0.2), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 40.0)
BOX = ((-0.1, -0.1, -0.1), (0.1, 0.1, 0.1))


def phenomena(one: Organ, tools: list[Tool], x: float) -> list[System]:
    """All that is about one organ, in the order of a frame."""
    warmth = heat.make(one.need_skin())
    burn = burns.make(warmth)
    blood = systems.make_film_on(one, capacity=500)
    spray = drops.make(blood, capacity=64)
    openings = wounds.make(blood, drops=spray)
    hot = [systems.heating(one, warmth, burn, tools), systems.burning(one, burn), systems.stiffening(one, burn)]
    bleeders = systems.bleeding(one, openings, [systems.Wound((x, 0.0, SIDE), VESSELS["vein"], 0.2e-3)])
    flow = [systems.flying(one.name, spray), systems.flowing(blood), systems.accounting(blood, openings, spray)]
    return [*hot, bleeders, *flow, systems.painting(one, blood)]


def beside(x: float) -> Body:
    """A block, so far to the right [m]."""
    body = block((5, 5, 5), 0.2 * SIDE)
    mesh = replace(body.mesh, vertices=body.mesh.vertices + np.array([x, 0.0, 0.0]))
    return replace(body, mesh=mesh, origin=(body.origin[0] + x, body.origin[1], body.origin[2]))


def build(setting: Setting) -> Contents:
    organs = []
    for name, x, material in (("liver", -ASIDE, LIVER), ("stump", ASIDE, SOFT_TISSUE)):
        body = beside(x)
        base = body.positions[:, 2] < 0.002
        organs.append(organ(name, body, setting.device, material=material, texels=64, anchored=base, burns=True))
    tools = kit.hand_out([kit.forceps(30.0)], (0.0, 0.0, 0.06))
    parts = [part for one, x in zip(organs, (-ASIDE, ASIDE), strict=True) for part in phenomena(one, tools, x)]
    goals = [Goal("charred_of_liver", most=1.0)]
    return Contents(organs=organs, tools=tools, systems=parts, camera=CAMERA, bounds=BOX, goals=goals)


@pytest.fixture(scope="module")
def world(cpu: Device) -> World:
    return viscera.make(Scenario("two", build), device=cpu)


def burn_the_liver(world: World, frames: int) -> None:
    for _ in range(frames):
        world.apply(ToolInput(0, (-ASIDE, 0.0, SIDE - 0.0005), grip=1.0))
        world.step(TICKS_PER_FRAME)


def test_names_say_of_which_organ_they_are(world: World) -> None:
    scene = world.scene()
    kinds = ["heat", "burns", "stiffening", "wounds", "drops", "film", "ledger", "film_picture"]
    both = [f"{kind} of {name}" for name in ("liver", "stump") for kind in kinds]
    assert [system.name for system in world.systems] == [*both, "goals"]
    assert set(both) <= set(world.stages)
    assert {"charred_of_liver", "charred_of_stump", "blood_lost_of_liver"} <= set(world.measure_values())
    assert {"power_of_liver", "power_of_stump"} <= {one.name for one in scene.parameters}
    assert {one.label for one in scene.parameters if one.name.startswith("power")} == {"Power (liver)", "Power (stump)"}
    assert {"liver.film", "stump.film", "liver.burn"} <= set(world.array_specs())
    with pytest.raises(InputError, match="no system 'heat'") as refused:
        world.system("heat")
    assert "heat of liver" in refused.value.hint


def test_each_organ_burns_and_bleeds_by_itself_and_is_saved_loaded_and_replayed(world: World) -> None:
    def of_both() -> dict[str, np.ndarray]:
        return {name: array for name, array in world.save_state().items() if " of " in name}

    burn_the_liver(world, 6)
    first = of_both()
    warm, cold = (world.system(f"heat of {name}", Heat).holds.temperature.numpy() for name in ("liver", "stump"))
    assert warm.max() > 1.0 > cold.max()
    assert min(world.measure_values()[f"blood_lost_of_{name}"] for name in ("liver", "stump")) > 0.0
    world.apply(SetParameter("power_of_liver", 10.0))
    burn_the_liver(world, 2)
    saved, now = world.save_state(), world.state_hash()
    assert np.any(saved["heat of liver/temperature"] != saved["heat of stump/temperature"])
    burn_the_liver(world, 3)
    later = world.state_hash()
    world.load_state(saved)
    assert world.state_hash() == now
    burn_the_liver(world, 3)
    assert world.state_hash() == later
    # The same inputs in a world that begins anew; a reset keeps settings, so the power goes back by hand.
    world.apply(Reset(world.seed))
    world.apply(SetParameter("power_of_liver", 30.0))
    burn_the_liver(world, 6)
    again = of_both()
    assert [name for name, array in first.items() if not np.array_equal(array, again[name])] == []


def test_a_system_is_asked_for_by_what_it_holds(world: World) -> None:
    assert isinstance(world.system("film of liver", Film).holds, Film)
    with pytest.raises(InputError, match="'film of liver' holds a Film, not a Heat"):
        world.system("film of liver", Heat)


def test_two_of_a_kind_on_one_organ_and_two_things_to_see_of_one_name_are_refused() -> None:
    def contents(*parts: System) -> Contents:
        return Contents(camera=CAMERA, bounds=BOX, systems=parts)

    with pytest.raises(InputError, match="two parts of the world are called 'film'"):
        contents(System(name="film"), System(name="film")).check()
    measure = Measure("depth", "Depth", "mm", "")
    with pytest.raises(InputError, match="two systems measure 'depth'"):
        contents(*(System(name=name, measures=lambda: [(measure, 0.0)]) for name in ("a", "b"))).check()
