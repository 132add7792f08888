"""What a world makes of systems: which ones fit together, who sleeps when nothing changes, what is kept, and that a
reset gives the first world again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import pytest
import warp as wp
from numpy.typing import NDArray

import viscera
from viscera import Contents, Scenario, Setting, World, burns, drops, film, heat, systems, wounds
from viscera.blood.film.border import film_count
from viscera.blood.wounds.vessels import vessel_mmhg
from viscera.device import Device, Program
from viscera.errors import InputError, StateError
from viscera.inputs import Input, Reset, SetParameter, SetTable, ToolInput
from viscera.instruments import MOST_TOOLS, Heats, Instrument, Pushes, Rinses, Sucks, Tool, kit
from viscera.scenarios import catalogue
from viscera.states import copy_out
from viscera.timing import FRAME, TICKS_PER_FRAME
from viscera.tissue.materials import FAT, LIVER, SOFT_TISSUE
from viscera.view import Camera, Column, Goal, Measure, Parameter, Table
from viscera.world import Field, LiveParameter, LiveTable, Moment, System
from viscera.world.system import Kept, Watch
from viscera.world.systems.heat import LOOK

CAMERA = Camera((0.0, -1.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), 40.0)
BOX = ((-1.0, -1.0, -1.0), (1.0, 1.0, 1.0))


def contents(*parts: System, **more: Any) -> Contents:
    return Contents(camera=CAMERA, bounds=BOX, systems=parts, **more)


def made_of(build: Callable[[Setting], Contents], device: Device) -> World:
    return viscera.make(Scenario("test", build), device=device)


# --- what fits together ---


def test_two_systems_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="'film'") as refused:
        contents(System(name="film"), System(name="ink"), System(name="film")).check()
    assert refused.value.hint == "Give each its own name."


def test_a_system_that_reads_what_nothing_before_it_writes_is_refused() -> None:
    heat, burns = System(name="heat", writes=("pad.temperature",)), System(name="burns", reads=("pad.temperature",))
    contents(heat, burns).check()
    with pytest.raises(
        InputError, match=r"'burns' reads 'pad\.temperature', which nothing before it writes"
    ) as refused:
        contents(System(name="ink", writes=("pad.ink",)), burns, heat).check()
    assert refused.value.hint == "List a system that writes it first. Written so far: pad.ink."


def test_a_goal_without_its_measure_is_refused() -> None:
    loss = Measure("blood_lost", "Blood lost", "mL", "")
    system = System(name="ledger", measures=lambda: [(loss, 0.0)])
    contents(system, goals=[Goal("blood_lost", most=1.0)]).check()
    with pytest.raises(InputError, match="'blood_last', which no system has") as refused:
        contents(system, goals=[Goal("blood_last", most=1.0)]).check()
    assert refused.value.hint == "There are: blood_lost, time."


def test_a_world_refuses_what_its_contents_refuse(cpu: Device) -> None:
    with pytest.raises(InputError, match="'twice'"):
        made_of(lambda setting: contents(System(name="twice"), System(name="twice")), cpu)


def test_more_tools_than_systems_have_rows_for_are_refused(cpu: Device) -> None:
    tools = kit.hand_out([kit.probe(2e-3)] * (MOST_TOOLS + 1), (0.0, 0.0, 0.0))
    with pytest.raises(InputError, match="17 tools are too many") as refused:
        made_of(lambda setting: contents(tools=tools), cpu)
    assert refused.value.hint == "Allowed are up to 16."
    with pytest.raises(InputError, match=r"numbers \[1\]"):
        made_of(lambda setting: contents(tools=tools[1:2]), cpu)


def test_a_switch_takes_heat_away_and_gives_it_back_and_never_gives_another(cpu: Device) -> None:
    """Electrodes are made with the world: what heats later without one is refused, in place of doing nothing."""
    organ = block(cpu)
    tools = kit.hand_out([kit.forceps(30.0), kit.probe(2e-3)], (0.0, 0.0, TOP + 0.02))
    warmth = heat.make(organ.need_skin())
    heating = systems.heating(organ, warmth, burns.make(warmth), tools)
    hot = cast("Heats", tools[0].instrument.effect(Heats))

    def press() -> float:
        for tool in tools:
            tool.take(ToolInput(tool.number, (0.0, 0.0, TOP), grip=1.0))
            tool.tip[:] = (0.0, 0.0, TOP)
        heating.frame(Moment(16, tools, dict, 1))
        return float({one.name: value for one, value in heating.measures()}["power"])

    rest = [effect for effect in tools[0].instrument.effects if not isinstance(effect, Heats)]
    tools[0].does(*rest)
    assert press() == 0.0
    tools[0].does(*rest, hot)
    assert press() > 0.0
    for tool, effect in ((tools[0], Heats(power=hot.power + 1.0, reach=hot.reach)), (tools[1], hot)):
        with pytest.raises(InputError, match=f"{tool.instrument.name} cannot come to do Heats"):
            tool.does(effect)


def test_an_organ_of_several_materials_is_heated_as_what_lies_beneath_each_texel(cpu: Device) -> None:
    """The same power for one step warms fat by P dt/C, more than liver by the ratio of their ρ c: 3.75 over 2.14
    MJ/(m³·K). Conduction between texels takes less than 1 % of it in 1 ms."""
    body = viscera.block(cells=(12, 12, 4), spacing=0.004)
    held, right = body.positions[:, 2] < 0.006, body.positions[:, 0] > 0.0
    mixed = {"material": LIVER, "further": (FAT,), "material_of": right.astype(np.uint8)}
    organ = viscera.organ(
        "block", body, cpu, texels=64, anchored=held, stiffest=LIVER.young, poisson=0.4, viscous_time=2e-4, **mixed
    )
    warmth, skin = systems.make_heat_on(organ, dt=1e-3), organ.need_skin()
    texels = skin.texels.numpy()
    power = np.zeros(len(warmth.power.numpy()), dtype=np.float32)
    power[texels] = 1e5 * skin.rest_area.numpy()[texels]  # as much for each square metre [W]
    warmth.power.assign(power)
    cpu.record(lambda stage: heat.step(stage, warmth)).run()
    place = skin.position.numpy()[texels]
    found = warmth.temperature.numpy()[texels]
    top = (place[:, 2] > TOP - 1e-4) & (np.abs(place[:, 1]) < 0.015)
    liver, fat = (np.median(found[top & (np.abs(place[:, 0] - x) < 0.005)]) for x in (-0.015, 0.015))
    stored = (LIVER.density * LIVER.heat_capacity) / (FAT.density * FAT.heat_capacity)
    assert fat / liver == pytest.approx(stored, rel=0.02)
    plain = systems.make_heat_on(block(cpu))
    assert plain.network.materials is None  # one material is computed as it was


def test_an_organ_has_one_writer_of_a_field_and_it_comes_first(cpu: Device) -> None:
    organ = block(cpu)
    with pytest.raises(InputError, match="nothing writes 'burn_level' on block") as refused:
        organ.read_field("burn_level")
    assert "before this one" in refused.value.hint
    made = organ.write_field("burn_level", "array")
    assert organ.read_field("burn_level") is made
    with pytest.raises(InputError, match="two systems write 'burn_level' on block"):
        organ.write_field("burn_level", "array")


# --- turns ---


@pytest.mark.parametrize("odd", [False, True])
def test_a_system_takes_its_turn_every_so_many_frames_from_a_reset_on(cpu: Device, odd: bool) -> None:
    turns: list[tuple[str, int, int]] = []

    def build(setting: Setting) -> Contents:
        def noting(name: str, every: int, phase: int = 0) -> System:
            def note(now: Moment) -> None:
                turns.append((name, now.tick, now.frame))

            return System(name=name, every=every, phase=phase, frame=note)

        return contents(noting("a", 1), noting("b", 2), noting("c", 3), noting("d", 2, 1))

    world = made_of(build, cpu)
    if odd:
        world.step(3 * TICKS_PER_FRAME)
        world.apply(Reset(0))
    began = world.tick
    turns.clear()
    world.step(6 * TICKS_PER_FRAME)
    expected = [
        (name, began + TICKS_PER_FRAME * frame, frame)
        for frame in range(1, 7)
        for name, every, phase in (("a", 1, 0), ("b", 2, 0), ("c", 3, 0), ("d", 2, 1))
        if frame % every == phase
    ]
    assert turns == expected


def test_a_field_that_was_not_written_has_not_changed() -> None:
    field = Field("array")
    first, second = Watch(field), Watch(field)
    assert not first.changed()
    field.changes += 1
    assert first.changed()
    assert not first.changed()
    assert second.changed()
    field.changes += 2
    assert Watch(field).changed() is False  # what was there before it looked is no change
    assert Watch(None).changed() is False


def test_cold_skin_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program of heat, burns, stiffening and drill runs before the pedal is down, all do while it is warm, and none
    once it is cold again."""
    world = viscera.make("cautery", device="cpu")
    ran, names = Counter[str](), ("heat", "burns", "stiffening", "drill")
    whose = ""
    run = Program.run

    def counted(program: Program, count: int = 1) -> None:
        ran[whose] += count
        run(program, count)

    monkeypatch.setattr(Program, "run", counted)

    def frames(count: int) -> None:
        """Of the systems alone; heat and burns take turns."""
        nonlocal whose
        ran.clear()
        for number in range(2 * count):
            for whose in names:
                system = world.system(whose)
                if number % system.every == system.phase:
                    system.frame(Moment(world.tick, world.hands, world.measure_values, number))

    frames(3)
    assert not ran
    hook = world.hands[0]
    hook.active, hook.grip = True, 1.0
    hook.tip[:] = (0.0, 0.0, world.organ("pad").vertices.numpy()[:, 2].max())
    frames(1)
    assert set(ran) == set(names)
    hook.grip = 0.0
    frames(1)
    assert set(ran) == set(names)
    world.system("heat").holds.temperature.zero_()
    world.system("burns").holds.area.host[:] = 0.0  # what is burnt goes on tearing
    frames(LOOK)
    frames(3)
    assert not ran
    world.close()


