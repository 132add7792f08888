"""Decorators, launches, graphs, devices, meshes."""

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, TypeAlias, TypeVar
from typing import overload as _overload

from ._arrays import array
from ._dtypes import vec3

_T = TypeVar("_T")
_C = TypeVar("_C", bound=type)
_F = TypeVar("_F", bound=Callable[..., Any])
_Place: TypeAlias = Device | str | None

LOG_DEBUG: int
LOG_INFO: int
LOG_WARNING: int
LOG_ERROR: int

class Module:
    @property
    def name(self) -> str: ...

class Kernel:
    """Not called but launched."""

    key: str
    module: Module
    func: Callable[..., None]

@_overload
def kernel(f: Callable[..., None], /) -> Kernel: ...
@_overload
def kernel(
    *,
    enable_backward: bool | None = None,
    module: Module | str | None = None,
    launch_bounds: tuple[int, ...] | int | None = None,
) -> Callable[[Callable[..., None]], Kernel]: ...
def func(f: _F, /) -> _F: ...
def func_native(
    snippet: str, adj_snippet: str | None = None, replay_snippet: str | None = None
) -> Callable[[_F], _F]: ...
def struct(c: _C, /) -> _C: ...
def overload(kernel: Kernel, arg_types: dict[str, Any] | list[Any] | None = None) -> Kernel: ...
def constant(x: _T) -> _T: ...
def set_module_options(options: dict[str, Any], module: ModuleType | None = None) -> None: ...
def load_module(
    module: Module | ModuleType | str | None = None, device: _Place = None, recursive: bool = False
) -> None: ...
def compile_aot_module(
    module: Module | ModuleType | str,
    device: _Place | list[Device] | list[str] = None,
    arch: int | Iterable[int] | None = None,
    module_dir: str | PathLike[str] | None = None,
    use_ptx: bool | None = None,
    strip_hash: bool | None = None,
) -> list[Path]: ...
def init() -> None: ...
def launch(
    kernel: Kernel,
    dim: int | Sequence[int],
    inputs: Sequence[Any] = ...,
    outputs: Sequence[Any] = ...,
    *,
    device: _Place = None,
    stream: Stream | None = None,
    max_blocks: int = 0,
    block_dim: int | None = None,
) -> None: ...

class Device:
    alias: str
    name: str
    ordinal: int
    arch: int
    is_cpu: bool
    is_cuda: bool
    sm_count: int
    default_allocator: Any
    @property
    def total_memory(self) -> int: ...
    @property
    def free_memory(self) -> int: ...

def get_device(ident: _Place = None) -> Device: ...
def get_cuda_devices() -> list[Device]: ...
def get_cuda_driver_version() -> tuple[int, int] | None: ...
def get_cuda_toolkit_version() -> tuple[int, int] | None: ...
def get_mempool_used_mem_current(device: _Place = None) -> int: ...
def synchronize() -> None: ...
def synchronize_device(device: _Place = None) -> None: ...
def synchronize_stream(stream_or_device: Stream | _Place = None) -> None: ...

class Stream:
    def __init__(self, device: _Place = None, priority: int = 0) -> None: ...
    def record_event(self, event: Event | None = None) -> Event: ...

class Event:
    def __init__(self, device: _Place = None, enable_timing: bool = False) -> None: ...

def get_stream(device: _Place = None) -> Stream: ...
def get_event_elapsed_time(start_event: Event, end_event: Event, synchronize: bool = True) -> float: ...

class Graph:
    device: Device

class ScopedStream:
    def __init__(self, stream: Stream | None, sync_enter: bool = True, sync_exit: bool = False) -> None: ...
    def __enter__(self) -> Stream: ...
    def __exit__(self, *exc: object) -> None: ...

class ScopedCapture:
    graph: Graph
    def __init__(self, device: _Place = None, stream: Stream | None = None) -> None: ...
    def __enter__(self) -> ScopedCapture: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

def capture_launch(graph: Graph, stream: Stream | None = None) -> None: ...

class ScopedMemoryTracker:
    def __init__(
        self,
        name: str = "root",
        active: bool = True,
        print: bool = True,
        report_func: Callable[[str], None] | None = None,
    ) -> None: ...
    def __enter__(self) -> ScopedMemoryTracker: ...
    def clear(self) -> None: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None
    ) -> None: ...

class Mesh:
    def __init__(
        self,
        points: array[vec3],
        indices: array[int],
        velocities: array[vec3] | None = None,
        support_winding_number: bool = False,
        bvh_constructor: str | None = None,
    ) -> None: ...
    id: int
    points: array[vec3]
    indices: array[int]
    velocities: array[vec3] | None
    def refit(self) -> None: ...

class HashGrid:
    def __init__(self, dim_x: int, dim_y: int, dim_z: int, device: _Place = None) -> None: ...
    id: int
    def build(self, points: array[vec3], radius: float) -> None: ...
    def reserve(self, num_points: int) -> None: ...
