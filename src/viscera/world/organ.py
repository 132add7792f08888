"""An organ: tissue, the surface that is seen of it, and the skin that is painted on that.

`fill` puts masses into a closed mesh, `make_organ` hangs the mesh on their lattice. What follows the surface (a film's
own copy of it) is recorded into the same program (`Organ.followers`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera.device import Device, Stage
from viscera.errors import InputError
from viscera.geometry.embedding import embed
from viscera.geometry.mesh import TriangleMesh
from viscera.skin import Skin, rebuild_skin
from viscera.tissue.cutting import let_cut
from viscera.tissue.lattice import Tissue, make_lattice
from viscera.tissue.meeting import Meeting
from viscera.tissue.params import LatticeParams
from viscera.tissue.pieces import Pieces
from viscera.tissue.shadow import Shadow
from viscera.tissue.surface import follow_lattice
from viscera.tissue.touching import touch_surface
from viscera.view import LOOKS, Surface
from viscera.world.floor import Floor
from viscera.world.names import closest_names
from viscera.world.system import Field, Show

if TYPE_CHECKING:
    from viscera.world.cut_surface import CutSurface

FEWEST_MASSES = 100
"""With fewer the organ is too thin to feel like one."""

MOST_TRIANGLES = 400_000
"""Of a user's mesh; with more, making its atlas and following it take minutes."""

Point = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Body:
    """A surface and the lattice positions inside it."""

    mesh: TriangleMesh
    nodes: NDArray[np.int32]
    """Integer positions of the masses, shape (masses, 3)."""
    origin: Point
    """World position of node (0, 0, 0) [m]."""
    spacing: float
    """[m]"""

    @property
    def positions(self) -> NDArray[np.float64]:
        """World positions of the masses, shape (masses, 3) [m]."""
        return np.asarray(self.origin) + self.nodes.astype(np.float64) * self.spacing


@dataclass(eq=False)
class Organ:
    """Made by `make_organ`."""

    name: str
    look: str
    body: Body
    tissue: Tissue
    rest: wp.array[Any]
    """Rest positions of the surface's vertices, world frame [m]."""
    places: wp.array[Any]
    """Lattice places each vertex hangs on, shape (vertices, 8)."""
    weights: wp.array[Any]
    vertices: wp.array[Any]
    """As of the last frame [m]. Work beside the ticks writes it: `World.wait` before you look."""
    shadow: Shadow
    """What work beside the ticks sees and changes of the lattice."""
    floor: Floor
    """What no tool can enter."""
    skin: Skin | None = None
    """What is painted on it: heat, burns, blood. Its `vertices` are these very ones."""
    notes: tuple[str, ...] = ()
    """What was guessed or mended when it was made of a user's mesh."""
    cuts: CutSurface | None = None
    """What is drawn of it, where it can be cut (cut_surface.py)."""
    meeting: Meeting | None = None
    """In which its lattice meets itself and others, where that is asked for."""
    pieces: Pieces | None = None
    """Of its lattice, as that meeting knows them."""
    fields: dict[str, Field] = field(default_factory=dict)
    """Named arrays of its skin, in which systems meet."""
    followers: list[Callable[[Stage], None]] = field(default_factory=list)
    """What is recorded after its surface was brought up to the lattice."""
    expects: dict[str, str] = field(default_factory=dict)
    """Systems that a world with it should have, by name, and how each is listed: what was put onto it stands still
    without."""

    def need_skin(self) -> Skin:
        """Its skin; refuses when it has none."""
        if self.skin is None:
            raise InputError(
                f"{self.name} has no skin to paint on.", "Make the organ with `texels=256`, or with a skin (skin.make)."
            )
        return self.skin

    def write_field(self, name: str, array: Any) -> Field:
        """A field for others to read, made by the system that writes it."""
        if name in self.fields:
            raise InputError(f"two systems write {name!r} on {self.name}.", "List one of them.")
        self.fields[name] = Field(array)
        return self.fields[name]

    def read_field(self, name: str) -> Field:
        """A field that a system made before; refuses when none did."""
        if name not in self.fields:
            have = ", ".join(sorted(self.fields)) or "none"
            raise InputError(
                f"nothing writes {name!r} on {self.name}.",
                f"Make the system that does before this one (see viscera.systems). Fields there are: {have}.",
            )
        return self.fields[name]

    def surface_work(self) -> int:
        return len(self.vertices) + (0 if self.skin is None else self.skin.count)

    def record_surface(self, stage: Stage) -> None:
        """Brings the surface up to the lattice as its shadow has it."""
        self.record_vertices(stage, self.shadow.displacement, self.vertices)
        if self.skin is not None:
            rebuild_skin(stage, self.skin)
        for follow in self.followers:
            follow(stage)

    def record_vertices(self, stage: Stage, displacement: wp.array[Any], out: wp.array[Any]) -> None:
        """Where the surface's vertices are [m] when the masses are displaced like this."""
        args = [self.rest, self.places, self.weights, self.tissue.layout.slots, displacement, out]
        stage.launch(follow_lattice, len(out), args)

    def height(self, x: float, y: float, among: NDArray[Any] | None = None) -> float:
        """Of the upper side over this place of the table, at rest: a plane through the nearest vertices, those of the
        upper half, or among these numbers [m]."""
        return _plane_over(self._upper if among is None else self.body.mesh.vertices[among], x, y)

    @cached_property
    def _upper(self) -> NDArray[Any]:
        return _upper_half(self.body.mesh.vertices)

    def show(self) -> Show:
        if self.cuts is not None:
            return self.cuts.show(self.name, self.look, self.vertices)
        triangles = np.asarray(self.body.mesh.triangles, dtype=np.int32)
        rest = np.array(self.rest.numpy(), dtype=np.float32)
        uv = None if self.skin is None else self.skin.atlas.corners.astype(np.float32)
        surface = Surface(self.name, self.look, triangles, self.name, len(self.vertices), rest, uv)
        return Show(surface, {self.name: self.vertices})