# --- what is kept ---


@wp.struct
class Purse:
    coins: wp.int64
    weight: wp.float32


@pytest.mark.parametrize("shape", [(4,), (2, 3)])
def test_plain_arrays_and_arrays_of_structs_come_back(cpu: Device, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    purses = wp.zeros(shape, dtype=Purse, device=cpu.warp)
    values: NDArray[Any] = np.zeros(shape, dtype=purses.numpy().dtype)
    values["coins"], values["weight"] = rng.integers(0, 2**40, size=shape), rng.uniform(size=shape)
    purses.assign(values)
    numbers = wp.array(rng.uniform(size=shape), dtype=wp.float64, device=cpu.warp)
    arrays: dict[str, Any] = {"purses": purses, "numbers": numbers, "host": values.copy(), "clock": np.arange(3)}
    loaded: list[int] = []
    kept = Kept(arrays, lambda: loaded.append(1))
    saved = kept.save()
    assert all(array.dtype.fields is None for array in saved.values())  # which every file knows
    before = copy_out(arrays)
    arrays["clock"][:] = -1
    arrays["host"][:] = np.zeros((), dtype=values.dtype)
    purses.zero_()
    numbers.zero_()
    assert not any(np.array_equal(array, before[name]) for name, array in copy_out(arrays).items())
    kept.load(saved)
    assert all(np.array_equal(array, before[name]) for name, array in copy_out(arrays).items())
    assert np.array_equal(purses.numpy(), values)
    assert loaded == [1]
    with pytest.raises(InputError, match="numbers needs shape"):
        kept.load(saved | {"numbers": saved["numbers"][:1]})
    assert loaded == [1]
    arrays["clock"][:] = 7
    assert saved["clock"].tolist() == [0, 1, 2]  # copies


def test_a_world_without_tools_saves_and_loads(cpu: Device) -> None:
    def build(setting: Setting) -> Contents:
        clock = np.zeros(1)
        kept = Kept({"clock": clock})

        def frame(now: Moment) -> None:
            clock[0] += FRAME

        return contents(System(name="clock", frame=frame, save=kept.save, load=kept.load, holds=clock))

    world = made_of(build, cpu)
    world.step(40)
    saved, digest = world.save_state(), world.state_hash()
    assert saved["tools"].shape == (0,)
    world.step(40)
    assert world.state_hash() != digest
    world.load_state(saved)
    assert (world.tick, world.tools) == (40, [])
    assert world.system("clock").holds[0] == pytest.approx(2 * FRAME)
    assert world.state_hash() == digest


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "palpation" else pytest.mark.slow) for name in catalogue()]
)
def test_a_reset_gives_the_first_world_again_bit_for_bit(name: str) -> None:
    """With every handle pressed, after an odd number of frames and after an even one: all that is saved and all that is
    seen."""
    world, fresh = (viscera.make(name, device="cpu", seed=seed) for seed in (1, 2))
    begun, held = all_of(fresh), held_below(fresh)
    for one in held:
        fresh.apply(one)
    fresh.step(6 * TICKS_PER_FRAME)
    first = all_of(fresh)
    # Something that is seen has happened.
    assert [part for part in first if part.startswith("seen") and np.any(first[part] != begun[part])]
    for before in (3, 2):
        for one in held_below(world):
            world.apply(one)
        world.step(before * TICKS_PER_FRAME)
        world.apply(Reset(2))
        for one in held:
            world.apply(one)
        world.step(6 * TICKS_PER_FRAME)
        again = all_of(world)
        assert again.keys() == first.keys()
        assert [part for part, value in first.items() if not np.array_equal(value, again[part])] == []
    world.close()
    fresh.close()


