"""A run that is saved and goes on somewhere else is the same run, bit for bit: for every phenomenon.

Steps n + m in one go, against n steps, `save`, `load` into one that was made anew in the same way, m steps. What `save`
gives in the end must be the same bytes. That it could fail is checked too: without `load` the end is another one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from viscera import (
    anatomy,
    burns,
    drops,
    electrodes,
    film,
    heat,
    ledger,
    picture,
    pools,
    skin,
    stains,
    tissue,
    water,
    wounds,
)
from viscera.device import Device
from viscera.errors import InputError, StateError
from viscera.geometry import box, icosphere
from viscera.geometry.parts import make_tool
from viscera.geometry.tools import monopolar_hook
from viscera.water.state import DRAINED


@dataclass
class Rig:
    """Something that can be stepped, and the states in it in the order in which they are loaded."""

    states: list[tuple[ModuleType, Any]]
    run: Callable[[int], None]
    happened: Callable[[], bool] = lambda: True
    """Whether what it was made for took place."""

    def save(self) -> list[dict[str, np.ndarray]]:
        return [module.save(state) for module, state in self.states]

    def load(self, saved: list[dict[str, np.ndarray]]) -> None:
        for (module, state), arrays in zip(self.states, saved, strict=True):
            module.load(state, arrays)

    def check(self) -> None:
        for module, state in self.states:
            module.check(state, 7)


def heated_skin(device: Device) -> Rig:
    """A skin that is stretched, with heat that spreads in it."""
    pad = skin.make(anatomy.pad(), width=256, device=device)
    warmth = heat.make(pad, heat.HeatParams(perfusion=heat.LIVER_PERFUSION))
    power = np.zeros(pad.width * pad.height, dtype=np.float32)
    power[pad.texels.numpy()[:2000]] = 1e-3
    warmth.power.assign(power)
    pad.vertices.assign((pad.mesh.vertices * (1.1, 1.0, 1.0)).astype(np.float32))

    def frame(stage) -> None:
        skin.follow(stage, pad)
        heat.follow(stage, warmth)
        heat.step(stage, warmth)

    return Rig([(skin, pad), (heat, warmth)], device.record(frame).run)


def burning(device: Device) -> Rig:
    pad = skin.make(anatomy.pad(), width=256, device=device)
    warmth = heat.make(pad)
    burn = burns.make(warmth)
    hook = electrodes.make(burn, make_tool("hook", monopolar_hook(), device), electrodes.ElectrodeParams(power=30.0))
    top = pad.mesh.vertices[pad.mesh.vertices[:, 2].argmax()]
    electrodes.place(hook, top, (0, 0, 0, 1), jump=True)
    electrodes.place(hook, top + np.array([0.002, 0.0, 0.0]), (0, 0, 0, 1))
    electrodes.press(hook, True)

    def frame(stage) -> None:
        electrodes.step(stage, [hook])
        heat.step(stage, warmth)
        burns.step(stage, burn)
        burns.measure(stage, burn)

    return Rig([(heat, warmth), (burns, burn), (electrodes, hook)], device.record(frame).run)


def film_of_springs(device: Device) -> Rig:
    """On a sheet, with springs, two fluids that mix, and clots."""
    params = film.document_params(
        fluids=(film.document_fluid(), film.FilmFluid("saline", 1005.0, 4.0, 120.0, 480.0, dissolves=True)),
        springs=True, spring_stiffness=20.0, plasticity=0.5, dilution=1.0, clot_rate=1.0,
    )  # fmt: skip
    blood = film.make(film.Sheet(12, 12), params, capacity=400, device=device)
    at = np.random.default_rng(1).uniform(1.0, 11.0, (300, 2))
    film.add(blood, at, np.eye(4)[(at[:, 0] < 6.0).astype(int)])
    return Rig([(film, blood)], device.record(lambda stage: film.step(stage, blood)).run)


def bleeding(device: Device) -> Rig:
    organ = skin.make(anatomy.gallbladder(), width=256, device=device)
    blood = film.make(organ, film.FilmParams(clot_rate=1.0, dilution=1.0), capacity=4_000, queue=1_000)
    spray = drops.make(blood, capacity=1_000)
    marks = stains.make(spray, solids=[stains.Solid(1, 2e-3)])
    deep = pools.make(blood, spray)
    cut = wounds.make(blood, drops=spray)
    top = organ.mesh.vertices[organ.mesh.vertices[:, 2].argmax()]
    pools.pour(deep, top, 0.05e-6)
    image, book = picture.make(blood, pools=deep), ledger.make(blood, cut, spray)
    wounds.add(cut, top, wounds.VESSELS["artery"], opening=0.2e-3)
    wounds.add(cut, organ.mesh.vertices[100], wounds.VESSELS["vein"], opening=0.5e-3)
    wounds.find_texels(cut, organ)
    wounds.drive(cut, 0.5)
    nozzle = top + np.array([0.0, 0.01, 0.02])
    drops.set_tools(spray, suction=top, nozzle=nozzle, nozzle_velocity=(0.0, -0.2, -0.5), nozzle_rate=1e-6)
    burnt = heat.make(organ).temperature  # nothing is coagulated

    def frame(stage) -> None:
        film.follow(stage, blood)
        wounds.step(stage, cut, coagulated=burnt)
        drops.step(stage, spray)
        pools.step(stage, deep)
        stains.step(stage, marks)
        for _ in range(8):
            film.step(stage, blood)
        picture.step(stage, image)
        ledger.step(stage, book)

    states = [(film, blood), (wounds, cut), (drops, spray), (pools, deep), (stains, marks)]
    states += [(picture, image), (ledger, book)]
    return Rig(states, device.record(frame).run)


def water_rig(device: Device, **changes: Any) -> water.Fluid:
    numbers: dict[str, Any] = {"spacing": 0.01, "lower": (0.0, 0.0, 0.0), "upper": (0.2, 0.2, 0.1), "dt": 4e-4}
    numbers |= {"sound_speed": 8.0, "fastest": 1.0} | changes
    params = water.FluidParams(**numbers)
    walls = water.box_walls(params.lower, params.upper, params.spacing, params.radius, open_sides=["+y"])
    return water.make(params, water.block((0, 0, 0), (0.08, 0.1, 0.1), 0.01), walls=walls, device=device)


def stepped(device: Device, fluid: water.Fluid, steps: int = 1) -> Rig:
    def frame(stage) -> None:
        for _ in range(steps):
            water.step(stage, fluid)

    return Rig([(water, fluid)], device.record(frame, work=water.work(fluid)).run)


def dam(device: Device) -> Rig:
    return stepped(device, water_rig(device), 10)


def dam_of_constant_density(device: Device) -> Rig:
    """The solver starts from the pressures of the step before."""
    return stepped(device, water_rig(device, equation="incompressible", dt=1e-3, iterations=8), 2)


def dam_with_its_own_step(device: Device) -> Rig:
    return stepped(device, water_rig(device, adaptive=True, dt=1e-2), 10)


def spring_and_drain(device: Device) -> Rig:
    """A stream into a ball's cage with a wall that moves; drains act in every step."""
    params = water.FluidParams(0.01, (-0.2, -0.2, -0.2), (0.2, 0.2, 0.2), 2e-4, sound_speed=8.0, fastest=2.0)
    fluid = water.make(params, capacity=2_000, device=device)
    shapes = [water.Shape("sphere", (0.05, -0.05, 0.0), (0.03,), velocity=(-0.2, 0.0, 0.0))]
    walls = water.make_walls(icosphere(0.19, 3), shapes, radius=0.005, device=device)
    water.add_vessel(fluid, walls, water.ContactParams(friction=0.1), moving=True)
    water.add_emitter(fluid, (0.0, 0.1, 0.0), (0.0, -1.5, 0.0), 0.03)
    water.add_drain(fluid, ball=((0.0, 0.0, 0.0), 0.04))
    rig = stepped(device, fluid, 20)
    return replace(rig, happened=lambda: 0 < fluid.report.numpy()[DRAINED] < 500)


