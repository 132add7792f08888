"""What is here, what is missing, and what to do about it: the facts behind `viscera doctor`."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import warp as wp

from viscera import machine
from viscera.device import CUDA_DRIVER_NEEDED, CudaState, available_cores, cuda_state, open_device
from viscera.errors import VisceraError

if TYPE_CHECKING:
    from rich.console import Console

wp.set_module_options({"enable_backward": False})

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
BROWSER_VARIABLE = "VISCERA_BROWSER"
MAC_BROWSERS = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)


@dataclass(frozen=True)
class Problem:
    """Something that is missing. Without a `fatal` one, viscera runs."""

    what: str
    do: str
    fatal: bool = False


@dataclass(frozen=True)
class DeviceFacts:
    name: str
    description: str
    chosen: bool
    reason: str
    works: bool


@dataclass(frozen=True)
class CacheFacts:
    path: str
    writable: bool
    size: int
    """[bytes]"""


@dataclass
class Facts:
    versions: dict[str, str | None]
    cores: int
    devices: list[DeviceFacts]
    nvidia_driver: str | None
    """The driver's own version, for example 580.65."""
    cuda_supported: str | None
    """The newest CUDA that the driver supports."""
    cuda: str
    """Whether CUDA can be used, in words."""
    kernel_cache: CacheFacts
    browser: str | None
    page_built: bool
    haptics: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def can_run(self) -> bool:
        return not any(problem.fatal for problem in self.problems)

    def as_json(self) -> dict[str, Any]:
        return {"can_run": self.can_run, **asdict(self)}


@wp.kernel
def _probe(value_out: wp.array(dtype=float)):
    value_out[0] = 42.0


def examine() -> Facts:
    """Look at everything. Compiles a one-line kernel, which is the only way to know that kernels can be compiled."""
    state, devices = _cuda_and_devices()
    cache = kernel_cache()
    facts = Facts(
        versions=machine.versions(),
        cores=available_cores(),
        devices=devices,
        nvidia_driver=nvidia_driver(),
        cuda_supported=f"{state.driver[0]}.{state.driver[1]}" if state.driver else None,
        cuda=state.reason,
        kernel_cache=cache,
        browser=find_browser(),
        page_built=page_folder() is not None,
    )
    facts.problems = _problems(facts, state.usable)
    return facts


def find_browser() -> str | None:
    """A Chromium or Chrome: the one that VISCERA_BROWSER names, else the first on the path."""
    named = os.environ.get(BROWSER_VARIABLE)
    if named:
        return shutil.which(named)
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    return found or next((path for path in MAC_BROWSERS if os.access(path, os.X_OK)), None)


def page_folder() -> Path | None:
    """Where the built page is, or None when it is not built."""
    folder = Path(__file__).parent / "server" / "static"
    return folder if (folder / "index.html").is_file() else None


def kernel_cache() -> CacheFacts:
    """Where Warp keeps compiled kernels, whether it can write there, and how much is in it."""
    base = wp.config.kernel_cache_dir or os.environ.get("WARP_CACHE_PATH")
    path = Path(base) if base else Path.home() / ".cache" / "warp"
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) if path.is_dir() else 0
    return CacheFacts(str(path), _writable(path), size)


def nvidia_driver() -> str | None:
    """Version of the NVIDIA kernel driver on Linux, or None when there is none."""
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        return None
    found = re.search(r"\b(\d{3}\.\d+(?:\.\d+)?)\b", text)
    return found.group(1) if found else "unknown"


def _cuda_and_devices() -> tuple[CudaState, list[DeviceFacts]]:
    try:
        return cuda_state(), _devices()
    except (OSError, VisceraError) as error:  # Warp does not even start without a cache it can write
        reason = f"Warp does not start: {error}"
        return CudaState(False, reason, None), [DeviceFacts("cpu", "", False, reason, False)]


def _devices() -> list[DeviceFacts]:
    try:
        best = open_device().name
    except VisceraError:
        best = "cpu"
    facts: list[DeviceFacts] = []
    for name in ["cpu", *(str(device.alias) for device in wp.get_cuda_devices())]:
        works, fault = _works(name)
        device = open_device(name if name != best else None)
        reason = device.reason if name == best else "not chosen: a faster device is here"
        facts.append(DeviceFacts(name, device.description, name == best, fault or reason, works))
    return facts