def held_below(world: World) -> list[Input]:
    """Every hand 5 cm below where it waits, its handle pressed. A world without hands is worked by its settings: what
    the scenario's own script sets in the first frames."""
    homes = [tool.instrument.home for tool in world.hands]
    if not homes:
        return [one for tick in range(6 * TICKS_PER_FRAME) for one in world.script(tick)]
    return [ToolInput(number, (x, y, z - 0.05), grip=1.0) for number, (x, y, z) in enumerate(homes)]


def all_of(world: World) -> dict[str, NDArray[Any]]:
    """But for the ticks themselves."""
    state = {name: array for name, array in world.save_state().items() if name not in ("tick", "began")}
    return state | {f"seen {name}": array for name, array in world.snapshot().arrays.items()}


# --- effects ---

TOP = 0.016
"""Of the block [m]."""
VEIN = vessel_mmhg(1.0, 1.0, 4.0)
"""Wells up: about 1 mL/s through a hole of 1 mm radius."""
SALINE = 1
"""Place of saline among the fluids."""


def block(device: Device) -> viscera.world.Organ:
    body = viscera.block(cells=(12, 12, 4), spacing=0.004)
    held = body.positions[:, 2] < 0.006
    young = SOFT_TISSUE.young
    return viscera.organ("block", body, device, texels=128, anchored=held, material=SOFT_TISSUE, stiffest=young)


