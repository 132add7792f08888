"""The film's picture: how thick which fluid lies on each texel of a skin, smooth in space and time.

Each covered texel with node x gathers the particles around it, in space:

    t(x) = Σ_j V_j W(|x − x_j|),    W(r) = 4/(π R²) (1 − r²/R²)³,    ∫ W dA = 1,

so t is a thickness [m] whose integral is the volume of the fluid, a particle is round however the texture is stretched,
and a seam does not exist. Particles whose surface faces away are not seen. Where fluid stands in a pool, its depth over
the texel is added. Then, with o the height of a detail that
sticks out of the surface (Kvick §6.2.6; o = ∞ is a mask),

    v = max(t · S(t) − o, 0),         S from 0 to 1 between two thicknesses: fluid ends at a border, not in a skirt
    s ← max(v, k s)                   the document's max(v, k b) against flicker (§3.9.2), k = exp(−dt/fade_time)
    w ← max(min(v, trail), k_w w)     a trail stays wet (§6.2.7 asks for it), k_w = exp(−dt/trail_time);
                                      where nothing else is (v = s = 0) every fourth time, by k_w⁴: tiles take turns
    b = mean over 3×3 of max(s, w)    neighbours across seams taken from the skin's links

Differs from the source (§3.9.2): v there is whether any particle is in the texel, so density saturates and blobs follow
the texture; b is kept instead of s, so every frame blurs again and blood glows at its borders (its own complaint,
§4.1.2). `document=True` keeps b. Colour there is b itself; here the thickness is drawn, by absorption
(`docs/bleeding.md`).

Four bytes per texel: R = 255 √(b/thickest), G = blood, B = dye, each as a part of the fluid (the rest is clear),
A = how much of the fluid is clotted or dried blood. Texels beside a chart repeat its border. `height` has b as float
[m]; `tiles` has for each 16×16 tile the number of the frame in which it was last written.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.blood.columns import no_pool
from viscera.blood.film.params import LITTLE, FilmFluid, FilmParams
from viscera.blood.film.state import FilmState
from viscera.blood.picture import finish, kernels
from viscera.blood.picture import native as native_loops
from viscera.blood.views import film_view
from viscera.device import BLOCK, Stage
from viscera.errors import InputError
from viscera.neighbors.grid import LANES, GridParams, GridState, build, make_grid
from viscera.skin import Skin, gutter
from viscera.timing import FRAME

GUTTER = 2
"""Rings of texels around a chart that repeat its border: what a picture read between texels, one size smaller, sees."""

FACING = 0.0
"""Least cosine between the normals of a texel and of a particle that it shows: not through a thin organ."""

CHUNK = 64
"""Elements per thread on cpu, where the arguments are copied for every thread: a kilobyte, some 40 ns."""

MARGIN = 0.1
"""Of the organ's size; how far it may leave its box at rest before the search slows down."""

MOST_CELLS = 2**18
"""Of the search grid. More, smaller ones cost more to count (5 ns each on cpu) than they save in the search."""


IMAGE_ARRAYS = ("height", "kept", "wet", "words", "tiles", "frame")
"""Arrays of a `FilmImage` that one picture leaves for the next; the others are scratch or follow from the film."""


