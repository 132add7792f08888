"""Pictures of a world without a browser: colour, depth and what each pixel shows, on `cpu` and `cuda`.

A `Renderer` is made for a scene and a size of picture. Worlds write what they show straight into its arrays; `render`
draws them from a camera. Nothing is allocated while it draws but the pictures that it gives.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device, Program, Stage
from viscera.errors import InputError
from viscera.imaging.lens import Lens, launch_on_rows, make_lens_array, write_lens
from viscera.render import bars as b
from viscera.render.flesh import STAGES, Paint
from viscera.render.light import Rods, Surroundings
from viscera.render.looks import (
    EARTH_GROUND,
    FLESH_GROUND,
    FLUIDS,
    LARGE_BALLS,
    SMALL_BALLS,
    STAGES_TABLE,
    burn_strip,
)  # fmt: skip
from viscera.render.meshes import Meshes
from viscera.render.raster import BallGroup, clear_keys, draw_balls, draw_bars, draw_triangles
from viscera.render.shading import (
    BallSet,
    BarLook,
    BarSet,
    see_vertices,
    shade_background,
    shade_pixels,
    tell_parts,
)
from viscera.render.shading import Shown as AllShown
from viscera.render.volumes import Volumes
from viscera.view import AnyArray, Camera, Frame, Particles, Scene, Shown, Snapshot

BRIGHTNESS = 2.1
"""Light of a white surface at the distance looked at; the exposure follows it, so coming nearer does not burn the
picture. Tuned for appearance."""
MOST_SHADES = 8
"""Bars that cast a shadow."""
NEAR = 0.004
"""What is nearer than this is not drawn [m]."""


@dataclass(frozen=True)
class Rendered:
    """One picture; the first row is the top."""

    colour: NDArray[np.uint8]
    """As a screen has it, shape (height, width, 3)."""
    depth: NDArray[np.float32]
    """Along the camera's axis [m], infinite where nothing is, shape (height, width)."""
    part: NDArray[np.int32]
    """What is seen: 0 nothing, k the k-th of `Renderer.parts`; shape (height, width)."""


@dataclass(frozen=True, eq=False)
class Shared:
    """Arrays on the device that pictures of many worlds have in common; see shading.py."""

    eye: Any
    around: Any
    background: Any
    corner: Any
    begin: Any
    beside: Any
    triangles: int
    bar_first: int
    """Number of the first bar in a key."""
    shown: Any