def bleeding_block(device: Device, instruments: Sequence[Instrument]) -> World:
    """A block with a vein in its middle, made of public pieces."""

    def build(setting: Setting) -> Contents:
        organ = block(setting.device)
        blood = systems.make_film_on(organ, film.FilmParams(fluids=(film.BLOOD, film.SALINE)), capacity=3_000)
        flying = drops.make(blood, capacity=1_024)
        open_ones = wounds.make(blood, drops=flying)
        camera, bounds = viscera.looking_down([organ], (0.1, -0.9, 0.9))
        return Contents(
            organs=[organ],
            tools=kit.hand_out(list(instruments), place=(0.0, 0.0, TOP + 0.02)),
            systems=[
                systems.bleeding(organ, open_ones, [systems.Wound((0.0, 0.0, TOP), VEIN, 1e-3)]),
                systems.flying(organ.name, flying),
                systems.flowing(blood),
                systems.accounting(blood, open_ones, flying),
            ],
            camera=camera,
            bounds=bounds,
        )

    return made_of(build, device)


def test_a_film_that_nothing_moves_is_warned_of_and_books_without_wounds_say_what_they_need(cpu: Device) -> None:
    organ = block(cpu)
    blood = systems.make_film_on(organ, capacity=100)
    with pytest.warns(UserWarning, match=r"block: what was put onto it stands still\. List flowing\(film\)"):
        contents(systems.painting(organ, blood), organs=[organ]).check()
    with pytest.raises(InputError, match="accounting needs the film's drops"):
        systems.accounting(blood)
    with pytest.raises(InputError, match="accounting needs the film's wounds") as refused:
        systems.accounting(blood, drops=drops.make(blood, capacity=64))
    assert "wounds.make(film, drops=drops)" in refused.value.hint