@dataclass(frozen=True)
class FilmImageParams:
    """Tuned for appearance, but for `radius`."""

    radius: float = 2.5e-3
    """R [m]; a little more than two particle spacings, so that a sheet of particles is smooth."""
    edge: tuple[float, float] = (0.15, 0.6)
    """Between these thicknesses S rises, in units of a lone particle's thickest place; (0, 0) leaves t as it is."""
    fade_time: float = 0.1
    """[s]"""
    trail: float = 12.0e-6
    """Thickness that a trail starts with [m]: a glaze."""
    trail_time: float = 15.0
    """[s]"""
    drying_time: float = 60.0
    """In which the blood of a trail turns brown [s]."""
    thinnest: float = 0.5e-6
    """What is thinner is not drawn [m]."""
    thickest: float = 2.0e-3
    """What R = 255 means [m]; thicker blood looks the same."""
    document: bool = False
    """Keep the blurred value, as the document does."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("edge", "document"):
                continue
            zero = field.name in ("fade_time", "trail", "trail_time")
            if not math.isfinite(value) or value < 0.0 or (value == 0.0 and not zero):
                allowed = "of 0 or more" if zero else "above 0"
                raise InputError(f"{field.name} = {value} is not possible.", f"It must be a finite number {allowed}.")
        low, high = self.edge
        if not (0.0 <= low <= high <= 10.0):
            raise InputError(f"edge = {self.edge} is not possible.", "Give two rising numbers from 0 to 10.")


@dataclass(eq=False)
class FilmImage:
    """Made by `make_film_image`. Maps have one entry per texel of the skin, shape (width · height,)."""

    skin: Skin
    state: FilmState
    """Of the film that is drawn."""
    params: FilmImageParams
    film_params: FilmParams
    """Of the film that is drawn, as last given to `set_film_image`."""
    dt: float
    """Between pictures [s]."""
    grid: GridParams
    cells: GridState
    """The search for particles around a texel."""
    pixels: Any
    """uint8, shape (4 · width · height,); see the module's text."""
    height: Any
    """b per texel, float32 [m]."""
    normal: Any
    """Of the fluid's surface per texel, vec3, written by `film_normals`."""
    tiles: Any
    """int32, shape (tiles,): frame in which each tile was last written."""
    frame: Any
    """int32, shape (1,)."""
    obstacle: Any
    """o per texel, float32 [m]."""
    view: Any
    """`Texels`: the skin's maps and who is whose neighbour."""
    looks: Any
    """`Look`, shape (1,): numbers that `set_film_image` may change."""
    near: Any
    """Frame in which particles were last around each cell of the search, int32, shape (cells,)."""
    film: Any
    """`FilmView`: the film's arrays, shape (film's capacity,) each."""
    sources: Any
    """`Sources`: particles in sorted order, float32, shape (film's capacity + LANES,) each."""
    painting: Any
    """`Painting`: the maps that kernels write, gathered."""
    first_face: int
    """Number that the film gives to the skin's first triangle."""
    native: bool
    """Whether the loop over particles is the C one; False runs its plain twin."""
    kept: Any
    """s per texel [m], and what it is made of (blood, dye, clot, each as a part), vec4."""
    wet: Any
    """w per texel: what a trail has left, float32 [m]."""
    words: Any
    """`pixels` as one uint32 per texel; the same memory."""
    gutter: Any
    """Texels beside charts, int32, shape (gutter,)."""
    gutter_source: Any
    """Whose colour each of them repeats, int32, shape (gutter,)."""

    @property
    def chunk(self) -> int:
        """Texels or particles that one thread takes."""
        return 1 if self.skin.device.is_cuda else CHUNK

    def picture(self) -> NDArray[np.uint8]:
        """Shape (height, width, 4), row 0 at v = 0. Waits for the device."""
        return self.pixels.numpy().reshape(self.skin.height, self.skin.width, 4)


