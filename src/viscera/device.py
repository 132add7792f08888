"""Devices: which one, how kernels are launched on it, and the traps of both kinds, solved once.

A phenomenon describes a step as a function that launches kernels on a `Stage`. `Device.record` captures it as a
graph, on `cuda` and on `cpu` alike, and `Program.run` replays it. On `cpu` with several cores there is one graph per
core, each over its own blocks of `BLOCK` elements, with a barrier after every launch; results do not depend on the
number of cores.

Rules for whoever records a program:

- A kernel given to `Stage.launch` takes `first: int` as its first argument and works on element `first + wp.tid()`.
- Elements of one launch must not depend on each other. Sums are integers (exact in any order) or per-block partials.
- Scalars are frozen when a program is recorded: what may change while it runs lives in an array.
- Record from one thread at a time, with no other thread launching kernels: captures swallow or lose them silently.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import tempfile
import threading
import types
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.errors import DeviceError

wp.set_module_options({"enable_backward": False})

BLOCK = 1024
"""Elements per block; a core gets whole blocks, so block sums never straddle cores."""

SPLIT_WORK = 60_000
"""Least elements per program run that are worth a second core; see docs/decisions/001-device-layer.md."""

IDLE_CORES = 4
"""Cores that work beside idle ticks may take from them: its programs are short, and more would wait at barriers."""

CUDA_DRIVER_NEEDED = (13, 0)
"""CUDA version the driver must support for Warp 1.19's wheel (Linux driver R580 or newer)."""

SPIN = 4_000
"""Pauses before a waiting core sleeps, about 100 µs. Four times as many make water 10 % faster where cores are free,
and halve the speed of a world that shares its cores with a page drawn in software: decision 001."""

SLEEP_US = 50
"""How long a core sleeps at a time once it has spun in vain [µs]."""

PATIENCE_S = 20.0
"""A barrier that waits longer than this gives up: the other core's thread is gone."""

_GATE, _COMMAND, _STOP, _BROKEN, _ARRIVED = 0, 16, 32, 48, 64
"""Places in the control array, one cache line apart;
arrivals of core c at _ARRIVED + 16·c, its gate count next to it."""

ProgressCallback = Callable[[str, float], None]
"""Called with what is being done and the fraction that is done."""


_WAIT = """
typedef void (*sleeper)(unsigned);
sleeper rest = (sleeper)sleep_address;
long waited = 0;
int spins = 0;
{prepare}
while ({condition}) {{
    if (__atomic_load_n(control.data + 32, __ATOMIC_ACQUIRE)) break;
    if (__atomic_load_n(control.data + 48, __ATOMIC_ACQUIRE)) break;
    if (++spins < spin_limit) {{
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }} else {{
        rest((unsigned)sleep_us);
        waited += sleep_us;
        if (patience_us > 0 && waited > patience_us) __atomic_store_n(control.data + 48, 1LL, __ATOMIC_RELEASE);
    }}
}}
"""

_BARRIER_SNIPPET = _WAIT.format(
    prepare="""
long long mine = __atomic_add_fetch(control.data + 64 + 16 * core, 1LL, __ATOMIC_ACQ_REL);
int other = 0;
""",
    condition="""({
    while (other < cores && __atomic_load_n(control.data + 64 + 16 * other, __ATOMIC_ACQUIRE) >= mine) ++other;
    other < cores; })""",
)

_GATE_SNIPPET = _WAIT.format(
    prepare="long long next = ++control.data[64 + 16 * core + 1];",
    condition="__atomic_load_n(control.data, __ATOMIC_ACQUIRE) < next",
)


@wp.func_native(_BARRIER_SNIPPET)
def _meet(
    control: wp.array(dtype=wp.int64),
    core: int,
    cores: int,
    sleep_address: wp.int64,
    spin_limit: int,
    sleep_us: int,
    patience_us: int,
): ...


@wp.func_native(_GATE_SNIPPET)
def _wait_at_gate(
    control: wp.array(dtype=wp.int64),
    core: int,
    sleep_address: wp.int64,
    spin_limit: int,
    sleep_us: int,
    patience_us: int,
): ...


@wp.kernel
def _barrier(
    control: wp.array(dtype=wp.int64),
    core: int,
    cores: int,
    sleep_address: wp.int64,
    spin_limit: int,
    sleep_us: int,
    patience_us: int,
):
    _meet(control, core, cores, sleep_address, spin_limit, sleep_us, patience_us)