def test_an_instrument_that_sucks_and_rinses_does_both(cpu: Device) -> None:
    washer = Instrument("washer", (Pushes(2e-3, offset=2e-3), Sucks(rate=1e-6), Rinses(rate=4e-6)))
    world = bleeding_block(cpu, [washer])
    world.step(10 * TICKS_PER_FRAME)
    assert world.measure_values()["sucked"] == 0.0
    for _ in range(12):
        world.apply(ToolInput(0, (0.0, 0.0, TOP), grip=1.0))
        world.step(TICKS_PER_FRAME)
    assert world.measure_values()["sucked"] > 0.0
    balance, on_it = world.system("ledger").holds.balance, world.system("film").holds
    assert balance.rinsed > 0.0
    assert balance.missing == 0
    assert on_it.state.fluid.numpy()[: film_count(on_it), SALINE].sum() > 10.0  # particles of it
    values = world.measure_values()
    assert values["rinsed"] == pytest.approx(1e6 * balance.rinsed)
    assert values["film_saline"] > 0.0
    assert values["film_blood"] + values["film_saline"] == pytest.approx(1e6 * film.volume(on_it), rel=1e-6)
    # They are for Python and --json; people watch the others.
    assert not {"rinsed", "film_blood"} & {measure.name for measure in world.scene().measures}


def test_systems_in_an_order_that_cannot_work_are_refused(cpu: Device) -> None:
    organ = block(cpu)
    blood = systems.make_film_on(organ, capacity=100, queue=3)
    spray = drops.make(blood, capacity=64)
    flowing, flying = systems.flowing(blood), systems.flying(organ.name, spray)
    books = systems.accounting(blood, wounds.make(blood, drops=spray), spray)
    with pytest.raises(InputError, match=r"'drops' is listed after 'film'.*List 'drops' before 'film'"):
        contents(flowing, flying, organs=[organ]).check()
    with pytest.raises(InputError, match="'film' is listed after 'ledger'"):
        contents(flying, books, flowing, organs=[organ]).check()
    contents(flying, flowing, books, organs=[organ]).check()
    with pytest.raises(InputError, match=r"about the organ 'blok'.*Did you mean 'block'\?"):
        contents(systems.flying("blok", spray), flowing, organs=[organ]).check()
    with pytest.raises(InputError, match=r"4 particles, but only 3 more can wait .* as queue=6"):
        film.add(blood, [(0.0, 0.0, TOP)] * 4, "blood")
    with pytest.raises(InputError, match="there is no fluid 'blod'"):
        film.add(blood, [(0.0, 0.0, 9.0)], "blod")


def test_every_system_function_stays_one_once_its_file_is_loaded() -> None:
    for name in dir(systems):
        assert getattr(systems, name) is getattr(systems, name)
        assert callable(getattr(systems, name)), name


