"""The colon with its nozzle, drain, walls and coating, and what stands in the beam."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import warp as wp

from viscera import water, xray
from viscera.anatomy.colon import TRIANGLES, Centreline, centreline_of, colon, course_of
from viscera.anatomy.midline import find_midline
from viscera.anatomy.polyps import Polyps, with_polyps
from viscera.anatomy.torso import spine, torso
from viscera.device import Device
from viscera.errors import InputError
from viscera.geometry.mesh import FloatArray, TriangleMesh, load_mesh
from viscera.geometry.refine import part_below
from viscera.geometry.topology import components
from viscera.scenarios import Setting
from viscera.scenarios.barium.body import Body
from viscera.timing import FRAME
from viscera.view import Surface
from viscera.water import ContactParams, FluidParams
from viscera.water.boundary.field import make_field
from viscera.water.boundary.moving_density import SEEN_FROM
from viscera.water.boundary.walls import Structure
from viscera.water.coating import CoatingParams, make_coating
from viscera.water.params import largest_step
from viscera.world.systems.bowel import Bowel
from viscera.world.systems.bowel_lattice import BowelLattice
from viscera.world.systems.coat_picture import unrolled_surface
from viscera.world.systems.enema import AIMED, Enema, Living, aimed_frames, gravity
from viscera.xray import CArm, Cloud, Scene, Solid, XrayParams
from viscera.xray.materials import AIR, BONE, SOFT_TISSUE, Material, barium_suspension

CAPACITY = 1_300
SPACING = 0.0075
"""[m]; together 550 mL, as an enema has."""
SUSPENSION = barium_suspension(400.0)
"""40 % w/v, single contrast."""
VISCOSITY = 0.2
"""[Pa·s], of barium suspensions for enemas at the shear rates of a bowel; suspensions are thinner where sheared."""
ITERATIONS = 12
"""Of the incompressible solver: tuned so that density stays within 1 % in the mean."""
FASTEST = 0.55
"""Speed that the step is made for [m/s]; suspension that falls through a colon on its side runs 0.4 m/s."""
FRICTION = 0.1
NOZZLE = 0.009
"""Radius of the enema's tip [m]."""
DEPTH = 0.035
"""Of the tip in the rectum, along the lumen [m]."""
TAP = 0.018
"""Radius of the ball at the anus that an open drain takes from [m]."""
PIXELS = 384
POLYPS = 3
ROOM = 0.02
"""How far a wall that moves may leave its box and stay quick [m]."""


@dataclass(frozen=True, eq=False)
class Lumen:
    """A colon, and where its rectum is."""

    mesh: TriangleMesh
    tip: FloatArray
    """Of the nozzle [m]."""
    along: FloatArray
    """Unit vector of the stream."""
    anus: FloatArray
    """Middle of the drain [m]."""
    plain: TriangleMesh
    """The same without polyps: what the open view shows."""
    polyps: Polyps
    """That a seed hides; a mesh of the user's own has none."""
    line: Centreline | None = None
    course: FloatArray | None = None
    """Centreline and control points; None for a mesh of the user's own whose wall hangs on no single line: it is
    rigid."""


def find_lumen(setting: Setting, body: Body | None = None) -> Lumen:
    """A colon of the seed, or the user's mesh."""
    if setting.mesh is not None:
        mesh = load_mesh(setting.mesh)
        return _lumen_of(mesh if body is None else body.place(mesh), setting)
    plain = colon(setting.seed, setting.number("triangles", TRIANGLES))
    line = centreline_of(plain, setting.seed)
    mesh, polyps = with_polyps(plain, line, setting.seed, POLYPS)
    at, anus = (int(np.searchsorted(line.lengths, depth)) for depth in (DEPTH, 0.4 * DEPTH))
    return Lumen(
        mesh, line.points[at], line.tangents[at], line.points[anus], plain, polyps, line, course_of(plain, setting.seed)
    )