@wp.kernel
def _gate(control: wp.array(dtype=wp.int64), core: int, sleep_address: wp.int64, spin_limit: int, sleep_us: int):
    _wait_at_gate(control, core, sleep_address, spin_limit, sleep_us, 0)


_FLUSH_SNIPPET = """
#if defined(__x86_64__)
const unsigned denormals = 0x8040;  // flush to zero, denormals are zero
__builtin_ia32_ldmxcsr(flush ? __builtin_ia32_stmxcsr() | denormals : __builtin_ia32_stmxcsr() & ~denormals);
#endif
"""


@wp.func_native(_FLUSH_SNIPPET)
def _flush(flush: int): ...


@wp.kernel
def _flush_denormals(flush: int):
    """What has come to rest has numbers below 10⁻³⁸ in it, which take an Intel core a hundred times as long."""
    _flush(flush)


def _sleep_address() -> int:
    """Where libc's usleep lives. Warp's cpu compiler links no libc, so the address travels as a number."""
    return ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p).value or 0


class Stage:
    """One core's view of a program while it is recorded (or all of a cuda device)."""

    def __init__(self, device: Device, core: int, cores: int, crew: _Crew | None) -> None:
        self.device = device
        self.core = core
        self.cores = cores
        self._crew = crew
        self._met = False

    def launch(self, kernel: Any, count: int, args: Sequence[Any], block: int = BLOCK) -> None:
        """Runs `kernel` on elements 0 … count-1, this core's blocks of them; all cores are done when it returns."""
        blocks = -(-count // block)
        first = min(count, (blocks * self.core // self.cores) * block)
        last = min(count, (blocks * (self.core + 1) // self.cores) * block)
        if last > first:
            wp.launch(kernel, dim=last - first, inputs=[first, *args], device=self.device.warp)
        self._meet()

    def upload(self, port: Port) -> None:
        """What the host wrote into `port.host` reaches `port.array`."""
        self._copy(port.array, port.staging)

    def download(self, port: Port) -> None:
        """What kernels wrote into `port.array` reaches `port.host` (after `Device.synchronize`)."""
        self._copy(port.staging, port.array)

    def clear(self, port: Port) -> None:
        self.once(port.array.zero_)

    def _copy(self, to: wp.array[Any], source: wp.array[Any]) -> None:
        if to is not source:
            wp.copy(to, source)

    def once(self, work: Callable[[], object]) -> None:
        """Runs `work` (sorts, scans, copies, small kernels) on one core while the others wait."""
        if self.core == 0:
            work()
        self._meet()

    def begin(self) -> None:
        """Called before anything is recorded. The host's own arithmetic is left as it is."""
        if not self.device.is_cuda:
            wp.launch(_flush_denormals, dim=1, inputs=[1], device=self.device.warp)

    def finish(self) -> None:
        """Called when all is recorded. A program of nothing has a barrier too: the next run replaces the command that
        the crew is to read, and only a barrier tells that it has been read."""
        if not self._met:
            self._meet()
        if not self.device.is_cuda:
            wp.launch(_flush_denormals, dim=1, inputs=[0], device=self.device.warp)

    def _meet(self) -> None:
        self._met = True
        if self._crew is not None:
            self._crew.record_barrier(self.core)


@dataclass
class Port:
    """A small array that host and kernels share: on cpu one memory, on cuda a pinned copy and one on the device."""

    array: wp.array[Any]
    staging: wp.array[Any]
    host: np.ndarray
    """The staging memory as NumPy; write before `upload`, read after `download`."""


def put(target: wp.array[Any], values: NDArray[Any], rows: NDArray[np.int64] | slice = slice(None)) -> None:
    """Writes `values`, which elsewhere than in `rows` are what `target` has already. On cpu those rows alone, into its
    memory; on cuda a copy of all."""
    if target.device.is_cuda:
        target.assign(values.ravel() if values.size == target.size else values)
    else:
        target.numpy().reshape(values.shape)[rows] = values[rows]


@dataclass
class Program:
    """A recorded step. With several variants (ping-pong buffers), each run replays the next one."""

    device: Device
    cores: int
    graphs: list[list[wp.Graph]]
    """`graphs[variant][core]`"""
    crew: _Crew | None
    keep: object
    """What was recorded; kept so that no array it uses is freed."""
    turn: int = 0
    commands: list[int] = field(default_factory=list)

    def run(self, count: int = 1) -> None:
        """Replays the step `count` times. On cuda it returns before the work is done: `Device.synchronize` waits."""
        for _ in range(count):
            variant = self.turn
            self.turn = (variant + 1) % len(self.graphs)
            if self.crew is None:
                wp.capture_launch(self.graphs[variant][0], stream=self.device.stream)
            else:
                self.crew.run(self.commands[variant], self.graphs[variant][0])


class _Crew:
    """Worker threads, one per further core. Each sleeps natively at the gate (without the GIL), reads which program is
    wanted, and replays its own graph of it; barriers inside the graphs keep all cores in step."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.cores = device.cores
        self.sleep = wp.int64(_sleep_address())
        self.control = wp.zeros(_ARRIVED + 16 * self.cores, dtype=wp.int64, device=device.warp)
        self.memory = self.control.numpy()
        self.programs: list[list[wp.Graph]] = []
        self.threads: list[threading.Thread] = []
        self.gates: list[Any] = []
        self.busy = threading.Lock()
        for core in range(1, self.cores):
            with wp.ScopedCapture(device=device.warp) as capture:
                wp.launch(_gate, dim=1, inputs=[self.control, core, self.sleep, SPIN, SLEEP_US], device=device.warp)
            self.gates.append(capture.graph)
        for core in range(1, self.cores):
            thread = threading.Thread(
                target=_work,
                args=(self.gates[core - 1], self.memory, self.programs, core),
                name=f"viscera-{'core' if device._ticks is None else 'frame-core'}-{core}",
                daemon=True,
            )
            thread.start()
            self.threads.append(thread)
        self.finish = weakref.finalize(self, _dismiss, self.control, self.memory, self.threads)

    def record_barrier(self, core: int) -> None:
        wp.launch(
            _barrier,
            dim=1,
            inputs=[self.control, core, self.cores, self.sleep, SPIN, SLEEP_US, int(PATIENCE_S * 1e6)],
            device=self.device.warp,
        )

    def run(self, command: int, own: wp.Graph) -> None:
        if not self.busy.acquire(blocking=False):
            raise DeviceError(
                "two threads run programs of one device at the same time.",
                "What runs beside the ticks is recorded on `device.beside`, what runs in them on `device.ticks`.",
            )
        # The crew has met at the last barrier of the program before, so it has read that command: ours may replace it.
        self.memory[_COMMAND] = command
        self.memory[_GATE] += 1
        try:
            wp.capture_launch(own)
        finally:
            self.busy.release()
        if self.memory[_BROKEN]:
            raise DeviceError(
                "a cpu worker thread stopped answering, so the step is not complete.",
                "Close this world and make it again; with `cores=1` no worker threads are used.",
            )


def _work(gate: wp.Graph, memory: np.ndarray, programs: list[list[wp.Graph]], core: int) -> None:
    try:
        while True:
            wp.capture_launch(gate)
            if memory[_STOP]:
                return
            wp.capture_launch(programs[int(memory[_COMMAND])][core])
    except Exception:
        memory[_BROKEN] = 1
        raise


def _dismiss(control: wp.array, memory: np.ndarray, threads: list[threading.Thread]) -> None:
    # `control` is only held: its memory must outlive the threads that look at it.
    memory[_STOP] = 1
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join(timeout=2.0)


@dataclass(eq=False)
class Device:
    """A place where kernels run. Make one with `open_device`."""

    name: str
    """`cpu` or `cuda:0`."""
    warp: wp.Device
    is_cuda: bool
    description: str
    """For people: the processor's name and its cores or memory."""
    reason: str
    """Why this one was chosen."""
    cores: int
    stream: wp.Stream | None = None
    """On cuda: where its programs run, one after the other. None is Warp's own."""
    others: tuple[Device, ...] = ()
    """Further devices over which lattices are spread, a slab on each (tissue/slabs.py)."""
    alone: Callable[[], None] | None = None
    """Called before a program is recorded: makes sure that no other thread launches anything meanwhile."""
    _crew: _Crew | None = None
    _ticks: Device | None = None
    _beside: Device | None = None

    @property
    def beside(self) -> Device:
        """Where work beside the ticks runs: here, unless this is the `ticks` of another."""
        return self._beside or self

    @property
    def ticks(self) -> Device:
        """Where ticks run: here, unless this device was made by `split`."""
        return self._ticks or self

    def split(self, tick_cores: int | None = None, *, idle: bool = False) -> Device:
        """The same device for work beside the ticks, with another one for the ticks as its `ticks`: on cpu each has
        cores of its own, on cuda a stream, that of the ticks first. With two cores each has one; with more the ticks
        have half of them unless told. Ticks that are `idle` launch nothing: then the work beside them has all cores, up
        to `IDLE_CORES`, or half of more."""
        given = max(1, self.cores // 2) if tick_cores is None else tick_cores
        if not 1 <= given <= self.cores:
            raise DeviceError(f"{given} cores for the ticks are not possible.", f"Allowed are 1 to {self.cores}.")
        least = min(self.cores, IDLE_CORES) if idle else 1
        beside = self.sibling(max(least, self.cores - given))
        beside._ticks = ticks = self.sibling(given, first=True)
        ticks._beside = beside
        return beside

    def sibling(self, cores: int, *, first: bool = False) -> Device:
        """The same device with other cores, or with a stream of its own, so that a second thread may use it."""
        stream = wp.Stream(self.warp, priority=-1 if first else 0) if self.is_cuda else None
        return replace(self, cores=cores, stream=stream, _crew=None, _ticks=None, _beside=None)

    def record(
        self, build: Callable[..., object], *, variants: int = 1, work: int | None = None, arguments: Sequence[Any] = ()
    ) -> Program:
        """Captures `build(stage, [variant], *arguments)` as a graph and returns it as a program.

        `variants` > 1 records `build` once per variant and passes its number (ping-pong buffers swap there); `run`
        takes turns. `work` is the number of elements per run; below `SPLIT_WORK` one core does all of it.
        """
        if self.alone is not None:
            self.alone()
        cores = self.cores
        if self.is_cuda or (work is not None and work < SPLIT_WORK):
            cores = 1
        crew = self._hire() if cores > 1 else None
        graphs: list[list[wp.Graph]] = []
        commands: list[int] = []
        for variant in range(variants):
            per_core: list[Any] = []
            for core in range(cores):
                stage = Stage(self, core, cores, crew)
                with self._on_stream(), wp.ScopedCapture(device=self.warp, stream=self.stream) as capture:
                    stage.begin()
                    build(stage, *([variant] if variants > 1 else []), *arguments)
                    stage.finish()
                per_core.append(capture.graph)
            graphs.append(per_core)
            if crew is not None:
                commands.append(len(crew.programs))
                crew.programs.append(per_core)
        return Program(self, cores, graphs, crew, (build, arguments), commands=commands)

    def port(self, count: int, dtype: Any) -> Port:
        """A zeroed array of `count` elements that host and kernels share."""
        array = wp.zeros(count, dtype=dtype, device=self.warp)
        staging = wp.zeros(count, dtype=dtype, device="cpu", pinned=True) if self.is_cuda else array
        return Port(array, staging, staging.numpy())

    def _on_stream(self) -> contextlib.AbstractContextManager[object]:
        return contextlib.nullcontext() if self.stream is None else wp.ScopedStream(self.stream)

    def synchronize(self) -> None:
        """Waits for what was launched here; not for what another device made by `split` does."""
        if self.is_cuda:
            wp.synchronize_stream(self.stream or self.warp)

    def close(self) -> None:
        """Sends the worker threads home. The device can be used again; programs recorded before cannot."""
        if self._ticks is not None:
            self._ticks.close()
        for other in self.others:
            other.close()
        if self._crew is not None:
            self._crew.finish()
            self._crew = None

    def _hire(self) -> _Crew:
        if self._crew is None:
            self.load([sys.modules[__name__]])
            self._crew = _Crew(self)
        return self._crew

    def load(self, modules: Sequence[types.ModuleType], progress: ProgressCallback | None = None) -> None:
        """Compiles the kernels of `modules` (or takes them from the cache), several at a time, before they are
        needed."""

        def compile_one(module: types.ModuleType) -> str:
            try:
                wp.load_module(module, device=self.warp)
            except OSError as error:
                raise _no_cache(error) from error
            return module.__name__.removeprefix("viscera.")

        if progress is not None:
            progress("compiling kernels", 0.0)
        with ThreadPoolExecutor(max_workers=max(1, min(len(modules), os.cpu_count() or 1))) as pool:
            jobs = [pool.submit(compile_one, module) for module in modules]
            for done, job in enumerate(as_completed(jobs), start=1):
                name = job.result()
                if progress is not None:
                    progress(f"compiled {name}", done / len(jobs))


def loaded_kernel_modules() -> list[str]:
    """Names of the modules whose kernels have been loaded in this process, Warp's own left out."""
    from warp._src.context import user_modules

    found = {module.name for module in user_modules.values() if module.execs}
    return sorted(name for name in found if name in sys.modules and not name.startswith("warp"))


def open_device(name: str | None = None, cores: int | None = None) -> Device:
    """The device called `name` (`cpu`, `cuda`, `cuda:1`), or the best one there is, with the reason for the choice.
    Names joined by `+` (`cuda:0+cuda:1`) are the first one, with lattices spread over all of them."""
    _start_warp()
    cores = _check_cores(cores)
    wanted = (name or os.environ.get("VISCERA_DEVICE") or "").strip()
    if "+" in wanted:
        first, *others = [open_device(one.strip(), cores) for one in wanted.split("+")]
        return replace(first, others=tuple(others), description=f"{first.description}, lattices over {wanted}")
    if not wanted:
        found = cuda_state()
        if found.usable:
            return _cuda("cuda:0", f"{found.reason}; the first one is taken")
        return _cpu(cores, found.reason)
    if wanted == "cpu":
        return _cpu(cores, "asked for by name")
    if wanted == "cuda" or wanted.startswith("cuda:"):
        found = cuda_state()
        if not found.usable:
            raise DeviceError(
                f"device {wanted!r} cannot be used: {found.reason}.", "Use --device cpu, or see `viscera doctor`."
            )
        alias = "cuda:0" if wanted == "cuda" else wanted
        if alias not in {str(d.alias) for d in wp.get_cuda_devices()}:
            have = ", ".join(str(d.alias) for d in wp.get_cuda_devices())
            raise DeviceError(f"device {wanted!r} is not there.", f"There are: cpu, {have}.")
        return _cuda(alias, "asked for by name")
    raise DeviceError(
        f"device {wanted!r} is not known.", "Allowed are cpu, cuda and cuda:N; `viscera doctor` lists them."
    )


@dataclass(frozen=True)
class CudaState:
    usable: bool
    reason: str
    driver: tuple[int, int] | None


def cuda_state() -> CudaState:
    """Whether CUDA can be used here, and why not."""
    _start_warp()
    devices = wp.get_cuda_devices()
    driver = None
    with contextlib.suppress(Exception):
        driver = wp.get_cuda_driver_version()
    if devices:
        return CudaState(True, f"{len(devices)} CUDA device(s) found", driver)
    if driver is not None and driver < CUDA_DRIVER_NEEDED:
        return CudaState(
            False,
            f"the NVIDIA driver supports CUDA {driver[0]}.{driver[1]}, but {'.'.join(map(str, CUDA_DRIVER_NEEDED))} "
            "is needed (driver R580 or newer): update the driver",
            driver,
        )
    return CudaState(False, "no NVIDIA driver or CUDA device was found", driver)


@cache
def _start_warp() -> None:
    """Starts Warp without its greeting on standard output, where `--json` must be alone, and without its native
    warning that there is no CUDA driver: most machines have none, and `viscera doctor` says so."""
    wp.config.log_level = wp.LOG_ERROR
    sys.stderr.flush()
    kept = os.dup(2)
    with tempfile.TemporaryFile() as said:
        os.dup2(said.fileno(), 2)
        try:
            wp.init()
        except OSError as error:
            raise _no_cache(error) from error
        finally:
            os.dup2(kept, 2)
            os.close(kept)
        said.seek(0)
        for line in said.read().decode(errors="replace").splitlines():
            if "Could not find or load the NVIDIA CUDA driver" not in line:
                print(line, file=sys.stderr)


def _no_cache(error: OSError) -> DeviceError:
    place = wp.config.kernel_cache_dir or os.environ.get("WARP_CACHE_PATH") or "of Warp"
    return DeviceError(
        f"the kernel cache {place} cannot be written: {error.strerror or error}.",
        "Make room, or point WARP_CACHE_PATH to a folder that you may write to.",
    )


def available_cores() -> int:
    """Cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _check_cores(cores: int | None) -> int:
    have = available_cores()
    if cores is None:
        return have
    # Cores wait for each other after every launch; more of them than there are wait for their turn as well.
    most = max(8, 2 * have)
    if not 1 <= cores <= most:
        raise DeviceError(f"cores = {cores} is not possible.", f"Allowed are 1 to {most}; this machine has {have}.")
    return cores


def _cpu(cores: int, reason: str) -> Device:
    return Device(
        "cpu", wp.get_device("cpu"), False, f"{processor_name()}, {cores} of {os.cpu_count()} cores", reason, cores
    )


def _cuda(alias: str, reason: str) -> Device:
    device = wp.get_device(alias)
    memory = device.total_memory / 2**30
    return Device(alias, device, True, f"{device.name}, {memory:.0f} GiB", reason, 1)


def processor_name() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as info:
        for line in info:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    import platform

    return platform.processor() or platform.machine()