def test_a_coloured_fluid_has_both_of_its_colours() -> None:
    with pytest.raises(InputError, match="fluid 'dye' has absorption, but no body"):
        film.FilmFluid("dye", 1_000.0, absorption=(1.0, 2.0, 3.0))
    with pytest.raises(InputError, match="fluid 'dye' has body, but no absorption"):
        film.FilmFluid("dye", 1_000.0, body=(0.1, 0.2, 0.3))


@pytest.fixture(scope="module")
def washed(cpu: Device) -> World:
    """A washer that sucks or rinses, as its parameter says, on a block with a film and its books."""
    sucks, rinses = Sucks(rate=1e-6), Rinses(rate=4e-6)
    washer = Instrument("washer", (Pushes(2e-3, offset=2e-3), sucks, rinses))
    switch = Parameter("washer", "Washer", "", 0.0, 1.0, 1.0, "What it does.", choices=("suck", "rinse"))

    def build(setting: Setting) -> Contents:
        organ = block(setting.device)
        blood = systems.make_film_on(organ, film.FilmParams(fluids=(film.BLOOD, film.SALINE)), capacity=3_000)
        spray = drops.make(blood, capacity=1_024)
        tools = kit.hand_out([washer], place=(0.0, 0.0, TOP + 0.02))
        modes = ((sucks,), (rinses,))
        turn = LiveParameter(switch, tissue=lambda value: tools[0].does(washer.effects[0], *modes[int(value)]))
        books = systems.accounting(blood, wounds.make(blood, drops=spray), spray)
        flow = [systems.flying(organ.name, spray), systems.flowing(blood), books]
        return contents(*flow, systems.pressing(tools[0]), organs=[organ], tools=tools, parameters=[turn])

    return made_of(build, cpu)


def test_a_parameter_switches_what_an_instrument_does_and_a_system_says_how_hard_it_presses(washed: World) -> None:
    """Rinse, then suck, with one handle; a state that is put back has its switch where it was."""
    world = washed

    def press(frames: int) -> tuple[float, float]:
        for _ in range(frames):
            world.apply(ToolInput(0, (0.0, 0.0, TOP - 1e-3), grip=1.0))
            world.step(TICKS_PER_FRAME)
        found = world.system("ledger").holds.balance
        return found.rinsed, found.sucked

    rinsed, sucked = press(10)
    assert (rinsed > 0.0, sucked) == (True, 0.0)
    values = world.measure_values()
    assert values["washer_force"] == pytest.approx(float(np.linalg.norm(world.tools[0].force)))
    assert 0.0 < values["washer_force"] <= values["washer_peak"] <= world.peak_force
    saved = world.save_state()
    world.apply(SetParameter("washer", 0.0))
    later, sucked = press(6)
    assert sucked > 0.0
    world.load_state(saved)
    assert [type(effect) for effect in world.hands[0].instrument.effects] == [Pushes, Rinses]
    assert later == pytest.approx(rinsed)
    with pytest.raises(InputError, match="pin pushes nothing"):
        systems.pressing(kit.hand_out([kit.pin()], place=(0.0, 0.0, 0.0))[0])


def test_what_is_added_to_a_film_that_runs_is_booked(washed: World) -> None:
    """Also in a state that is saved and put back; what comes from nowhere is too much."""
    world = washed
    world.step(2 * TICKS_PER_FRAME)
    before, on_it = world.state_hash(), world.system("film").holds
    film.add(on_it, [(0.0, 0.0, TOP)], "blood", volume=4e-9)
    world.step(2 * TICKS_PER_FRAME)
    saved, once = world.save_state(), world.system("ledger").holds.balance
    assert (once.added, once.missing) == (pytest.approx(4e-9), 0)
    world.step(2 * TICKS_PER_FRAME)
    there = world.state_hash()
    world.load_state(saved)
    assert world.system("ledger").holds.balance == once
    world.step(2 * TICKS_PER_FRAME)
    assert world.state_hash() == there != before
    on_it = world.system("film").holds
    volume = on_it.state.volume.numpy()
    volume[0] += 7
    on_it.state.volume.assign(volume)
    with pytest.raises(StateError, match=r"7 pL of fluid are too much .* Put fluid in with film\.add, pools\.pour"):
        world.step(2 * TICKS_PER_FRAME)


