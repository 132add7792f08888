"""A stand-in for the viscera server: an analytically dented slab, and troubles on demand.

    python tests/browser/fake_server.py [--port 8000]

The page's own tests need states that a healthy server does not show (a crash, another protocol, slow compilation);
`POST /fake/NAME` makes them: starting, running, crash, stall, ended, protocol, problem, drop, refuse, accept. `paint`,
`char`, `film` and `clean` change what lies on the slab (`fake_skin.py`); `two_hands`, `one_hand` and `no_hands` say
which haptic devices there are. It speaks `messages.py`, so it cannot drift from the schema.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import uvicorn
from fake_skin import FORCEPS, HOME, HOOK, MEASURES, PARTICLES, RINSE, TABLE, TEXTURES, FakeSkin, corner_places, drops
from numpy.typing import ArrayLike
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Mount, Route, WebSocketRoute
from starlette.staticfiles import StaticFiles
from starlette.types import Scope
from starlette.websockets import WebSocket, WebSocketDisconnect

from viscera.inputs import ToolInput, Vector3
from viscera.instruments import PRESSED, kit
from viscera.server import messages as m
from viscera.server.encode import quantise, raw, scene_message
from viscera.server.guard import SECURITY_HEADERS
from viscera.server.tiles import TextureStore
from viscera.session.wire import pack
from viscera.view import Camera, Frame, HapticState, Parameter, Scene, Surface, ToolState

STATIC = Path(__file__).parents[2] / "src" / "viscera" / "server" / "static"
SIZE = (0.096, 0.096, 0.032)
CELLS = (48, 48, 16)
RADIUS = 0.006
FRAME_TIME = 0.016
State = Literal["starting", "running", "stalled", "crashed", "ended"]
TROUBLES: dict[str, tuple[State, str, float]] = {
    "starting": ("starting", "Compiling the spring kernels (3 of 7)", 0.43),
    "running": ("running", "", 1.0),
    "crash": ("crashed", "The session process was killed (signal 9). At most a second is lost.", 1.0),
    "stall": ("stalled", "The session has not answered for 3 s; it stands at 4.2 s.", 1.0),
    "ended": ("ended", "", 1.0),
}


@dataclass
class Hand:
    """A haptic device that holds the tool of the same number at `tip` [m], where the world pushes with `force` [N]."""

    device: str
    tip: Vector3
    force: Vector3
    mode: Literal["running", "late", "absent"] = "running"
    gain: float = 1.0


LEFT_HAND = Hand("Left Touch", (-0.022, -0.012, 0.036), (0.0, 0.0, 0.3))
LATE_HAND = Hand("Right Touch", (0.016, -0.012, 0.034), (0.48, 0.0, 0.64), "late", 0.5)
AWAY = Hand("Right Touch", LATE_HAND.tip, (0.0, 0.0, 0.0), "absent", 0.0)
HANDS = {"two_hands": [LEFT_HAND, LATE_HAND], "one_hand": [LEFT_HAND, AWAY], "no_hands": []}
"""What `POST /fake/NAME` puts into hands."""


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
    return np.array(points, np.float64), np.array(triangles, np.int32)


def hills(x: ArrayLike, y: ArrayLike) -> np.ndarray:
    """How much higher than the slab its upper side is there [m]: uneven, like a real organ."""
    x, y = np.asarray(x), np.asarray(y)
    return 0.0016 * np.sin(60 * x + 1) * np.cos(48 * y) + 0.0009 * np.sin(130 * y + 90 * x)


@dataclass
class FakeWorld:
    rest: np.ndarray
    triangles: np.ndarray
    tick: int = 0
    paused: bool = False
    speed: float = 1.0
    session: int = 1
    state: State = "running"
    message: str = ""
    progress: float = 1.0
    protocol: int = m.PROTOCOL
    tools: dict[int, ToolInput] = field(default_factory=dict)
    hands: list[Hand] = field(default_factory=list)
    skin: FakeSkin = field(default_factory=FakeSkin)
    cools: bool = False
    painted: int = 0
    """Grows when the skin changes."""
    applied: dict[int, int] = field(default_factory=dict)
    stiffness: float = 5.0
    positions: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))
    refuses: bool = False
    force: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def advance(self) -> None:
        goal = self.rest.copy()
        x, y, z = self.rest.T
        goal[:, 2] += (z / SIZE[2]) * hills(x, y)
        self.force = (0.0, 0.0, 0.0)
        self.burn()
        tool = self.tools.get(0)
        if tool is not None and tool.active:
            tip = np.array(tool.position)
            depth = SIZE[2] + float(hills(tip[0], tip[1])) - (tip[2] - RADIUS)
            away = np.hypot(x - tip[0], y - tip[1])
            if depth > 0 and abs(tip[0]) < 0.05 and abs(tip[1]) < 0.05:
                width = 0.5 * RADIUS + 1.3 * np.sqrt(RADIUS * depth)
                goal[:, 2] -= depth * (z / SIZE[2]) ** 1.5 / (1 + (away / width) ** 2) ** 1.5
                inside = np.linalg.norm(goal - tip, axis=1) < RADIUS
                goal[inside] = tip + (goal[inside] - tip) / np.linalg.norm(goal[inside] - tip, axis=1)[:, None] * RADIUS
                self.force = (0.0, 0.0, float(140 * self.stiffness * depth**1.5))
        self.positions = goal if self.positions.shape != goal.shape else self.positions + 0.45 * (goal - self.positions)
        self.tick += 16

    def burn(self) -> None:
        """Hook and forceps heat what they touch while their pedal is down."""
        for tool in self.tools.values():
            if tool.tool in (1, 2) and tool.active and tool.grip >= PRESSED:
                self.skin.heat(tool.position[0], tool.position[1], 0.12)
                self.painted += 1
                self.cools = True
        # What was painted on demand stays hot, however long a busy machine takes to look at it.
        if self.cools and self.skin.burn[0].max() > 38:
            self.skin.cool()
            self.painted += 1


def scene(world: FakeWorld) -> m.SceneDescription:
    uv = corner_places(world.rest, world.triangles, SIZE[2])
    surface = Surface("block", "tissue", world.triangles, "tissue", len(world.rest), uv=uv)
    parameters = (
        Parameter("stiffness", "Tissue stiffness", "kPa", 1, 20, 5,
                  "How hard the tissue is. Healthy liver is about 5 kPa, a fibrotic one above 12."),
        Parameter("damping", "Damping", "1/s", 0, 50, 8, "How fast the tissue comes to rest after it was moved."),
        Parameter("gravity", "Gravity", "m/s²", 0, 20, 9.81, "Pulls the tissue down on the table."),
    )  # fmt: skip
    shown = Scene(
        scenario="palpation", title="Palpation", summary="Feel a block of soft tissue with a round probe.",
        instructions="Move the probe over the tissue.\nPress and feel how the force grows with depth.\n"
        "Change the stiffness and press again.",
        seed=0, bounds=((-0.048, -0.048, 0.0), (0.048, 0.048, 0.032)),
        camera=Camera((0.0, -0.155, 0.135), (0.0, 0.0, 0.016), (0.0, 0.0, 1.0), 42),
        surfaces=(surface,), instruments=(kit.probe(RADIUS).at(HOME), HOOK, FORCEPS, RINSE), parameters=parameters,
        textures=TEXTURES, particles=PARTICLES, measures=MEASURES, tables=(TABLE,),
    )  # fmt: skip
    return scene_message(pack(shown), world.session, "cpu (2 cores)")


def packed(name: str, points: np.ndarray, shades: bytes = b"") -> m.ArrayData:
    box, data = quantise(points.astype(np.float32))
    return m.ArrayData(name=name, count=len(points), box=box, data=data, shades=shades)


def tool_state(world: FakeWorld, number: int) -> ToolState:
    if number < len(world.hands):  # a device's tool is no pointer's
        hand = world.hands[number]
        return ToolState(number, position=hand.tip, active=hand.mode != "absent", force=hand.force)
    tool = world.tools.get(number)
    force = world.force if number == 0 else (0.0, 0.0, 0.0)
    if tool is None:
        return ToolState(number, position=HOME, force=force)
    return ToolState(
        number, position=tool.position, orientation=tool.orientation, grip=tool.grip, active=tool.active, force=force
    )


def haptic_state(number: int, hand: Hand) -> HapticState:
    x, y, z = hand.force
    force = (hand.gain * x, hand.gain * y, hand.gain * z)
    return HapticState(number, hand.device, hand.mode != "absent", force, hand.mode, hand.gain)


def frame(world: FakeWorld, number: int) -> m.FrameMessage:
    fountain = drops(world.tick)
    shades = np.round(fountain[:, 3] * 255).astype(np.uint8).tobytes()
    state = Frame(
        tick=world.tick, time=world.tick / 1000, real_time_factor=world.speed,
        tools=[tool_state(world, k) for k in range(4)],
        parameters={"stiffness": world.stiffness, "damping": 8.0, "gravity": 9.81}, counts={"drops": len(fountain)},
        stages={"springs": 4.21, "contact": 0.83, "skin": 0.52}, applied=list(world.applied.items()),
        measures=world.skin.measured, tables={TABLE.name: tuple(map(tuple, world.skin.rows))},
        haptics=[haptic_state(k, hand) for k, hand in enumerate(world.hands)],
    )  # fmt: skip
    arrays = [packed("tissue", world.positions), packed("drops", fountain[:, :3], shades)]
    return m.FrameMessage(number=number, session=world.session, state=raw(pack(state)), arrays=arrays)


def session_state(world: FakeWorld, viewers: int) -> m.SessionState:
    return m.SessionState(
        state="paused" if world.paused and world.state == "running" else world.state,
        message=world.message,
        progress=world.progress,
        speed=world.speed,
        viewers=viewers,
        notice="",
    )


def welcome(world: FakeWorld, client: int) -> m.Welcome:
    palpation = m.ScenarioInfo(name="palpation", title="Palpation", summary="Feel a block of soft tissue with a probe.")
    return m.Welcome(protocol=world.protocol, version="0", client=client, device="cpu", scenarios=[palpation])


class FakeServer:
    """One world, and the browsers that watch it."""

    def __init__(self) -> None:
        self.world = FakeWorld(*box_surface())
        self.browsers: set[WebSocket] = set()
        self.textures = TextureStore(self.world.session)
        self.shown = -1
        self.next_client = 1
        self.encode = msgspec.msgpack.Encoder().encode
        self.decode = msgspec.msgpack.Decoder(m.ClientMessage).decode

    def app(self) -> Starlette:
        routes = [
            WebSocketRoute("/ws", self.talk),
            Route("/fake/{name}", self.make_trouble, methods=["POST"]),
            Mount("/", _Page(directory=STATIC, html=True)),
        ]
        return Starlette(routes=routes, lifespan=self.life)

    @contextlib.asynccontextmanager
    async def life(self, _app: Starlette) -> AsyncIterator[None]:
        task = asyncio.create_task(self.run())
        yield
        task.cancel()

    async def run(self) -> None:
        while True:
            started = time.perf_counter()
            if self.world.state == "running" and not self.world.paused:
                self.world.advance()
            await asyncio.sleep(max(0.0, FRAME_TIME / self.world.speed - (time.perf_counter() - started)))

    async def tell_all(self, *told: object) -> None:
        for browser in list(self.browsers):
            with contextlib.suppress(Exception):
                for message in told:
                    await browser.send_bytes(self.encode(message))

    def state(self) -> m.SessionState:
        return session_state(self.world, len(self.browsers))

    async def talk(self, line: WebSocket) -> None:
        if self.world.refuses:
            await line.close()
            return
        await line.accept()
        client, self.next_client = self.next_client, self.next_client + 1
        unanswered = [0]
        frames: asyncio.Task[None] | None = None
        try:
            while True:
                message = self.decode(await line.receive_bytes())
                if isinstance(message, m.Hello):
                    await line.send_bytes(self.encode(welcome(self.world, client)))
                    self.browsers.add(line)
                    await line.send_bytes(self.encode(scene(self.world)))
                    await self.tell_all(self.state())
                    frames = asyncio.create_task(self.send_frames(line, unanswered))
                elif isinstance(message, m.FrameAck):
                    unanswered[0] -= 1
                elif isinstance(message, m.Ping):
                    await line.send_bytes(self.encode(m.Pong(client_time=message.client_time)))
                else:
                    await self.act(message, client)
        except (WebSocketDisconnect, RuntimeError, KeyError):
            pass  # the browser has left
        finally:
            if frames is not None:
                frames.cancel()
            self.browsers.discard(line)
            if not self.browsers:
                self.world.tools.clear()

    async def send_frames(self, line: WebSocket, unanswered: list[int]) -> None:
        number, last, sent = 0, -1, 0
        while True:
            if self.world.positions.size and self.world.tick != last and unanswered[0] < 2:
                last, number = self.world.tick, number + 1
                unanswered[0] += 1
                await line.send_bytes(self.encode(frame(self.world, number)))
                if tiles := self.tiles().since(sent):
                    await line.send_bytes(tiles)
                sent = self.shown
            await asyncio.sleep(0.004)

    def tiles(self) -> TextureStore:
        """What lies on the slab now. Paintings are counted from 1, as frames are."""
        if self.shown != self.world.painted + 1:
            self.shown = self.world.painted + 1
            self.textures.update(self.shown, dict(self.world.skin.pixels()))
        return self.textures

    async def act(self, message: m.ClientMessage, client: int) -> None:
        world = self.world
        if isinstance(message, m.Tool):
            world.tools[message.input.tool] = message.input
            world.applied[client] = message.sequence
        elif isinstance(message, m.SetParameter):
            world.stiffness = message.value if message.name == "stiffness" else world.stiffness
        elif isinstance(message, m.SetTable):
            if refusal := world.skin.refusal(message.rows):
                await self.tell_all(m.Problem(code="input", message=refusal, hint="Change the level."))
            else:
                world.skin.rows = message.rows
        elif isinstance(message, m.Control):
            world.paused = {"pause": True, "resume": False}.get(message.action, world.paused)
            if message.action == "speed":
                world.speed = message.value or 1.0
            if message.action == "step":
                world.advance()
            await self.tell_all(self.state())
        elif isinstance(message, m.Restart | m.Choose):
            world.state, world.session = "running", world.session + 1
            self.textures, self.shown = TextureStore(world.session), -1
            await self.tell_all(scene(world), self.state())

    async def make_trouble(self, request: Request) -> JSONResponse:
        world, name = self.world, request.path_params["name"]
        if name in TROUBLES:
            world.state, world.message, world.progress = TROUBLES[name]
        elif name in HANDS:
            world.hands = HANDS[name]
        elif name in ("paint", "clean", "char", "film"):
            self.paint(name)
        elif name == "protocol":
            world.protocol = m.PROTOCOL + 1
        elif name in ("refuse", "accept"):
            world.refuses = name == "refuse"
        elif name == "problem":
            hint = "Choose a value in the range."
            await self.tell_all(m.Problem(code="input", message="stiffness is 900 kPa; 1 to 20 is allowed.", hint=hint))
        elif name == "drop":
            for browser in list(self.browsers):
                await browser.close()
        await self.tell_all(self.state())
        return JSONResponse({"done": name})

    def paint(self, name: str) -> None:
        skin = self.world.skin
        skin.show() if name == "paint" else skin.clean()
        if name == "char":
            for _ in range(60):
                skin.heat(0.012, -0.008, 0.25)
        if name == "film":
            skin.pour(0.012, -0.008, 0.008, 0.0006, (1.0, 0.0, 0.0))
        self.world.cools = False
        self.world.painted += 1


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    listener = socket.create_server(("127.0.0.1", options.port))
    print(f"the stand-in is at http://127.0.0.1:{listener.getsockname()[1]}/", flush=True)
    config = uvicorn.Config(FakeServer().app(), log_level="warning", ws_per_message_deflate=False)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
