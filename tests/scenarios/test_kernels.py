"""The list of kernels that are compiled before a scenario starts: it is there and current, and a user's scenario gets
one of its own."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import pytest
import warp as wp

import viscera
from viscera.device import Device
from viscera.scenarios import catalogue, find_scenario, kernels

LISTS: kernels.Lists = json.loads(kernels.SHIPPED.read_text())


def test_every_scenario_has_its_list_and_every_module_on_it_has_kernels() -> None:
    for lists in LISTS.values():
        assert list(lists) == list(catalogue())
        for name in {name for modules in lists.values() for name in modules}:
            module = importlib.import_module(name)
            assert any(isinstance(value, wp.Kernel) for value in vars(module).values()), name


@pytest.mark.slow
@pytest.mark.parametrize("scenario", list(catalogue()))
def test_the_list_is_current(scenario: str) -> None:
    found = kernels.find_out(scenario)
    assert found == LISTS["cpu"][scenario], "run `python -m viscera.scenarios.kernels`"


@pytest.mark.cuda
@pytest.mark.parametrize("scenario", list(catalogue()))
def test_the_list_for_cuda_is_current(scenario: str) -> None:
    assert "cuda" in LISTS, "run `python -m viscera.scenarios.kernels` on this machine"
    assert kernels.find_out(scenario, "cuda") == LISTS["cuda"][scenario]


OWN = """
from viscera import Contents, Scenario
from viscera.view import Camera

def build(setting):
    return Contents(camera=Camera((0, -1, 0), (0, 0, 0), (0, 0, 1), 40.0), bounds=((-1, -1, -1), (1, 1, 1)))

SCENARIO = Scenario("own", build)
"""


def test_what_a_users_scenario_needs_is_remembered_by_its_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpu: Device
) -> None:
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path))
    monkeypatch.setattr(kernels, "loaded_kernel_modules", lambda: ["viscera.tissue.kernels", "gone.since"])
    path = tmp_path / "own.py"
    path.write_text(OWN)
    entry = find_scenario(str(path))
    assert kernels.known_kernels(entry, cpu) == []
    viscera.make(str(path), device=cpu)
    assert [module.__name__ for module in kernels.known_kernels(entry, cpu)] == ["viscera.tissue.kernels"]
    path.write_text(OWN + "# another text\n")
    assert kernels.known_kernels(find_scenario(str(path)), cpu) == []