def test_two_suctions_take_turns(cpu: Device) -> None:
    """Frame by frame, also after a reset at an odd frame; one that is alone has every turn."""
    world = bleeding_block(cpu, [kit.suction(), kit.suction()])

    def turns(grips: tuple[float, float]) -> list[int]:
        """Whose tip the drops were given, in each of four frames."""
        tools = cast(list[Tool], world.hands)
        found = []
        for _ in range(4):
            for number, grip in enumerate(grips):
                world.apply(ToolInput(number, (0.01 * (2 * number - 1), 0.0, TOP + 0.002), grip=grip))
            world.step(TICKS_PER_FRAME)
            given = world.system("drops").holds.tools.host[0]["suction"]
            found.append(int(np.argmin([np.linalg.norm(given - tool.tip) for tool in tools])))
        return found

    assert turns((1.0, 1.0)) == [1, 0, 1, 0]
    world.step(TICKS_PER_FRAME)
    world.apply(Reset(0))
    assert turns((1.0, 1.0)) == [1, 0, 1, 0]
    assert turns((1.0, 0.0)) == [0, 0, 0, 0]
    assert turns((0.0, 1.0)) == [1, 1, 1, 1]


# --- what a user may change ---


def test_live_settings_refuse_what_cannot_be_and_pass_on_what_can(cpu: Device) -> None:
    given: dict[str, Any] = {}
    columns = (Column("level", "Level", "", "number", 0.0, 2.0), Column("cover", "Cover", "%", "number", 0.0, 100.0))
    table = Table("stages", "Stages", "", columns, ((0.0, 50.0), (1.0, 100.0)))

    def rising(rows: tuple[tuple[float, ...], ...]) -> None:
        if rows[1][0] <= rows[0][0]:
            raise InputError("the level does not rise.", "Let it.")

    def build(setting: Setting) -> Contents:
        system = System(
            name="burns",
            parameters=[LiveParameter(Parameter("flow", "Flow", "L/s", 0.0, 5.0, 1.0, ""), lambda v: note("flow", v))],
            tables=[LiveTable(table, change=lambda rows: note("stages", rows), check=rising)],
        )
        return contents(system)

    def note(name: str, value: Any) -> None:
        given[name] = value

    world = made_of(build, cpu)
    assert given == {"flow": 1.0, "stages": table.rows}
    refused = {
        "3 rows": SetTable("stages", (*table.rows, (2.0, 100.0))),
        "row 1 of stages has 1 numbers": SetTable("stages", (table.rows[0], (1.0,))),
        "cover = 101 % in row 1 of stages": SetTable("stages", (table.rows[0], (1.0, 101.0))),
        "level = nan": SetTable("stages", ((float("nan"), 0.0), table.rows[1])),
        "does not rise": SetTable("stages", ((1.0, 0.0), (1.0, 0.0))),
        "Did you mean 'stages'": SetTable("stage", table.rows),
        "flow = 6 L/s": SetParameter("flow", 6.0),
        "flow = nan": SetParameter("flow", float("nan")),
        "Did you mean 'flow'": SetParameter("flows", 1.0),
    }
    for why, one in refused.items():
        with pytest.raises(InputError, match=why):
            world.apply(one)
    world.step()
    assert given == {"flow": 1.0, "stages": table.rows}
    rows = ((0.5, 0.0), (1.5, 10.0))
    world.apply(SetTable("stages", rows))
    world.apply(SetParameter("flow", 2.0))
    assert given["stages"] == table.rows  # not before the next tick
    world.step()
    assert given == {"flow": 2.0, "stages": rows}
    given.clear()
    world.apply(Reset(3))
    world.step()
    assert given == {"flow": 2.0, "stages": rows}  # a reset keeps settings
    frame = world.frame()
    assert (frame.parameters, frame.tables) == ({"flow": 2.0}, {"stages": rows})