def organ(
    name: str,
    body: Body,
    device: Device,
    *,
    look: str = "tissue",
    texels: int | None = None,
    burns: bool = False,
    **lattice: Any,
) -> Organ:
    """An organ of a body in one go. `lattice` are fields of `LatticeParams` besides those that the body gives:
    `material` and `anchored` (which masses hold fast) at least; `stiffest` is the material's own Young's modulus unless
    given. It looks like `look`, one of `viscera.view.LOOKS`. With `texels` it has a skin, with so many along a side.
    With `burns` its lattice has room for burnt tissue, which is stiffer, at the price of more substeps."""
    from viscera.skin import make_skin
    from viscera.tissue.burning import with_burn_headroom

    missing = [field for field in ("material", "anchored") if field not in lattice]
    if missing:
        raise InputError(f"organ {name!r} needs {' and '.join(missing)}.", "See docs/scenarios.md for an example.")
    _refuse_unknown(name, lattice)
    for material in (lattice["material"], *lattice.get("further", ())):
        material.check_units()
    lattice.setdefault("stiffest", lattice["material"].young)
    params = LatticeParams(nodes=body.nodes, spacing=body.spacing, origin=body.origin, **lattice)
    skin = None if texels is None else make_skin(body.mesh, width=texels, device=device)
    tissue = make_lattice(device, with_burn_headroom(params) if burns else params)
    return make_organ(name, look, body, tissue, skin)


BY_BODY = ("nodes", "spacing", "origin")
"""Fields of `LatticeParams` that a body gives."""
OWN_WORDS = ("look", "texels", "burns")
"""What `organ` takes besides them."""


def _refuse_unknown(name: str, lattice: dict[str, Any]) -> None:
    """A slip of the pen in a field's name."""
    known = dict.fromkeys([*(one.name for one in fields(LatticeParams) if one.name not in BY_BODY), *OWN_WORDS])
    for word in lattice:
        if word in BY_BODY:
            raise InputError(f"organ {name!r}: {word} comes from its body.", "Leave it out.")
        if word not in known:
            raise InputError(f"organ {name!r} has no {word!r}.", closest_names(word, known))


def cuttable(
    name: str,
    body: Body,
    tissue: Tissue,
    *,
    look: str = "tissue",
    texels: int | None = None,
    room: int = 1_500,
    inside: bool = False,
    outside: int = 0,
) -> Organ:
    """An organ that blades can cut. Its surface is the dual of its lattice (geometry/linked_surface.py), on the body's
    own mesh; `room` is how many links may be cut, about the side of a cell each. With `inside` its cut faces have
    texels too: blood runs over them, heat and burns live on them. `outside` is how many points its uncut surface may
    have, where that differs from seed to seed: what a page is sent must be of one size."""
    from viscera.skin import make_skin
    from viscera.skin.spare import make_spare_skin
    from viscera.world.cut_surface import CutSurface

    let_cut(tissue)
    cuts = CutSurface(body.mesh, tissue, room, outside)
    beside = tissue.device.beside
    if inside and texels is None:
        raise InputError(f"{name}: cut faces with texels need a skin.", "Give `texels` too, as texels=256.")
    if texels is None:
        skin = None
    elif inside:
        skin = make_spare_skin(cuts.mesh, cuts.quads, cuts.points, body.spacing, texels, beside)
    else:
        skin = make_skin(cuts.mesh, width=texels, device=beside)
    return make_organ(name, look, replace(body, mesh=cuts.mesh), tissue, skin, cuts)


