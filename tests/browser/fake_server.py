"""A stand-in for the viscera server: an analytically dented slab, and troubles on demand.

    python tests/browser/fake_server.py [--port 8000]

The page's own tests need states that a healthy server does not show (a crash, another protocol, slow compilation);
`POST /fake/NAME` makes them: starting, running, crash, ended, protocol, problem, drop, refuse, accept. It speaks
`messages.py`, so it cannot drift from the schema.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import socket
import time
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import Scope
from starlette.websockets import WebSocket, WebSocketDisconnect

from viscera.server import messages as m
from viscera.server.guard import SECURITY_HEADERS

STATIC = Path(__file__).parents[2] / "src" / "viscera" / "server" / "static"
SIZE = (0.096, 0.096, 0.032)
CELLS = (48, 48, 16)
RADIUS = 0.006
FRAME_TIME = 0.016


class _Page(StaticFiles):
    """With the headers of the real server: a page that breaks its own policy must break here too."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers.update(SECURITY_HEADERS)
        return response


def box_surface() -> tuple[np.ndarray, np.ndarray]:
    """Vertices on the faces of the slab (shared at its edges), and triangles, counter-clockwise from outside."""
    index: dict[tuple[int, int, int], int] = {}
    points: list[tuple[float, ...]] = []
    triangles: list[tuple[int, int, int]] = []

    def vertex(i: int, j: int, k: int) -> int:
        if (i, j, k) not in index:
            index[i, j, k] = len(points)
            points.append(tuple(SIZE[a] * (c / CELLS[a] - (0.5 if a < 2 else 0)) for a, c in enumerate((i, j, k))))
        return index[i, j, k]

    for axis in range(3):
        u, v = (axis + 1) % 3, (axis + 2) % 3
        for side in (0, CELLS[axis]):
            for a in range(CELLS[u]):
                for b in range(CELLS[v]):
                    ring = []
                    for da, db in ((0, 0), (1, 0), (1, 1), (0, 1)):
                        corner = [0, 0, 0]
                        corner[axis], corner[u], corner[v] = side, a + da, b + db
                        ring.append(vertex(*corner))
                    if side == 0:
                        ring.reverse()
                    triangles += [(ring[0], ring[1], ring[2]), (ring[0], ring[2], ring[3])]
    return np.array(points, np.float64), np.array(triangles, np.uint32)


@dataclass
class FakeWorld:
    rest: np.ndarray
    triangles: np.ndarray
    tick: int = 0
    paused: bool = False
    speed: float = 1.0
    session: int = 1
    state: str = "running"
    message: str = ""
    progress: float = 1.0
    protocol: int = m.PROTOCOL
    tool: m.Tool | None = None
    applied: dict[int, int] = field(default_factory=dict)
    stiffness: float = 5.0
    positions: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    clients: set[WebSocket] = field(default_factory=set)
    next_client: int = 1
    refuses: bool = False
    force: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def advance(self) -> None:
        goal = self.rest.copy()
        # Uneven, like a real organ.
        x, y, z = self.rest.T
        goal[:, 2] += (z / SIZE[2]) * (0.0016 * np.sin(60 * x + 1) * np.cos(48 * y) + 0.0009 * np.sin(130 * y + 90 * x))
        self.force = (0.0, 0.0, 0.0)
        if self.tool is not None and self.tool.active:
            tip = np.array(self.tool.position)
            depth = SIZE[2] - (tip[2] - RADIUS)
            away = np.hypot(x - tip[0], y - tip[1])
            if depth > 0 and abs(tip[0]) < 0.05 and abs(tip[1]) < 0.05:
                width = 0.5 * RADIUS + 1.3 * np.sqrt(RADIUS * depth)
                goal[:, 2] -= depth * (z / SIZE[2]) ** 1.5 / (1 + (away / width) ** 2) ** 1.5
                inside = np.linalg.norm(goal - tip, axis=1) < RADIUS
                goal[inside] = tip + (goal[inside] - tip) / np.linalg.norm(goal[inside] - tip, axis=1)[:, None] * RADIUS
                self.force = (0.0, 0.0, float(140 * self.stiffness * depth**1.5))
        self.positions = goal if self.positions.shape != goal.shape else self.positions + 0.45 * (goal - self.positions)
        self.tick += 16


