"""The catalogue of scenarios: a file that is broken says so and takes no other down."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from viscera import scenarios
from viscera.errors import InputError
from viscera.scenarios._adaptive.pools import POOLS


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
    (folder / f"{name}.py").write_text(text)
    with pytest.warns(UserWarning, match=rf"{name}\.py does not load.*{why}"):
        found = scenarios.catalogue()
    ours = {"palpation", "bleeding", "cautery", "liver", "river", *POOLS}
    assert set(found) == ours
    assert next(iter(found)) == "palpation"
    with pytest.raises(InputError, match=rf"{name}\.py does not load.*{why}"):
        scenarios.find_scenario(name)


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(InputError, match="Did you mean 'palpation'"):
        scenarios.find_scenario("palpatoin")