def make_organ(
    name: str, look: str, body: Body, tissue: Tissue, skin: Skin | None = None, cuts: CutSurface | None = None
) -> Organ:
    """The organ as a world has it: its surface hangs on its lattice, and its skin, made of the body's mesh, on that."""
    if look not in LOOKS:
        raise InputError(f"organ {name!r} cannot look like {look!r}.", closest_names(look, LOOKS))
    held = embed(body.mesh.vertices, body.nodes, body.origin, body.spacing)
    touch_surface(tissue, body.mesh)
    device = tissue.device.warp
    if cuts is not None:
        return _make_cut(name, look, body, tissue, skin, cuts)
    vertices = wp.zeros(len(body.mesh.vertices), dtype=wp.vec3, device=device) if skin is None else skin.vertices
    return Organ(
        name=name,
        look=look,
        body=body,
        tissue=tissue,
        rest=wp.array(body.mesh.vertices.astype(np.float32), dtype=wp.vec3, device=device),
        places=wp.array(tissue.layout.slot_of_node[held.indices], dtype=wp.int32, device=device),
        weights=wp.array(held.weights.astype(np.float32), dtype=wp.float32, device=device),
        vertices=vertices,
        shadow=Shadow(tissue, tissue.device.beside),
        floor=Floor(body.mesh, tissue),
        skin=skin,
        notes=(*body.mesh.notes, *(() if skin is None else skin.atlas.notes)),
    )


def _make_cut(name: str, look: str, body: Body, tissue: Tissue, skin: Skin | None, cuts: CutSurface) -> Organ:
    device = tissue.device.warp
    rest, places, weights = cuts.arrays()
    vertices = wp.array(rest, dtype=wp.vec3, device=device)
    if skin is not None:
        # It follows the same vertices, also those that a cut adds.
        skin.stand_on(vertices)
        cuts.paint(skin)
    return Organ(
        name=name,
        look=look,
        body=body,
        tissue=tissue,
        rest=wp.array(rest, dtype=wp.vec3, device=device),
        places=wp.array(places, dtype=wp.int32, device=device),
        weights=wp.array(weights, dtype=wp.float32, device=device),
        vertices=vertices,
        shadow=Shadow(tissue, tissue.device.beside),
        floor=Floor(body.mesh, tissue),
        skin=skin,
        notes=(*body.mesh.notes, *(() if skin is None else skin.atlas.notes)),
        cuts=cuts,
    )


def point(values: NDArray[np.float64]) -> Point:
    return (float(values[0]), float(values[1]), float(values[2]))


def load_organ(path: Path) -> TriangleMesh:
    """The closed mesh of a file; refuses any other, and one of too many triangles. What is odd but can be used (several
    parts, one inside the other, surfaces that pass through each other) is in its notes."""
    from viscera.geometry.inspect import require_closed, with_oddities
    from viscera.geometry.mesh import load_mesh

    return with_oddities(require_closed(load_mesh(path, most=MOST_TRIANGLES)))


def on_the_table(mesh: TriangleMesh) -> TriangleMesh:
    """The mesh with its box centred over the origin and its lowest point at z = 0."""
    low, high = mesh.bounds
    return mesh.moved([-0.5 * (low[0] + high[0]), -0.5 * (low[1] + high[1]), -low[2]])


def fill(mesh: TriangleMesh, masses: int) -> Body:
    """The body inside a closed mesh, with about so many masses."""
    from viscera.geometry.voxels import lattice_for_count

    voxels = lattice_for_count(mesh, masses)
    if len(voxels.nodes) < FEWEST_MASSES:
        raise InputError(f"{mesh.name} gives only {len(voxels.nodes)} masses.", "Use a larger or less thin organ.")
    return Body(mesh, voxels.nodes, point(np.asarray(voxels.origin)), float(voxels.spacing))


def block(cells: tuple[int, int, int], spacing: float) -> Body:
    """A block of so many cells of `spacing` [m] with rounded edges, over the origin, its underside at z = 0."""
    from viscera.geometry.primitives import rounded_slab

    size = np.array(cells) * spacing
    axes = [np.arange(count + 1, dtype=np.int32) for count in cells]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    origin = (-0.5 * float(size[0]), -0.5 * float(size[1]), 0.0)
    return Body(rounded_slab(size, centre=(0.0, 0.0, 0.5 * float(size[2]))), nodes, origin, spacing)


def surface_height(vertices: NDArray[Any], x: float, y: float) -> float:
    """Of the upper side of a slab over this place of the table: a plane through the nearest vertices [m]."""
    return _plane_over(_upper_half(vertices), x, y)


def _upper_half(vertices: NDArray[Any]) -> NDArray[Any]:
    return vertices[vertices[:, 2] >= 0.5 * vertices[:, 2].max()]


def _plane_over(vertices: NDArray[Any], x: float, y: float) -> float:
    """Through the nearest ones, and not beyond them [m]."""
    away = (vertices[:, 0] - x) ** 2 + (vertices[:, 1] - y) ** 2
    few = min(6, len(away))
    near = vertices[np.sort(np.argpartition(away, few - 1)[:few])].astype(np.float64)
    plane = np.stack([np.ones(len(near)), near[:, 0] - x, near[:, 1] - y], axis=1)
    fitted = float(np.linalg.lstsq(plane, near[:, 2], rcond=None)[0][0])
    return min(max(fitted, float(near[:, 2].min())), float(near[:, 2].max()))