def organ_that_moves(device: Device) -> Rig:
    """Walls of a mesh on its way to where an organ is now."""
    params = water.FluidParams(0.01, (-0.2, -0.2, -0.2), (0.2, 0.2, 0.2), 2e-4, sound_speed=8.0, fastest=1.0)
    fluid = water.make(params, water.block((-0.05, -0.1, -0.05), (0.05, 0.0, 0.05), 0.01), device=device)
    mesh = icosphere(0.15, 3)
    walls = water.make_walls(mesh, radius=0.005, device=device, deforming=True, room=0.02)
    water.add_vessel(fluid, walls, moving=True, parts=12)
    rig = stepped(device, fluid, 3)
    goal = walls.vertices_to.numpy() * np.float32(0.99)
    from warp import array, vec3

    wanted = array(goal, dtype=vec3, device=device.warp)
    aim = device.record(lambda stage: water.aim_walls(stage, walls, wanted))

    def run(count: int) -> None:
        # The number of aims must be the same in one go and in two: it is aimed at the start alone.
        if not fluid.clock.numpy()[0]:
            aim.run()
        rig.run(count)

    return Rig(rig.states, run)


def lattice(device: Device, nodes: tuple[int, int, int] = (9, 9, 5), **changes: Any) -> tissue.Tissue:
    grid = np.stack(np.meshgrid(*map(np.arange, nodes), indexing="ij"), axis=-1).reshape(-1, 3).astype(np.int32)
    soft = replace(tissue.SOFT_TISSUE, young=3_000.0)
    numbers: dict[str, Any] = {"spacing": 0.004, "origin": (0.0, 0.0, 0.0), "anchored": grid[:, 2] == 0}
    numbers |= {"material": soft, "stiffest": 12_000.0, "viscous_time": 1e-4, "longest_viscous_time": 2e-4}
    numbers |= {"poisson": 0.25}
    block = tissue.make(tissue.LatticeParams(nodes=grid, **(numbers | changes)), device=device)
    tissue.set_gravity(block, (0.0, 0.0, -9.81))
    tissue.push(block, 0, (0.016, 0.016, 0.018), radius=0.006, friction=0.1)
    return block