def _works(name: str) -> tuple[bool, str]:
    """Whether a kernel compiles and runs on the device, and if not, why."""
    try:
        value = wp.zeros(1, dtype=float, device=name)
        wp.launch(_probe, dim=1, outputs=[value], device=name)
        return bool(value.numpy()[0] == 42.0), ""
    except Exception as error:  # whatever breaks in the compiler or the driver is the finding
        return (
            False,
            f"kernels do not run: {str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__}",
        )


def _writable(path: Path) -> bool:
    """Try it: permission bits say nothing about a read-only or full disk."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path) as file:
            file.write(b"x")
            file.flush()
    except OSError:
        return False
    return True


def _problems(facts: Facts, cuda_usable: bool) -> list[Problem]:
    problems: list[Problem] = []
    if not any(device.works for device in facts.devices):
        problems.append(
            Problem(
                f"No device runs kernels ({facts.devices[0].reason}).",
                "Make the kernel cache writable or point WARP_CACHE_PATH to a folder that is; reinstall warp-lang.",
                fatal=True,
            )
        )
    problems += [
        Problem(f"{device.name}: {device.reason}.", "Update the driver, or use --device cpu.")
        for device in facts.devices
        if not device.works and device.name != "cpu"
    ]
    if not cuda_usable and facts.nvidia_driver:
        needed = f"{CUDA_DRIVER_NEEDED[0]}.{CUDA_DRIVER_NEEDED[1]}"
        problems.append(
            Problem(
                f"There is an NVIDIA driver ({facts.nvidia_driver}), but CUDA cannot be used: {facts.cuda}.",
                f"Install driver R580 or newer (CUDA {needed}); until then viscera runs on cpu.",
            )
        )
    if not facts.kernel_cache.writable:
        problems.append(
            Problem(
                f"The kernel cache {facts.kernel_cache.path} cannot be written.",
                "Free disk space or set WARP_CACHE_PATH to a folder you own.",
            )
        )
    if not facts.page_built:
        problems.append(
            Problem(
                "The page is not built, so there is nothing to show in a browser.", "Run `make web` in the checkout."
            )
        )
    if facts.browser is None:
        problems.append(
            Problem(
                "No Chromium or Chrome was found (only the page's own tests need one on this machine).",
                f"Install one (Debian: apt-get install chromium), or set {BROWSER_VARIABLE} to its path.",
            )
        )
    return problems


def print_facts(facts: Facts, console: Console) -> None:
    """The same facts for people."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_row(
        "[bold]versions", ", ".join(f"{name} {version or 'missing'}" for name, version in facts.versions.items())
    )
    table.add_row("[bold]cores", str(facts.cores))
    for device in facts.devices:
        mark = "[green]✓" if device.works else "[red]✗"
        chosen = "[bold](chosen)[/] " if device.chosen else ""
        table.add_row(
            "[bold]device",
            f"{mark}[/] {device.name} {chosen}{escape(device.description)}\n[dim]{escape(device.reason)}",
        )
    driver = f"NVIDIA {facts.nvidia_driver}" if facts.nvidia_driver else "no NVIDIA driver"
    supported = f", supports CUDA {facts.cuda_supported}" if facts.cuda_supported else ""
    table.add_row("[bold]driver", f"{driver}{supported}")
    cache = facts.kernel_cache
    state = "writable" if cache.writable else "[red]not writable[/]"
    table.add_row("[bold]kernel cache", f"{escape(cache.path)} ({state}, {cache.size / 1e6:.1f} MB)")
    table.add_row("[bold]browser", escape(facts.browser or "none found"))
    table.add_row("[bold]page", "built" if facts.page_built else "[red]not built")
    table.add_row("[bold]haptics", ", ".join(facts.haptics) or "none: the mouse is the hand")
    console.print(table)
    for problem in facts.problems:
        colour = "red" if problem.fatal else "yellow"
        console.print(f"\n[{colour}]{escape(problem.what)}[/]\n  → {escape(problem.do)}", soft_wrap=True)
    if not facts.problems:
        console.print("\n[green]Nothing is missing.")