class Renderer:
    """Made by `render.make`."""

    def __init__(self, scene: Scene, device: Device, width: int, height: int, cloth: bool, half: bool) -> None:
        self.scene = scene
        self.device = device
        self.width, self.height = width, height
        self._half = half
        self.arrays: dict[str, AnyArray] = _rooms(scene)
        """What a world's `write_arrays` fills: every array of the scene, by name."""
        self.parts = tuple(
            one.name
            for group in (scene.surfaces, scene.instruments, scene.markers, scene.threads, scene.particles)
            for one in group
        )
        """Names of what `Rendered.part` numbers, from 1."""
        self._meshes = Meshes(scene, device, self.arrays)
        self._instruments = b.Instruments(scene.instruments)
        self._cloth = cloth and not any(surface.backdrop for surface in scene.surfaces) and bool(scene.surfaces)
        self._floor: NDArray[np.float64] | None = None
        self._make_rooms()
        self._eye = make_lens_array(self._lens(scene.camera), device)
        self._paint_burns(None)
        device.load(_modules())
        self._upload, self._behind, self._program = self._record()
        self._behind_of: object = None

    def _make_rooms(self) -> None:
        device, scene = self.device, self.scene
        most = b.bar_capacity(scene)
        self._bar_count = device.port(1, wp.int32)
        self._bar_ends = [device.port(most, wp.vec3) for _ in range(2)]
        self._bar_radius = device.port(most, wp.float32)
        self._bar_look = device.port(most, BarLook)
        self._shades = [device.port(MOST_SHADES, wp.vec4) for _ in range(2)]
        self._ghosts = device.port(max(1, sum(one.capacity for one in scene.markers if one.look == "target")), wp.vec4)
        self._around = device.port(1, Surroundings)
        self._stage, self._coat = device.port(int(STAGES), wp.vec4), device.port(int(STAGES), wp.vec2)
        self._make_balls()
        self._volumes = Volumes(scene, device, self.arrays, self.width, self.height)
        pixels = self.width * self.height
        self._background = wp.zeros(pixels, dtype=wp.vec3ub, device=device.warp)
        self._key = wp.zeros(pixels, dtype=wp.int64, device=device.warp)
        self._colour, self._depth = device.port(pixels, wp.vec3ub), device.port(pixels, wp.float32)
        self._part = device.port(pixels, wp.int32)

    def _make_balls(self) -> None:
        device, scene = self.device, self.scene
        total = max(1, sum(one.capacity for one in scene.particles))
        self._balls = device.port(total, wp.vec4)
        self._ball_count = device.port(max(1, len(scene.particles)), wp.int32)
        group_of = np.zeros(total, dtype=np.int32)
        groups: list[Any] = []
        first = 0
        for number, one in enumerate(scene.particles):
            self.arrays[one.name] = self._balls.host[first : first + one.capacity]
            group_of[first : first + one.capacity] = number
            groups.append(_group(one, first, 1 + self.parts.index(one.name)))
            first += one.capacity
        self._group_of = wp.array(group_of, dtype=wp.int32, device=device.warp)
        self._groups = wp.array(groups or [BallGroup()], dtype=BallGroup, device=device.warp)

    # --- one picture ---

    def set(self, snapshot: Snapshot) -> None:
        """The arrays of a snapshot, copied; a world can write them here itself (`arrays`)."""
        for name, array in snapshot.arrays.items():
            if name not in self.arrays:
                raise InputError(f"the scene has no array {name!r}.", "Make a renderer of the snapshot's own scene.")
            np.copyto(self.arrays[name], array)

    def render(self, frame: Frame, camera: Camera | None = None, *, copy: bool = True) -> Rendered:
        """What `arrays` and `frame` hold, from `camera` or the scene's own. Without `copy` the picture is overwritten
        by the next one."""
        lens = self._lens(camera or self.scene.camera)
        write_lens(lens, self._eye)
        others = self._meshes.follow(frame, self._hidden(frame))
        self._meshes.see_paint()
        if STAGES_TABLE in frame.tables:
            self._paint_burns(frame.tables[STAGES_TABLE])
        self._put_bars(frame)
        self._put_shades(frame, lens)
        self._put_room(frame, lens)
        self._volumes.put(lens)
        for number, one in enumerate(self.scene.particles):
            self._ball_count.host[number] = min(frame.counts.get(one.name, 0), one.capacity)
        if others:
            self._upload.run()
        if lens.camera != self._behind_of:
            self._behind_of = lens.camera
            self._behind.run()
        self._program.run()
        self.device.synchronize()
        shape = (self.height, self.width)
        colour = self._colour.host.reshape(*shape, 3)
        depth, part = self._depth.host.reshape(shape), self._part.host.reshape(shape)
        return Rendered(colour.copy(), depth.copy(), part.copy()) if copy else Rendered(colour, depth, part)

    def shared(self) -> Shared:
        """What pictures of many worlds of this scene have in common: of the last picture, its camera too."""
        meshes = self._meshes
        bar_first = meshes.most_triangles
        return Shared(
            eye=self._eye, around=self._around.array, background=self._background, corner=meshes.corner.array,
            begin=meshes.begin.array, beside=meshes.beside.array, triangles=int(meshes.count.host[0]),
            bar_first=bar_first, shown=self._shown(bar_first, bar_first + self._bar_radius.array.shape[0]),
        )  # fmt: skip

    def _lens(self, camera: Camera) -> Lens:
        return Lens(camera, self.width, self.height, near=NEAR)

    def _hidden(self, frame: Frame) -> set[str]:
        """Surfaces that are shown as a lattice instead."""
        return {one.surface for one in self.scene.lattices if round(frame.parameters.get(one.parameter, 0.0)) == 1}

    def _paint_burns(self, rows: Any) -> None:
        table = next((one for one in self.scene.tables if one.name == STAGES_TABLE), None)
        self._stage.host[:], self._coat.host[:] = burn_strip(table, rows, int(STAGES))

    # --- what is thin and hard ---

    def _put_bars(self, frame: Frame) -> None:
        scene = self.scene
        first = 1 + len(scene.surfaces)
        found: list[tuple[int, b.Bar]] = []
        for number in range(len(scene.instruments)):
            found += [(first + number, one) for bar in self._instruments.of(frame, number) for one in b.pieces(bar)]
        first += len(scene.instruments)
        for number, markers in enumerate(scene.markers):
            found += [(first + number, one) for one in b.marker_bars(markers, self.arrays[markers.name])]
        first += len(scene.markers)
        for number, threads in enumerate(scene.threads):
            points = self.arrays[threads.name][: frame.counts.get(threads.name, threads.capacity)]
            found += [(first + number, one) for one in b.thread_bars(threads, points)]
        for k, (part, bar) in enumerate(found):
            self._bar_ends[0].host[k], self._bar_ends[1].host[k] = bar.start, bar.end
            self._bar_radius.host[k] = bar.radius
            self._bar_look.host[k] = (bar.colour, bar.finish, part)
        self._bar_count.host[0] = len(found)
        ghosts = [
            (*row[:3].tolist(), markers.size)
            for markers in scene.markers
            if markers.look == "target"
            for row in self.arrays[markers.name]
            if row[7] != 0.0
        ]
        self._ghosts.host[: len(ghosts)] = np.array(ghosts).reshape(-1, 4)
        self._around.host["ghosts"] = len(ghosts)

    def _put_shades(self, frame: Frame, lens: Lens) -> None:
        """The working end and the shaft of each instrument, in the eye's frame."""
        found = [bar for number in range(len(self.scene.instruments)) for bar in self._instruments.of(frame, number)]
        found = found[:MOST_SHADES]
        for k, bar in enumerate(found):
            for port, end in zip(self._shades, (bar.start, bar.end), strict=True):
                port.host[k] = (*_seen(lens, end), bar.radius)
        self._around.host["shades"] = len(found)

    # --- light and cloth ---

    def _put_room(self, frame: Frame, lens: Lens) -> None:
        camera, first = lens.camera, self.scene.camera
        up = np.asarray(first.up, dtype=np.float64) / np.linalg.norm(first.up)
        ahead = np.subtract(first.target, first.position)
        ahead = ahead / np.linalg.norm(ahead)
        lamp = ahead + (0.55 - 2.0 * float(ahead @ up)) * up  # beyond the table, so that wet tissue mirrors it
        distance = float(np.linalg.norm(np.subtract(camera.target, camera.position)))
        host = self._around.host
        host["power"] = BRIGHTNESS * distance * distance
        host["up"], host["theatre_lamp"] = _turned(lens, up), _turned(lens, lamp / np.linalg.norm(lamp))
        earth = any(surface.material == "earth" for surface in self.scene.surfaces)
        host["ground"] = EARTH_GROUND if earth else FLESH_GROUND
        host["cloth"] = int(self._cloth)
        if self._cloth:
            self._lay_cloth(lens, up)

    def _lay_cloth(self, lens: Lens, up: NDArray[np.float64]) -> None:
        """Below what lies there in the first picture."""
        across = np.array([0.0, 1.0, 0.0]) if abs(up[0]) > 0.9 else np.array([1.0, 0.0, 0.0])
        across -= (across @ up) * up
        across /= np.linalg.norm(across)
        along = np.cross(up, across)
        if self._floor is None:
            places = np.concatenate([self.arrays[one.array] for one in self.scene.surfaces]).astype(np.float64)
            spans = [(float((places @ axis).min()), float((places @ axis).max())) for axis in (across, along, up)]
            self._floor = np.array(spans)
        (x0, x1), (y0, y1), (floor, _) = self._floor
        middle = 0.5 * (x0 + x1) * across + 0.5 * (y0 + y1) * along + (floor - 0.0005) * up
        host = self._around.host
        host["floor"] = _seen(lens, middle)
        host["across"], host["along"] = _turned(lens, across), _turned(lens, along)
        host["half"] = 0.5 * (x1 - x0), 0.5 * (y1 - y0)

    # --- programs ---

    def _record(self) -> tuple[Program, Program, Program]:
        meshes = self._meshes
        topology = [meshes.corner, meshes.surface, meshes.uv, meshes.begin, meshes.beside, meshes.grain, meshes.count]
        moving = [
            meshes.position, meshes.texels, meshes.looks, self._bar_count, *self._bar_ends, self._bar_radius,
            self._bar_look, *self._shades, self._ghosts, self._around, self._stage, self._coat,
            self._balls, self._ball_count,
        ]  # fmt: skip

        def upload(stage: Stage) -> None:
            for port in topology:
                stage.upload(port)

        def draw(stage: Stage) -> None:
            for port in moving:
                stage.upload(port)
            self._draw(stage)
            for port in (self._colour, self._depth, self._part):
                stage.download(port)

        def draw_behind(stage: Stage) -> None:
            stage.upload(self._around)
            stage.launch(shade_background, self._key.shape[0], [self._eye, self._around.array, self._background])

        record = self.device.record
        return record(upload, work=0), record(draw_behind), record(draw)

    def _draw(self, stage: Stage) -> None:
        meshes, eye, key = self._meshes, self._eye, self._key
        starts, ends = (port.array for port in self._bar_ends)
        first_bar = meshes.most_triangles
        first_ball = first_bar + self._bar_radius.array.shape[0]
        rods: Any = Rods()
        rods.tip, rods.end = (port.array for port in self._shades)
        stage.launch(
            see_vertices, meshes.most_vertices,
            [eye, self._around.array, meshes.count.array, meshes.position.array, meshes.corner.array,
             meshes.begin.array, meshes.beside.array, rods, meshes.seen, meshes.normal, meshes.shade],
        )  # fmt: skip
        stage.launch(clear_keys, key.shape[0], [key])
        corners = [eye, meshes.count.array, meshes.corner.array, meshes.seen, key]
        launch_on_rows(stage, draw_triangles, meshes.most_triangles, self.height, corners)
        bars = [first_bar, eye, self._bar_count.array, starts, ends, self._bar_radius.array, key]
        launch_on_rows(stage, draw_bars, first_ball - first_bar, self.height, bars)
        if self.scene.particles:
            balls = [first_ball, eye, self._ball_count.array, self._group_of, self._groups, self._balls.array, key]
            launch_on_rows(stage, draw_balls, self._balls.array.shape[0], self.height, balls)
        shown = self._shown(first_bar, first_ball)
        told = [key, self._depth.array, self._part.array]
        stage.launch(tell_parts, key.shape[0], [shown, *told])
        squares = self.height * ((self.width + 1) // 2)
        for turn in (0, 1 if self._half else 2):
            seen = [turn, eye, self._around.array, shown, self._background, *told]
            stage.launch(shade_pixels, squares, [*seen, self._colour.array])
        self._volumes.record(stage, eye, self._around.array, self._depth.array, self._colour.array)

    def _shown(self, first_bar: int, first_ball: int) -> Any:
        """As kernels have it."""
        paint: Any = Paint()
        paint.pixels, paint.stage, paint.coat = self._meshes.texels.array, self._stage.array, self._coat.array
        bars: Any = BarSet()
        bars.start, bars.end = (port.array for port in self._bar_ends)
        bars.radius, bars.look = self._bar_radius.array, self._bar_look.array
        balls: Any = BallSet()
        balls.ball, balls.group_of, balls.group = self._balls.array, self._group_of, self._groups
        shown: Any = AllShown()
        shown.bar_first, shown.ball_first = first_bar, first_ball
        shown.triangles, shown.looks, shown.paint = self._meshes.triangles(), self._meshes.looks.array, paint
        shown.bars, shown.balls, shown.ghost = bars, balls, self._ghosts.array
        return shown


def _rooms(scene: Scene) -> dict[str, AnyArray]:
    """Room for every array of the scene; that of what is drawn is taken over by who draws it."""
    listed = [one for value in vars(scene).values() if isinstance(value, tuple) for one in value]
    shown = [one for one in listed if isinstance(one, Shown)]
    specs = {name: spec for one in shown for name, spec in one.arrays().items()}
    return {name: np.zeros(spec.shape, dtype=spec.kind) for name, spec in specs.items()}


def _group(one: Particles, first: int, part: int) -> Any:
    group: Any = BallGroup()
    group.first, group.radius, group.part = first, one.radius, part
    group.shaded = int(one.shade in ("share", "size"))
    fluid, clear = FLUIDS[one.fluid], FLUIDS["water"]
    if one.shade == "size":
        fluid, clear = SMALL_BALLS, LARGE_BALLS
    group.fluid, group.clear = wp.vec3(*fluid), wp.vec3(*clear)
    return group


def _turned(lens: Lens, way: NDArray[np.float64]) -> NDArray[np.float64]:
    right, up, back = lens.axes @ way
    return np.array([right, up, -back])


def _seen(lens: Lens, point: NDArray[np.float64]) -> NDArray[np.float64]:
    return _turned(lens, point - np.asarray(lens.camera.position))


def _modules() -> list[Any]:
    from viscera.render import raster, rays, shading

    return [raster, rays, shading]