def pushed(device: Device) -> Rig:
    block = lattice(device)
    tissue.set(block, replace(block.params, material=replace(block.params.material, young=5_000.0), drag=3.0))
    return Rig([(tissue, block)], device.record(lambda stage: tissue.step(stage, block)).run)


def pushed_odd(device: Device) -> Rig:
    block = lattice(device, stiffest=3_000.0)
    assert block.substeps % 2 == 1
    return Rig([(tissue, block)], device.record(lambda stage: tissue.step(stage, block, ticks=3)).run)


def creeping(device: Device) -> Rig:
    rest = tissue.RestSkipping(force=1e-6, speed=1e-5)
    block = lattice(device, creep=tissue.Creep(0.5, 0.05), rest_skipping=rest, poisson=0.4)
    return Rig([(tissue, block)], device.record(lambda stage: tissue.step(stage, block, ticks=16)).run)


RIGS: dict[str, tuple[Callable[[Device], Rig], int, int]] = {
    "skin and heat": (heated_skin, 5, 7),
    "burns and electrodes": (burning, 6, 9),
    "film with springs": (film_of_springs, 11, 17),
    "film, wounds, drops, pools, stains, picture, ledger": (bleeding, 5, 7),
    "water": (dam, 3, 4),
    "water of constant density": (dam_of_constant_density, 3, 4),
    "water with its own step": (dam_with_its_own_step, 3, 4),
    "water, spring, drain, vessel": (spring_and_drain, 15, 8),
    "water in an organ that moves": (organ_that_moves, 2, 3),
    "tissue": (pushed, 20, 31),
    "tissue, odd substeps": (pushed_odd, 7, 9),
    "tissue that creeps and rests": (creeping, 3, 4),
}


