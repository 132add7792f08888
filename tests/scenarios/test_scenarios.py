"""The catalogue of scenarios: a file that is broken says so and takes no other down."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import viscera
from viscera import scenarios
from viscera.device import Device
from viscera.errors import InputError, MeshError
from viscera.scenarios import Setting


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose files are scenarios too."""
    monkeypatch.setattr(scenarios, "__path__", [*scenarios.__path__, str(tmp_path)])
    scenarios.catalogue.cache_clear()
    yield tmp_path
    scenarios.catalogue.cache_clear()


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("unfinished", "SCENARIO = (", "SyntaxError"),
        ("needy", "import a_library_that_nobody_has", "ModuleNotFoundError"),
        ("failing", "1 / 0", "ZeroDivisionError"),
        ("nameless", "TITLE = 'forgot it'", "SCENARIO"),
        ("mistaken", "SCENARIO = 'a name'", "Make it a Scenario"),
    ],
)
def test_a_broken_file_is_named_and_the_others_are_there(folder: Path, name: str, text: str, why: str) -> None:
    ours = list(scenarios.catalogue())
    (folder / f"{name}.py").write_text(text)
    scenarios.catalogue.cache_clear()
    with pytest.warns(UserWarning, match=rf"{name}\.py does not load.*{why}"):
        found = scenarios.catalogue()
    assert list(found) == ours
    assert ours[0] == "palpation"
    with pytest.raises(InputError, match=rf"{name}\.py does not load.*{why}"):
        scenarios.find_scenario(name)


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(InputError, match="Did you mean 'palpation'"):
        scenarios.find_scenario("palpatoin")


@pytest.mark.parametrize("name", list(scenarios.catalogue()))
def test_a_users_mesh_is_used_or_refused_but_never_ignored(name: str, cpu: Device, tmp_path: Path) -> None:
    (tmp_path / "organ.stl").write_text("no mesh at all")
    entry = scenarios.find_scenario(name)
    if entry.takes_mesh:
        with pytest.raises(MeshError, match=r"organ\.stl"):
            entry.build(Setting(cpu, 0, tmp_path / "organ.stl"))
    else:
        with pytest.raises(InputError, match="mesh"):
            viscera.make(name, device="cpu", mesh=tmp_path / "organ.stl")