def scene(world: FakeWorld) -> m.SceneDescription:
    surface = m.SurfaceInfo(
        name="block", material="tissue", triangles=world.triangles.tobytes(), array="tissue",
        vertex_count=len(world.rest),
    )  # fmt: skip
    probe = m.InstrumentInfo(name="probe", shape="sphere", radius=RADIUS, length=0.0, home=(0.0, 0.0, 0.08))
    parameters = [
        m.ParameterInfo(name="stiffness", label="Tissue stiffness", unit="kPa", minimum=1, maximum=20, default=5,
                        help="How hard the tissue is. Healthy liver is about 5 kPa, a fibrotic one above 12."),
        m.ParameterInfo(name="damping", label="Damping", unit="1/s", minimum=0, maximum=50, default=8,
                        help="How fast the tissue comes to rest after it was moved."),
        m.ParameterInfo(name="gravity", label="Gravity", unit="m/s²", minimum=0, maximum=20, default=9.81,
                        help="Pulls the tissue down on the table."),
    ]  # fmt: skip
    return m.SceneDescription(
        scenario="palpation", title="Palpation", summary="Feel a block of soft tissue with a round probe.",
        instructions="Move the probe over the tissue.\nPress and feel how the force grows with depth.\n"
        "Change the stiffness and press again.",
        seed=0, session=world.session, device="cpu (2 cores)", bounds=((-0.048, -0.048, 0.0), (0.048, 0.048, 0.032)),
        camera=m.CameraInfo(
            position=(0.0, -0.155, 0.135), target=(0.0, 0.0, 0.016), up=(0.0, 0.0, 1.0), field_of_view=42,
        ),
        surfaces=[surface], instruments=[probe], parameters=parameters,
    )  # fmt: skip


def frame(world: FakeWorld, number: int) -> m.Frame:
    low, high = world.positions.min(0), world.positions.max(0)
    data = np.round((world.positions - low) / (high - low) * 65535).astype("<u2").tobytes()
    box = (tuple(low.tolist()), tuple(high.tolist()))
    array = m.ArrayData(name="tissue", count=len(world.positions), box=box, data=data)
    tool = world.tool
    info = m.ToolInfo(
        tool=0, active=tool is not None and tool.active, position=tool.position if tool else (0.0, 0.0, 0.08),
        orientation=tool.orientation if tool else (0.0, 0.0, 0.0, 1.0), force=world.force, torque=(0.0, 0.0, 0.0),
    )  # fmt: skip
    stages = [
        m.StageInfo(name="springs", ms=4.21),
        m.StageInfo(name="contact", ms=0.83),
        m.StageInfo(name="skin", ms=0.52),
    ]
    return m.Frame(
        number=number, session=world.session, tick=world.tick, time=world.tick / 1000, real_time_factor=world.speed,
        arrays=[array], tools=[info], parameters={"stiffness": world.stiffness, "damping": 8.0, "gravity": 9.81},
        stages=stages, applied=list(world.applied.items()),
    )  # fmt: skip


def state(world: FakeWorld) -> m.SessionState:
    name = "paused" if world.paused and world.state == "running" else world.state
    return m.SessionState(state=name, message=world.message, progress=world.progress, speed=world.speed,  # pyright: ignore
                          viewers=len(world.clients), notice="")  # fmt: skip