def _lumen_of(mesh: TriangleMesh, setting: Setting) -> Lumen:
    """The lowest place of a mesh that has room for the nozzle is its rectum."""
    links = mesh.triangles.astype(np.int64)
    parts = components(len(mesh.vertices), links.ravel(), np.roll(links, -1, axis=1).ravel())
    lumens = len(np.unique(parts[links[:, 0]]))
    if lumens > 1:
        raise InputError(f"{mesh.name} has {lumens} parts.", "A study needs one lumen: give a mesh of one part.")
    mesh = mesh.moved(-mesh.centre)
    spacing = setting.length(SPACING)
    field = make_field(mesh, 0.5 * spacing, NOZZLE + spacing, setting.device)
    deep = np.argwhere(field.grid.values.numpy() < -(NOZZLE + 0.5 * spacing))
    if len(deep) == 0:
        raise InputError(
            f"{mesh.name} is nowhere wide enough for the nozzle.",
            f"Its lumen must be at least {2e3 * (NOZZLE + 0.5 * spacing):.0f} mm wide; the unit is metres.",
        )
    points = np.asarray(field.grid.origin) + field.spacing * deep
    tip = points[points[:, 1].argmin()]
    none = Polyps(np.zeros((0, 3)), np.zeros(0))
    course, line = find_midline(mesh, tip, setting.device) or (None, None)
    return Lumen(mesh, tip, np.array([0.0, 1.0, 0.0]), tip - (0.0, spacing, 0.0), mesh, none, line, course)


def make_enema(lumen: Lumen, setting: Setting, structure: Structure = "hashed") -> Enema:
    """`structure` is how the wall's triangles are found; as a `field` it is rigid."""
    device, spacing = setting.device, setting.length(SPACING)
    params = _params(lumen.mesh, spacing, 1e-9)
    steps = math.ceil(FRAME / (0.99 * largest_step(params)))
    fluid = water.make(_params(lumen.mesh, spacing, FRAME / steps), capacity=setting.count(CAPACITY), device=device)
    moves = lumen.line is not None and structure != "field"
    # A wall that moves is seen about as far as kernels reach: from there comes its share in the density.
    seen = {"deforming": structure == "hashed", "room": ROOM, "reach": SEEN_FROM * fluid.params.radius} if moves else {}
    walls = water.make_walls(lumen.mesh, radius=0.5 * spacing, device=device, structure=structure, **seen)
    x, y, z = (float(one) for one in lumen.along)
    emitter = water.add_emitter(fluid, lumen.tip.tolist(), (0.1 * x, 0.1 * y, 0.1 * z), NOZZLE)
    still = water.WallVolume(fluid, lumen.mesh)
    fluid.boundaries.append(still)
    vessel = water.add_vessel(fluid, walls, ContactParams(friction=FRICTION), parts=AIMED * steps)
    drain = water.add_drain(fluid, ball=(lumen.anus.tolist(), TAP))
    fluid.boundaries.remove(drain)  # it acts once per frame
    coating = make_coating(fluid, lumen.mesh, CoatingParams(viscosity=VISCOSITY))
    return Enema(
        fluid, vessel, coating, emitter, (x, y, z), drain, steps,
        wp.zeros(fluid.capacity, dtype=float, device=device.warp),
        wp.zeros(len(coating.film), dtype=float, device=device.warp),
        _living(lumen, fluid, walls, still) if moves else None,
    )  # fmt: skip


def _living(lumen: Lumen, fluid: water.Fluid, walls: water.Walls, still: water.WallVolume) -> Living | None:
    """What moves the wall of a colon by rule."""
    if lumen.line is None or lumen.course is None:
        return None
    shown = opened(lumen.plain, lumen.line)
    points = {
        "wall": lumen.mesh.vertices, "shown": shown.rest, "polyps": lumen.polyps.middle,
    }  # fmt: skip
    lattice = BowelLattice(lumen.line, fluid, aimed_frames(walls) * FRAME)
    along = {name: np.asarray(one, dtype=np.float64) for name, one in points.items()}
    bowel = Bowel(lumen.course, lumen.line, along, lattice)
    # Summed over all triangles around it takes 23 ms of a core more in a frame, which two cores do not have.
    bent = 1.0 / float(lumen.line.radii.mean())
    share = water.MovingWallVolume(fluid, walls, curvature=bent, nearest=True)
    return Living(bowel, shown, share, still, lumen.mesh.triangles)


