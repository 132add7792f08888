"""The web server: the built page, the socket, two small answers for programs, and `serve`, which runs it all.

/               the page (built by `make web` into `static/`)
/ws             messages of `messages.py`, MessagePack, binary
/api/snapshot   the newest state with every bit, MessagePack (`ExactSnapshot`)
/api/health     what is running, JSON
/api/recordings what was recorded, JSON
/api/film       how far the film of a recording is, JSON, or the film itself
/webcam/…       the landmark model for gaze by webcam, where it is installed
/training/…     who enters, trainees, reports of one or of the cohort, exports
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import errno
import resource
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import Scope
from starlette.websockets import WebSocket

from viscera.errors import InputError, SessionError
from viscera.haptics.link import Link
from viscera.haptics.process import HapticProcess, HapticSpec
from viscera.server import messages as m
from viscera.server.answers import Answers, not_built
from viscera.server.classroom import Classroom
from viscera.server.client import HARD_LIMIT, POLICY, REASON_BYTES, TRY_LATER, Client
from viscera.server.doors import MAX_CONNECTIONS, Doors, protocols
from viscera.server.guard import Guard, Policy, check_public, choose_token, is_loopback
from viscera.server.hub import MAX_CLIENTS, Hub
from viscera.server.options import ServerOptions
from viscera.server.rooms import Rooms
from viscera.server.training_pages import TrainingPages
from viscera.server.wishes import Refusal
from viscera.session.process import SessionSpec

STATIC = Path(__file__).parent / "static"
LANDMARKS = Path(__file__).parent / "webcam"
"""The landmark model for gaze by webcam, where `python hatch_build.py webcam` put it."""

DESCRIPTORS = MAX_CONNECTIONS + 128
"""Files that may be open at once: a connection each, sessions and the page."""


class _Page(StaticFiles):
    """Files of the built page; those with a hash in their name never change."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        lasting = path.startswith("assets/") and response.status_code == 200
        response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if lasting else "no-cache"
        return response


def make_app(hub: Hub, policy: Policy, doors: Doors, static: Path = STATIC) -> Starlette:
    """The ASGI application; starting it starts the session."""
    rooms = Rooms(hub)

    @contextlib.asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        asyncio.get_running_loop().set_exception_handler(doors.complain)
        await rooms.start()
        yield
        await rooms.stop()
        hub.classroom.close()

    async def talk(websocket: WebSocket) -> None:
        await websocket.accept()
        given = websocket.query_params
        try:
            entered = await rooms.find(given.get("room", ""), given.get("watch", ""))
        except Refusal as refusal:
            await websocket.close(POLICY, refusal.problem.message[:REASON_BYTES])
            return
        number = entered.admit()
        if number is None:
            await websocket.close(TRY_LATER, f"{MAX_CLIENTS} browsers are connected; no more can be.")
            return
        await Client(number, websocket, entered).run()

    built = (static / "index.html").is_file()
    page = Mount("/", _Page(directory=static, html=True)) if built else Route("/", not_built)
    webcam = Mount("/webcam", StaticFiles(directory=LANDMARKS, check_dir=False))
    routes = [WebSocketRoute("/ws", talk), *Answers(hub).routes(), *TrainingPages(hub).routes(), webcam, page]
    return Starlette(routes=routes, lifespan=life, middleware=[Middleware(Guard, policy=policy)])


class Server:
    """A server that is bound to its port. `run` serves until `stop` (from any thread) or Ctrl-C."""

    def __init__(
        self,
        spec: SessionSpec,
        scenarios: Sequence[m.ScenarioInfo],
        options: ServerOptions | None = None,
        *,
        own: str | None = None,
        static: Path = STATIC,
    ) -> None:
        """`own` is what people call `spec.scenario`, where that is a file of theirs."""
        options = options or ServerOptions()
        self.public = check_public(options.public) if options.public else ""
        self.host = host = options.host
        self.token = choose_token(host, options.token, self.public)
        self._socket = _bind(host, options.port)
        self.port = int(self._socket.getsockname()[1])
        trainer = "" if options.trainer_token is None else choose_token(host, options.trainer_token)
        alone = is_loopback(host) and not self.public
        classroom = Classroom(
            _open_store(options.database), trainer, alone, self.port, self.public.startswith("https:")
        )
        self.hub = Hub(spec, list(scenarios), own, keep_running=options.keep_running, classroom=classroom)
        self._ready = threading.Event()
        self._on_ready: Callable[[str], None] | None = None
        doors = Doors()
        config = uvicorn.Config(
            make_app(self.hub, Policy(host, self.port, self.token, self.public), doors, static),
            log_level="error",  # what anybody can cause from outside would fill the log
            access_log=False,
            **protocols(doors),
            ws_max_size=HARD_LIMIT,
            ws_per_message_deflate=False,
            backlog=MAX_CONNECTIONS,
            timeout_graceful_shutdown=2,
            server_header=False,
        )
        self._uvicorn = _Uvicorn(config, self._started)

    @property
    def url(self) -> str:
        """Where to point a browser, with the token where one is needed."""
        query = f"?token={quote(self.token)}" if self.token else ""
        if self.public:
            return f"{self.public}/{query}"
        shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(self.host, self.host)
        name = f"[{shown}]" if ":" in shown else shown
        return f"http://{name}:{self.port}/{query}"

    def run(self, on_ready: Callable[[str], None] | None = None) -> None:
        self._on_ready = on_ready
        _allow_descriptors(DESCRIPTORS)
        with contextlib.suppress(KeyboardInterrupt):
            self._uvicorn.run(sockets=[self._socket])

    def stop(self) -> None:
        self._uvicorn.should_exit = True

    def wait_until_ready(self, seconds: float) -> bool:
        return self._ready.wait(seconds)

    def _started(self) -> None:
        self._ready.set()
        if self._on_ready is not None:
            self._on_ready(self.url)