def make_app(world: FakeWorld) -> Starlette:  # noqa: PLR0915 - the routes share what they close over
    encoder = msgspec.msgpack.Encoder()
    decoder = msgspec.msgpack.Decoder(m.ClientMessage)

    async def tell_all(message: object) -> None:
        for client in list(world.clients):
            with contextlib.suppress(Exception):
                await client.send_bytes(encoder.encode(message))

    async def run(_app: Starlette) -> None:
        while True:
            started = time.perf_counter()
            if world.state == "running" and not world.paused:
                world.advance()
            await asyncio.sleep(max(0.0, FRAME_TIME / world.speed - (time.perf_counter() - started)))

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette):
        task = asyncio.create_task(run(app))
        yield
        task.cancel()

    async def act(message: m.ClientMessage, client: int) -> None:
        if isinstance(message, m.Tool):
            world.tool = message
            world.applied[client] = message.sequence
        elif isinstance(message, m.SetParameter):
            world.stiffness = message.value if message.name == "stiffness" else world.stiffness
        elif isinstance(message, m.Control):
            world.paused = {"pause": True, "resume": False}.get(message.action, world.paused)
            if message.action == "speed":
                world.speed = message.value or 1.0
            if message.action == "step":
                world.advance()
            await tell_all(state(world))
        elif isinstance(message, m.Restart | m.Choose):
            world.state, world.session = "running", world.session + 1
            await tell_all(scene(world))
            await tell_all(state(world))

    async def websocket(line: WebSocket) -> None:
        if world.refuses:
            await line.close()
            return
        await line.accept()
        client, world.next_client = world.next_client, world.next_client + 1
        in_flight = 0
        last = -1

        async def send_frames() -> None:
            nonlocal in_flight, last
            number = 0
            while True:
                if world.positions.size and world.tick != last and in_flight < 2:
                    last, number, in_flight = world.tick, number + 1, in_flight + 1
                    await line.send_bytes(encoder.encode(frame(world, number)))
                await asyncio.sleep(0.004)

        task: asyncio.Task[None] | None = None
        try:
            while True:
                message = decoder.decode(await line.receive_bytes())
                if isinstance(message, m.Hello):
                    welcome = m.Welcome(
                        protocol=world.protocol, version="0.1.0", client=client, device="cpu (2 cores)",
                        scenarios=[m.ScenarioInfo(name="palpation", title="Palpation",
                                                  summary="Feel a block of soft tissue with a round probe.")],
                    )  # fmt: skip
                    await line.send_bytes(encoder.encode(welcome))
                    world.clients.add(line)
                    await line.send_bytes(encoder.encode(scene(world)))
                    await tell_all(state(world))
                    task = asyncio.create_task(send_frames())
                elif isinstance(message, m.FrameAck):
                    in_flight -= 1
                elif isinstance(message, m.Ping):
                    await line.send_bytes(encoder.encode(m.Pong(client_time=message.client_time)))
                else:
                    await act(message, client)
        except (WebSocketDisconnect, RuntimeError, KeyError):
            pass
        finally:
            if task is not None:
                task.cancel()
            world.clients.discard(line)

    async def trouble(request: Request) -> JSONResponse:
        name = request.path_params["name"]
        if name == "starting":
            world.state, world.message, world.progress = "starting", "Compiling the spring kernels (3 of 7)", 0.43
        elif name == "running":
            world.state, world.message = "running", ""
        elif name == "crash":
            world.state, world.message = (
                "crashed",
                "The session process was killed (signal 9). Nothing older than a second is lost.",
            )
        elif name == "ended":
            world.state, world.message = "ended", ""
        elif name == "protocol":
            world.protocol = m.PROTOCOL + 1
        elif name == "problem":
            await tell_all(
                m.Problem(
                    code="input",
                    message="stiffness is 900 kPa; 1 to 20 is allowed.",
                    hint="Choose a value in the range.",
                )
            )
        elif name in ("refuse", "accept"):
            world.refuses = name == "refuse"
        elif name == "drop":
            for client in list(world.clients):
                await client.close()
        await tell_all(state(world))
        return JSONResponse({"done": name})

    routes = [
        WebSocketRoute("/ws", websocket),
        Route("/fake/{name}", trouble, methods=["POST"]),
        Mount("/", _Page(directory=STATIC, html=True)),
    ]
    return Starlette(routes=routes, lifespan=lifespan)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", options.port))
    print(f"the stand-in is at http://127.0.0.1:{listener.getsockname()[1]}/", flush=True)
    config = uvicorn.Config(make_app(FakeWorld(*box_surface())), log_level="warning", ws_per_message_deflate=False)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
