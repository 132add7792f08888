"""Every phenomenon is used in the same way: the same verbs, the same order of arguments, and docs that say so."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import typing
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import viscera

ROOT = Path(__file__).parents[2]
VERBS = ("make", "set", "step", "follow", "check", "save", "load")


@dataclass(frozen=True)
class Phenomenon:
    """What a package promises. `lacks` are the verbs that would make no sense there."""

    name: str
    state: str
    params: str | None
    lacks: tuple[str, ...] = ()

    @property
    def module(self) -> ModuleType:
        return getattr(viscera, self.name)


PHENOMENA = (
    Phenomenon("tissue", "Tissue", "LatticeParams", lacks=("follow",)),
    Phenomenon("skin", "Skin", None, lacks=("set", "step")),
    Phenomenon("heat", "Heat", "HeatParams"),
    Phenomenon("burns", "Burn", "BurnParams", lacks=("follow",)),
    Phenomenon("electrodes", "Electrode", "ElectrodeParams", lacks=("follow",)),
    Phenomenon("film", "Film", "FilmParams"),
    Phenomenon("wounds", "Wounds", "WoundParams", lacks=("follow",)),
    Phenomenon("drops", "Drops", "DropParams", lacks=("follow",)),
    Phenomenon("pools", "Pools", "PoolParams", lacks=("follow",)),
    Phenomenon("stains", "Stains", "StainParams", lacks=("set", "follow")),
    Phenomenon("picture", "FilmImage", "FilmImageParams", lacks=("follow",)),
    Phenomenon("ledger", "Ledger", None, lacks=("set", "follow")),
    Phenomenon("water", "Fluid", "FluidParams", lacks=("follow",)),
    Phenomenon("grid", "Grid", "GridParams"),
    Phenomenon("xray", "Xray", "XrayParams", lacks=("follow",)),
)
each = pytest.mark.parametrize("phenomenon", PHENOMENA, ids=lambda p: p.name)


def arguments(function: Any) -> list[inspect.Parameter]:
    return list(inspect.signature(function).parameters.values())


def hints(function: Any) -> dict[str, Any]:
    return typing.get_type_hints(function)


@each
def test_the_verbs_are_there_and_no_others_are_missing(phenomenon: Phenomenon) -> None:
    module = phenomenon.module
    for verb in VERBS:
        assert (verb in module.__all__) == (verb not in phenomenon.lacks), verb
        assert callable(getattr(module, verb, None)) == (verb not in phenomenon.lacks), verb
    for name in module.__all__:
        assert hasattr(module, name), name
    assert is_dataclass(getattr(module, phenomenon.state))
    if phenomenon.params is not None:
        params: Any = getattr(module, phenomenon.params)
        assert is_dataclass(params)
        assert params.__dataclass_params__.frozen  # pyright: ignore[reportAttributeAccessIssue]


@each
def test_arguments_stand_in_one_order(phenomenon: Phenomenon) -> None:
    module, state = phenomenon.module, getattr(phenomenon.module, phenomenon.state)
    for verb in set(VERBS) - {"make", *phenomenon.lacks}:
        function = getattr(module, verb)
        given, kinds = arguments(function), hints(function)
        if verb in ("step", "follow"):
            first = given.pop(0)
            assert first.name == "stage"
            assert kinds["stage"].__name__ == "Stage"
        of = kinds[given[0].name]
        assert of is state or state in typing.get_args(of), f"{verb}({given[0].name})"
        rest = [one.name for one in given[1:] if one.kind is not inspect.Parameter.KEYWORD_ONLY]
        assert rest == {"set": ["params"], "check": ["tick"], "load": ["arrays"]}.get(verb, []), verb
        if verb == "check":
            assert given[1].default == 0
            assert kinds["return"] is type(None)
        if verb == "set":
            assert kinds["params"] is getattr(module, phenomenon.params or "")


@each
def test_makers_take_what_it_lives_on_then_params_then_the_device(phenomenon: Phenomenon) -> None:
    make = phenomenon.module.make
    given, kinds = arguments(make), hints(make)
    by_place = [one for one in given if one.kind is not inspect.Parameter.KEYWORD_ONLY]
    names = [one.name for one in by_place]
    if phenomenon.name in ("tissue", "water", "grid"):  # they live on nothing
        assert names[0] == "params"
    elif phenomenon.params is not None:
        assert names[-1] == "params"
        assert len(names) >= 2
        assert by_place[-1].default is None
    if phenomenon.params is not None:
        params = getattr(phenomenon.module, phenomenon.params)
        assert kinds["params"] is params or params in typing.get_args(kinds["params"])
    if "device" in kinds:
        assert given[-1].name == "device"
        assert given[-1].kind is inspect.Parameter.KEYWORD_ONLY
    assert kinds["return"] is getattr(phenomenon.module, phenomenon.state)


@each
def test_verbs_of_its_own_take_the_state_first_too(phenomenon: Phenomenon) -> None:
    module, state = phenomenon.module, getattr(phenomenon.module, phenomenon.state)
    for name in module.__all__:
        function = getattr(module, name)
        if not inspect.isfunction(function) or name == "make":
            continue
        assert function.__doc__, f"{phenomenon.name}.{name} has no docstring"
        names, kinds = [one.name for one in arguments(function)], hints(function)
        of_state = [n for n in names if kinds.get(n) is state]
        if "stage" in names:
            assert names[0] == "stage", name
        if of_state:
            assert names.index(of_state[0]) == names.index("stage") + 1 if "stage" in names else names[0] == of_state[0]


@each
def test_fields_of_a_state_are_documented(phenomenon: Phenomenon) -> None:
    """Numbers and arrays have a docstring below them, or below a second one that belongs to them; that of an array says
    what it holds and its shape, unless the docstring of the class does."""
    for name in (phenomenon.state, *STATES.get(phenomenon.name, ())):
        state: Any = getattr(phenomenon.module, name)
        source, whole = inspect.getsource(state), inspect.getdoc(state) or ""
        for field in fields(state):
            where, kind = f"{name}.{field.name}", str(field.type).split("|")[0].split("[")[0].strip()
            if kind not in (*ARRAYS, "int", "float", "bool"):
                continue
            below = rf'^    {field.name}: [^\n]+\n(?:    \w+: [^\n]+\n)?    """(.*?)"""'
            found = re.search(below, source, re.MULTILINE | re.DOTALL)
            assert found, where
            if kind in ARRAYS:
                assert re.search(HOLDS, found[1]) or re.search(HOLDS, whole), where
                assert re.search(SHAPE, found[1]) or re.search(SHAPE, whole), where


ARRAYS = ("Any", "Array", "Port", "wp.array")
HOLDS = r"float|int|vec|`[A-Z]\w+`"
SHAPE = r"shape|shapes|\(n|\(\d|per texel|`[A-Z]\w+`"


STATES = {"tissue": ("LatticeState",), "film": ("FilmState", "FilmSurface"), "drops": ("DropArrays",)}


def test_importing_viscera_stays_light() -> None:
    code = "import sys, viscera; assert 'warp' not in sys.modules; assert 'numpy' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    with pytest.raises(AttributeError, match="no attribute 'magic'"):
        viscera.magic  # noqa: B018


def test_everything_public_can_be_imported() -> None:
    from viscera import anatomy, burns, drops, film, grid, heat, open_device, picture, skin, tissue, water, wounds

    assert {module.__name__ for module in (burns, film, water)} == {
        "viscera.heat.burns", "viscera.blood.film", "viscera.water",
    }  # fmt: skip
    assert all(getattr(viscera, name) is not None for name in viscera.__all__)
    assert all((anatomy, drops, grid, heat, open_device, picture, skin, tissue, wounds))


def test_the_page_about_conventions_has_the_same_table() -> None:
    text = (ROOT / "docs" / "conventions.md").read_text(encoding="utf-8").split("## One contract")[1]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", text, re.MULTILINE))
    assert set(rows) == {phenomenon.name for phenomenon in PHENOMENA}
    for phenomenon in PHENOMENA:
        cells = [cell.strip() for cell in rows[phenomenon.name].split("|")]
        assert f"`{phenomenon.state}`" in cells[0]
        assert phenomenon.params is None or f"`{phenomenon.params}`" in cells[0]
        lacks = tuple(re.findall(r"`(\w+)`", cells[-1].split(":")[0]))
        assert sorted(lacks) == sorted(phenomenon.lacks), phenomenon.name


@pytest.mark.parametrize("page", ["README.md", "docs/conventions.md"])
@pytest.mark.slow
def test_the_examples_run_as_printed(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "from viscera import" in block]
    assert len(blocks) == 1
    names: dict[str, Any] = {}
    exec(compile(blocks[0], page, "exec"), names)
    assert float(capsys.readouterr().out.split()[0]) == pytest.approx(100 * 2.0e-10, rel=1e-12)