def opened(mesh: TriangleMesh, line: Centreline | None = None) -> Surface:
    """The back wall alone, turned inside out: seen from the front, the colon is open and what runs in it is seen. It is
    cut along the line where the wall turns to the front, not along the edges of triangles. Where it has a centreline
    the film on it is painted."""
    back = part_below(mesh, mesh.vertex_normals[:, 2])
    triangles = back.triangles[:, ::-1].copy()
    rest = back.vertices.astype(np.float32)
    surface = Surface("colon", "tissue", triangles, "colon", len(back.vertices), rest=rest)
    return surface if line is None else unrolled_surface(surface, line)


def _params(mesh: TriangleMesh, spacing: float, dt: float) -> FluidParams:
    low, high = (tuple(float(one) for one in corner) for corner in mesh.bounds)
    return FluidParams(
        spacing, low, high, dt=dt, equation="incompressible", iterations=ITERATIONS, rest_density=SUSPENSION.density,
        viscosity=VISCOSITY, gravity=gravity(0.0, 0.0), fastest=FASTEST,
    )  # fmt: skip


def fill_up(lumen: Lumen, enema: Enema) -> None:
    """As much as the capacity allows, at once: the lowest places of the lumen."""
    fluid = enema.fluid
    if water.count(fluid) > 0:
        return
    spacing = fluid.params.spacing
    field = make_field(lumen.mesh, spacing, spacing, fluid.device)
    inside = np.argwhere(field.grid.values.numpy() < -0.55 * spacing)
    points = np.asarray(field.grid.origin) + spacing * inside
    lowest = points[np.argsort(points[:, 2], kind="stable")][: int(0.95 * fluid.capacity)]
    water.add(fluid, lowest)


def make_machine(lumen: Lumen, enema: Enema, setting: Setting, body: Body | None = None) -> xray.Xray:
    """A C-arm over trunk and spine or a scan of a patient, the lumen's air, suspension and coating."""
    device: Device = setting.device
    mesh, coating = lumen.mesh, enema.coating
    patches = wp.array([len(coating.film)], dtype=wp.int32, device=device.warp)
    edge = math.sqrt(float(coating.area.numpy().mean()))
    suspension: Material = SUSPENSION
    scene = Scene(
        solids=[
            *(_trunk(mesh) if body is None else ()),
            # A volume is projected again only when the C-arm turns, so beside one the wall is what moves.
            Solid(enema.vessel.walls.vertices, mesh.triangles, AIR, displaces=SOFT_TISSUE, moving=body is not None),
        ],
        scans=[] if body is None else [body.around(lumen.mesh, device)],
        clouds=[
            Cloud(enema.fluid.position, enema.fluid.count, enema.volume, 1.5 * enema.fluid.params.spacing, suspension),
            Cloud(coating.middle, patches, enema.film_volume, 1.2 * edge, suspension),
        ],
    )
    return xray.make(scene, XrayParams(arm=CArm(pixels=PIXELS), seed=setting.seed), device=device)


def _trunk(mesh: TriangleMesh) -> list[Solid]:
    """Trunk and spine around a colon. Its wall is soft tissue in soft tissue: 2 mm of the same attenuation as what is
    around it, so no mesh of its own would change a ray."""
    trunk, bones = torso(), spine()
    # The trunk of a larger colon is larger.
    needed = 1.2 * float((np.abs(mesh.vertices) / np.abs(trunk.vertices).max(axis=0)).max())
    return [
        Solid(max(1.0, needed) * trunk.vertices, trunk.triangles, SOFT_TISSUE),
        Solid(bones.vertices, bones.triangles, BONE, displaces=SOFT_TISSUE),
    ]