def make_film_image(
    skin: Skin,
    film: FilmParams,
    state: FilmState,
    params: FilmImageParams | None = None,
    dt: float = FRAME,
    first_face: int = 0,
    native: bool | None = None,
    pool: Any = None,
) -> FilmImage:
    """A picture of `state` on `skin`, one every `dt` [s]. `first_face` is the number that the film gives to the skin's
    first triangle; `pool` is a `PoolView` of what stands on it; `native` chooses between the loop
    in C, for cpu alone, and its plain twin."""
    if native and skin.device.is_cuda:
        raise InputError("the film's picture has no loop in C for cuda.", "Leave native out.")
    params = params or FilmImageParams()
    _check_dt(dt)
    device = skin.device.warp
    size, capacity = skin.width * skin.height, state.capacity
    low, high = skin.mesh.vertices.min(axis=0), skin.mesh.vertices.max(axis=0)
    low, high = low - MARGIN * (high - low), high + MARGIN * (high - low)
    side = max(params.radius, float(np.prod(np.maximum(high - low, params.radius)) / MOST_CELLS) ** (1.0 / 3.0))
    grid, cells = make_grid(capacity, tuple(low), tuple(high), side, 3, skin.device, count=state.count)

    def zeros(count: int, dtype: Any = wp.float32) -> Any:
        return wp.zeros(count, dtype=dtype, device=device)

    words = zeros(size, wp.uint32)
    pixels = wp.array(ptr=words.ptr, dtype=wp.uint8, shape=4 * size, device=device)
    obstacle = zeros(size)
    tiles_x = -(-skin.width // kernels.TILE)
    outside, repeated = gutter(skin, GUTTER)
    image = FilmImage(
        skin,
        state,
        params,
        film,
        dt,
        grid,
        cells,
        pixels,
        zeros(size),
        zeros(size, wp.vec3),
        zeros(tiles_x * -(-skin.height // kernels.TILE), wp.int32),
        zeros(1, wp.int32),
        obstacle,
        _texels(skin, tiles_x, obstacle, no_pool(skin.device) if pool is None else pool),
        wp.zeros(1, dtype=kernels.Look, device=device),
        zeros(grid.cell_count, wp.int32),
        film_view(state),
        _sources(capacity, device),
        None,
        first_face,
        not skin.device.is_cuda if native is None else native,
        zeros(size, wp.vec4),
        zeros(size),
        words,
        wp.array(outside, dtype=wp.int32, device=device),
        wp.array(repeated, dtype=wp.int32, device=device),
    )
    image.painting = _painting(image)
    set_film_image(image, params, film)
    return image


def set_film_image(image: FilmImage, params: FilmImageParams, film: FilmParams) -> None:
    """Changes the look while programs run; the radius cannot grow beyond what the picture was made with."""
    if params.radius > image.grid.radius * (1.0 + 1e-6):
        raise InputError(
            f"radius = {params.radius:g} m is larger than {image.grid.radius:g} m.",
            "Make the picture with the largest radius it will have.",
        )
    image.params, image.film_params = params, film
    look: Any = kernels.Look()
    look.radius = params.radius
    look.scale = 4.0 / (math.pi * params.radius**2)
    lone = look.scale * film.particle_volume
    look.edge_low, look.edge_high = (lone * e for e in params.edge)
    look.facing = FACING
    look.keep = math.exp(-image.dt / params.fade_time) if params.fade_time > 0.0 else 0.0
    look.trail_keep = math.exp(-image.dt / params.trail_time) if params.trail_time > 0.0 else 0.0
    look.trail = params.trail
    look.drying = -math.expm1(-image.dt / params.drying_time)
    look.seldom_keep = look.trail_keep**kernels.SELDOM
    look.seldom_drying = -math.expm1(-kernels.SELDOM * image.dt / params.drying_time)
    look.thinnest = params.thinnest
    look.thickest = params.thickest
    look.document = int(params.document)
    look.little = LITTLE
    names = [fluid.name for fluid in film.fluids]
    look.blood = names.index("blood") if "blood" in names else -1
    dye = dye_of(film)
    look.dye = -1 if dye is None else names.index(dye.name)
    look.first_face = image.first_face
    look.faces = len(image.skin.mesh.triangles)
    wp.copy(image.looks, wp.array([look], dtype=kernels.Look, device=image.skin.device.warp))


def dye_of(film: FilmParams) -> FilmFluid | None:
    """The fluid besides blood that has a colour of its own; a picture has room for one."""
    dyes = [fluid for fluid in film.fluids if fluid.absorption is not None and fluid.name != "blood"]
    if len(dyes) > 1:
        raise InputError(
            f"{' and '.join(one.name for one in dyes)} both have a colour.",
            "A film's picture shows blood and one more: leave out `absorption` of the others, they are clear then.",
        )
    return dyes[0] if dyes else None


def step_film_image(stage: Stage, image: FilmImage, wipes: Callable[[Stage], None] | None = None) -> None:
    """The picture of the film as it is now, `dt` after the one before. The skin's maps must be up to date. `wipes`
    records what cleans some of it."""
    grid, cells, painting, chunk = image.cells.view, image.cells, image.painting, image.chunk
    particles, texels = -(-image.state.capacity // chunk), -(-image.skin.count // chunk)
    block = max(1, BLOCK // chunk)
    splat = native_loops.splat_sixteens if image.native else kernels.splat
    paint, content = [image.view, image.looks, chunk], [cells.original, cells.position, image.film, image.sources]
    stage.once(lambda: wp.launch(finish.next_frame, dim=1, inputs=[image.frame], device=stage.device.warp))
    build(stage, image.grid, cells, image.state.position)
    stage.launch(kernels.take_content, particles, [grid, image.looks, chunk, *content], block)
    stage.launch(kernels.stamp_cells, particles, [grid, chunk, cells.position, image.frame, image.near], block)
    _find_normals(stage, image)
    stage.launch(splat, texels, [grid, *paint, image.sources, painting], block)
    if wipes is not None:
        wipes(stage)
    soften = native_loops.soften_sixteens if image.native else finish.soften
    stage.launch(soften, texels, [*paint, painting], block)
    stage.launch(finish.fill_gutter, len(image.gutter), [image.gutter, image.gutter_source, image.words])


def film_normals(stage: Stage, image: FilmImage) -> None:
    """`image.normal` from `image.height`: for pictures made here; a page makes its own from the texture."""
    _find_normals(stage, image)
    stage.launch(finish.film_normals, image.skin.count, [image.view, image.height, image.normal])


def _find_normals(stage: Stage, image: FilmImage) -> None:
    view, chunk = image.view, image.chunk
    args = [chunk, view.triangles, view.vertices, view.normal]
    stage.launch(kernels.find_normals, -(-len(view.triangles) // chunk), args, max(1, BLOCK // chunk))


def thickness_of(red: NDArray[np.uint8], params: FilmImageParams) -> NDArray[np.float64]:
    """Thickness [m] from a picture's first channel."""
    return params.thickest * (red.astype(np.float64) / 255.0) ** 2


def shown_volume(image: FilmImage) -> float:
    """Volume of the fluid that is drawn [m³]; a trail counts, although nothing flows there any more."""
    return float(np.dot(image.height.numpy().astype(np.float64), image.skin.area.numpy()))


def set_obstacles(image: FilmImage, heights: NDArray[np.floating[Any]]) -> None:
    """Details that stick out by `heights` per texel, shape (height, width) [m]; infinity: never covered."""
    flat = np.asarray(heights, dtype=np.float32)
    if flat.shape != (image.skin.height, image.skin.width):
        raise InputError(
            f"obstacles have shape {flat.shape}.", f"It must be {(image.skin.height, image.skin.width)}, one per texel."
        )
    if np.isnan(flat).any() or flat.min() < 0.0:
        raise InputError("obstacles have entries below 0 or not a number.", "Give heights in metres, or infinity.")
    image.obstacle.assign(flat.ravel())


def _check_dt(dt: float) -> None:
    if not (math.isfinite(dt) and dt >= 0.0):
        raise InputError(f"dt = {dt} is not possible.", "It must be a finite number of 0 or more.")


def _texels(skin: Skin, tiles_x: int, obstacle: Any, pool: Any) -> Any:
    view: Any = kernels.Texels()
    view.width, view.columns = skin.width, skin.width.bit_length() - 1
    view.tiles_x = tiles_x
    view.texels, view.position, view.face = skin.texels, skin.position, skin.face
    view.triangles, view.vertices = skin.triangles, skin.vertices
    view.normal = wp.zeros(len(skin.triangles), dtype=wp.vec3, device=skin.device.warp)
    around = neighbour_table(skin)
    view.around = wp.array(around, dtype=wp.int32, device=skin.device.warp)
    own, others = (_tile(skin, texel) for texel in (skin.texels.numpy(), around))
    view.row_of_sixteen = wp.array(_rows_of_sixteen(skin, around), dtype=wp.int32, device=skin.device.warp)
    view.one_tile = wp.array((others == own[:, None]).all(axis=1), dtype=wp.int32, device=skin.device.warp)
    view.obstacle, view.pool = obstacle, pool
    return view


def _rows_of_sixteen(skin: Skin, around: NDArray[np.int32]) -> NDArray[np.bool_]:
    """See `Texels.row_of_sixteen`."""
    texels, width = skin.texels.numpy(), skin.width
    beside = np.array([dy * width + dx for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)])
    within = np.append(0, np.cumsum((around == texels[:, None] + beside).all(axis=1)))
    rows = np.zeros(len(texels), dtype=bool)
    last = len(texels) - 15
    if last > 0:
        rows[:last] = (texels[15:] == texels[:last] + 15) & (within[16:] - within[:last] == 16)
    return rows


def _tile(skin: Skin, texel: NDArray[np.int32]) -> NDArray[np.int64]:
    """Number of the tile of each texel, by any numbering."""
    row, column = np.divmod(texel, skin.width)
    return row // kernels.TILE * skin.width + column // kernels.TILE


def _sources(capacity: int, device: Any) -> Any:
    sources: Any = kernels.Sources()
    for name in ("x", "y", "z", "nx", "ny", "nz", "volume", "blood", "dye", "clot"):
        setattr(sources, name, wp.zeros(capacity + LANES, dtype=wp.float32, device=device))
    return sources


def _painting(image: FilmImage) -> Any:
    painting: Any = kernels.Painting()
    painting.frame, painting.near, painting.soft = image.frame, image.near, image.height
    painting.kept, painting.trail, painting.tile, painting.pixel = image.kept, image.wet, image.tiles, image.words
    return painting


def neighbour_table(skin: Skin) -> NDArray[np.int32]:
    """Eight neighbours of each covered texel; places that a chart's border leaves empty are filled with the texels
    across the seam, and what is still empty with the texel itself. Shape (count, 8)."""
    texels = skin.texels.numpy()
    chart = np.full(skin.width * skin.height, -1)
    chart[texels] = skin.atlas.chart[skin.face.numpy()[texels]]
    row, column = np.divmod(texels, skin.width)
    table = np.empty((len(texels), 8), dtype=np.int32)
    offsets = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)]
    for k, (dy, dx) in enumerate(offsets):
        y, x = row + dy, column + dx
        inside = (y >= 0) & (y < skin.height) & (x >= 0) & (x < skin.width)
        there = np.where(inside, y * skin.width + x, texels)
        table[:, k] = np.where(inside & (chart[there] == chart[texels]), there, -1)
    start, linked = skin.link_start.numpy(), skin.link_texel.numpy()
    for i in np.flatnonzero((np.diff(start) > 0) & (table < 0).any(axis=1)):
        empty = np.flatnonzero(table[i] < 0)
        across = np.unique(linked[start[i] : start[i + 1]])
        table[i, empty] = np.resize(across, len(empty))
    return np.where(table < 0, texels[:, None], table).astype(np.int32)