def _open_store(database: str | None) -> Any:
    if database is None:
        return None
    from viscera.training.database import open_database
    from viscera.training.store import Store

    return Store(open_database(database))


class _Uvicorn(uvicorn.Server):
    """Says when it listens."""

    def __init__(self, config: uvicorn.Config, on_started: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_started = on_started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._on_started()


def _allow_descriptors(count: int) -> None:
    """As many files as that may be open, where the system lets us say so."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _bind(host: str, port: int) -> socket.socket:
    if not 0 <= port <= 65535:
        raise InputError(f"port = {port} is not possible.", "Allowed is 1 to 65535, or 0 for any free port.")
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise InputError(f"host = {host!r} is not an address.", "Use 127.0.0.1, or 0.0.0.0 for all.") from error
    found = socket.socket(family, kind, protocol)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(MAX_CONNECTIONS)
    except OSError as error:
        found.close()
        raise _cannot_bind(host, port, error) from error
    return found


def _cannot_bind(host: str, port: int, error: OSError) -> SessionError:
    if error.errno == errno.EADDRINUSE:
        return SessionError(
            f"port {port} on {host} is in use.",
            "Is viscera running already? Stop it, or use another --port; --port 0 takes any free one.",
        )
    if error.errno == errno.EACCES:
        return SessionError(f"port {port} may not be used.", "Ports below 1024 belong to the system; use a higher one.")
    return SessionError(f"cannot listen on {host}, port {port}: {error.strerror}.", "Use an address of this machine.")


def serve(
    spec: SessionSpec,
    options: ServerOptions | None = None,
    *,
    open_browser: bool = False,
    on_ready: Callable[[str], None] | None = None,
    haptics: HapticSpec | None = None,
) -> None:
    """Serves the world of `spec` until Ctrl-C. Raises `VisceraError` when it cannot begin.

    `on_ready` is called with the address once it answers, instead of printing it; `haptics` names the devices that hold
    the tools.
    """
    from viscera.scenarios import catalogue, find_scenario

    first = find_scenario(spec.scenario)
    entries = catalogue() | {first.name: first}
    scenarios = [m.ScenarioInfo(name=one.name, title=one.title, summary=one.summary) for one in entries.values()]

    def ready(url: str) -> None:
        (on_ready or _print_address)(url)
        if open_browser:
            threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()

    with contextlib.ExitStack() as stack:
        if haptics is not None:
            spec = dataclasses.replace(spec, haptics=stack.enter_context(feel(haptics)))
        Server(spec, scenarios, options, own=first.name).run(ready)


@contextlib.contextmanager
def feel(spec: HapticSpec) -> Iterator[Link | None]:
    """The haptic process and the way to it; None, and a sentence on the terminal, where none of its devices is."""
    # Uvicorn raises the signal that ended it once more; devices are to be closed before that ends everything.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    with HapticProcess(spec) as process:
        for sentence in process.sentences:
            print(sentence, file=sys.stderr, flush=True)
        for name in process.names:
            print(f"haptics: {name} is ready", file=sys.stderr, flush=True)
        yield process.link if process.names else None


def _print_address(url: str) -> None:
    print(f"viscera is at {url}", flush=True)
    host = url.split("//")[1].split("/")[0].rsplit(":", 1)[0]
    if not is_loopback(host.strip("[]")):
        open_line = "" if url.startswith("https:") else " The connection is not encrypted."
        print(f"Whoever has this address, token included, can use it.{open_line}", flush=True)