def differences(one: list[dict[str, np.ndarray]], other: list[dict[str, np.ndarray]]) -> list[str]:
    found = []
    for number, (a, b) in enumerate(zip(one, other, strict=True)):
        assert set(a) == set(b)
        found += [f"{number}/{name}" for name in a if a[name].tobytes() != b[name].tobytes()]
    return found


@pytest.mark.parametrize("name", RIGS)
def test_a_saved_run_goes_on_bit_for_bit(name: str, device: Device) -> None:
    make, before, after = RIGS[name]
    whole = make(device)
    whole.run(before + after)
    whole.check()
    assert whole.happened()
    begun = make(device)
    begun.run(before)
    saved = begun.save()
    for arrays in saved:
        assert all(isinstance(array, np.ndarray) and array.dtype.fields is None for array in arrays.values())
    resumed = make(device)
    resumed.run(1)  # whatever it was before is gone
    resumed.load(saved)
    assert not differences(resumed.save(), saved)
    resumed.run(after)
    assert not differences(resumed.save(), whole.save())
    anew = make(device)
    anew.run(after)
    for number, (module, _) in enumerate(whole.states):
        if module is not skin and module is not electrodes:  # those two stand still here
            assert any(at.startswith(f"{number}/") for at in differences(anew.save(), whole.save())), module.__name__


@pytest.mark.parametrize("name", RIGS)
def test_a_state_of_another_size_is_refused(name: str, cpu: Device) -> None:
    rig = RIGS[name][0](cpu)
    for module, state in rig.states:
        arrays = module.save(state)
        with pytest.raises(InputError):
            module.load(state, {})
        if module is water:
            arrays["position"] = np.zeros((10**6, 3), dtype=np.float32)
        else:
            first = next(iter(arrays))
            arrays[first] = np.zeros(3 + arrays[first].size, dtype=arrays[first].dtype)
        with pytest.raises(InputError):
            module.load(state, arrays)


def broken_rigs(device: Device) -> list[tuple[ModuleType, Any]]:
    """One state of each kind with a number that is not finite in it."""
    hot, burnt, bled = heated_skin(device), burning(device), bleeding(device)
    (_, pad), (_, warmth) = hot.states
    (_, burn), (_, hook) = burnt.states[1:]
    (_, blood), (_, cut), (_, spray), _, _, (_, image) = bled.states[:6]
    bled.run(3)
    for array in (pad.vertices, warmth.temperature, burn.damage, image.height, cut.view.rate):
        array.fill_(np.nan)
    hook.delivered.host[0] = np.inf
    blood.state.velocity.fill_(np.nan)
    spray.state.velocity.fill_(np.nan)
    fluid = water_rig(device)
    fluid.position.fill_(np.nan)
    block = lattice(device)
    block.state.velocity.fill_(np.nan)
    device.record(lambda stage: drops.step(stage, spray)).run()
    device.record(lambda stage: (film.step(stage, blood), water.step(stage, fluid), tissue.step(stage, block))).run(2)
    hurt = [(skin, pad), (heat, warmth), (burns, burn), (electrodes, hook), (film, blood), (wounds, cut)]
    return [*hurt, (drops, spray), (picture, image), (water, fluid), (tissue, block)]


def test_what_is_no_longer_finite_is_reported_with_its_tick(cpu: Device) -> None:
    for module, state in broken_rigs(cpu):
        with pytest.raises(StateError) as caught:
            module.check(state, 77)
        assert caught.value.tick == 77, module.__name__
        assert caught.value.hint


def test_recorded_ticks_are_those_of_the_fast_way(device: Device) -> None:
    """Odd and even numbers of substeps, one tick and many in a program: all the same bits."""
    for stiffest in (3_000.0, 12_000.0):
        for creep in (0.0, 0.5):
            changes: dict[str, Any] = {"stiffest": stiffest, "creep": tissue.Creep(creep, 0.05)}
            ends = []
            for ticks in (0, 16, *([] if creep else [1])):
                block = lattice(device, **changes)
                if ticks:
                    device.record(lambda stage, b=block, n=ticks: tissue.step(stage, b, ticks=n)).run(32 // ticks)
                else:
                    for _ in range(32):
                        block.step()
                tissue.check(block)
                saved = tissue.save(block)
                assert saved["ticks"][0] == 32
                assert tissue.force(block, 0)[0][2] > 0.0
                ends.append([saved])
            for end in ends[1:]:
                assert not differences(ends[0], end)


def test_ticks_that_cannot_be_recorded_are_refused(cpu: Device) -> None:
    block = lattice(cpu, creep=tissue.Creep(0.5, 0.05))
    with pytest.raises(InputError, match="ticks = 5"):
        cpu.record(lambda stage: tissue.step(stage, block, ticks=5))
    with pytest.raises(InputError, match="spacing cannot change"):
        tissue.set(block, replace(block.params, spacing=0.01))
    with pytest.raises(InputError, match="Young's modulus"):
        tissue.set(block, replace(block.params, material=replace(block.params.material, density=900.0)))


def test_particles_are_added_between_steps(device: Device) -> None:
    params = water.FluidParams(0.01, (0.0, 0.0, 0.0), (0.2, 0.2, 0.1), 2e-4, sound_speed=8.0)
    block = water.block((0, 0, 0), (0.1, 0.1, 0.1), 0.01)
    at_once = water.make(params, block, device=device)
    in_two = water.make(params, block[:300], capacity=len(block), device=device)
    water.add(in_two, block[300:])
    assert water.count(in_two) == len(block)
    assert water.volume(in_two) == pytest.approx(1e-3)
    for fluid in (at_once, in_two):
        device.record(lambda stage, f=fluid: water.step(stage, f)).run(5)
    assert not differences([water.save(at_once)], [water.save(in_two)])
    with pytest.raises(InputError, match="room for 0 more"):
        water.add(in_two, [(0.15, 0.15, 0.05)])
    roomy = water.make(params, capacity=3, device=device)
    with pytest.raises(InputError, match="outside the box"):
        water.add(roomy, [(0.5, 0.15, 0.05)])
    with pytest.raises(InputError, match="2 velocities for 1 positions"):
        water.add(roomy, [(0.1, 0.1, 0.05)], velocities=np.zeros((2, 3)))


def test_wounds_that_were_opened_since_come_back(cpu: Device) -> None:
    ball = film.make(box((0.05, 0.05, 0.05)), capacity=500, device=cpu)
    cut, fresh = wounds.make(ball), wounds.make(ball)
    wounds.add(cut, (0.0, 0.0, 0.025), wounds.VESSELS["vein"], opening=0.5e-3)
    wounds.load(fresh, wounds.save(cut))
    assert fresh.vessels == [wounds.VESSELS["vein"]]
    wounds.set_opening(fresh, 0, 0.4e-3)
    with pytest.raises(InputError, match="no wound 1"):
        wounds.clip(fresh, 1)
    with pytest.raises(InputError, match="pulse = 2"):
        wounds.drive(fresh, 2.0)


def test_a_program_runs_as_often_as_it_is_told(device: Device) -> None:
    block = lattice(device)
    program = device.record(lambda stage: tissue.step(stage, block))
    program.run(3)
    program.run()
    program.run(0)
    device.synchronize()
    assert block.state.clock.host[0] == 4
