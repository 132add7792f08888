"""The skin: one texel for every point, areas that add up, seams that lead across and back, maps that follow."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import warp as wp

from viscera.anatomy import liver
from viscera.bench.skin import unrolled_ring
from viscera.device import Device, open_device
from viscera.errors import InputError
from viscera.geometry import TriangleMesh, icosphere, load_mesh, torus
from viscera.geometry.atlas import Atlas, AtlasSettings, unique_atlas
from viscera.geometry.coverage import cut_by_texels
from viscera.skin import Skin, cross_seam, gutter, make_skin, rebuild_skin

ORGANS = ("gallbladder", "liver")
SLOW_ORGANS = ("colon",)

OVERLAP = 1e-6
"""Part of the covered texture where a chart may lie on itself: none but on the colon's rough scan, where two texels
hold up to 0.2 % too much (1.5e-7 of all) although no triangle is flipped."""


def organ(name: str) -> TriangleMesh:
    folder = os.environ.get("VISCERA_ANATOMY")
    if not folder:
        pytest.skip("VISCERA_ANATOMY is not set: name a folder with liver.stl, gallbladder.stl and colon.stl")
    path = Path(folder) / f"{name}.stl"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return load_mesh(path)


SHAPES = {
    "sphere": lambda: icosphere(0.05, 4),
    "ring": lambda: torus(0.06, 0.02, 64, 24),
    "procedural liver": lambda: liver(edge=0.008),
    **{name: lambda name=name: organ(name) for name in (*ORGANS, *SLOW_ORGANS)},
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("atlases")


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.slow if name in SLOW_ORGANS else ()) for name in SHAPES],
)
def skin(request: pytest.FixtureRequest, cache: Path) -> Skin:
    mesh = SHAPES[request.param]()
    # A real organ's atlas takes up to a minute: it goes where it is found again.
    where = None if request.param in (*ORGANS, *SLOW_ORGANS) else cache
    return make_skin(mesh, unique_atlas(mesh, AtlasSettings(256), where), 256, device=open_device("cpu"))


@pytest.fixture(scope="module")
def sphere(cache: Path) -> tuple[TriangleMesh, Atlas]:
    mesh = icosphere(0.05, 4)
    return mesh, unique_atlas(mesh, AtlasSettings(256), cache)


def surface_points(skin: Skin, count: int = 20_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random points, equally dense everywhere: their triangles, positions and texels (as column, row, not whole)."""
    rng = np.random.default_rng(1)
    area = np.linalg.norm(skin.mesh.face_vectors, axis=1)
    face = rng.choice(len(area), count, p=area / area.sum())
    root, turn = np.sqrt(rng.random(count)), rng.random(count)
    weights = np.stack([1 - root, root * (1 - turn), root * turn], axis=1)
    position = np.einsum("nk,nkd->nd", weights, skin.mesh.corners[face])
    uv = np.einsum("nk,nkd->nd", weights, skin.atlas.corners[face])
    return face, position, uv * (skin.width, skin.height)


def texel_size(skin: Skin) -> float:
    """Side of a typical texel [m]."""
    return float(np.sqrt(skin.mesh.area / skin.coverage.numpy().sum()))


def test_every_point_has_exactly_one_texel(skin: Skin) -> None:
    face, _, place = surface_points(skin)
    texel = np.floor(place).astype(int) @ (1, skin.width)
    pieces = cut_by_texels(skin.atlas.corners * skin.width, skin.width, skin.height)
    assert (skin.coverage.numpy()[texel] > 0.0).all()
    # The texel knows that this triangle lies in it …
    known = set(zip(pieces.texel.tolist(), pieces.face.tolist(), strict=True))
    assert all(pair in known for pair in zip(texel.tolist(), face.tolist(), strict=True))
    # … and no other place of the surface lies there too: one chart per texel, and charts do not overlap themselves.
    chart = skin.atlas.chart[pieces.face]
    same = pieces.texel[1:] == pieces.texel[:-1]
    assert (chart[1:] == chart[:-1])[same].all()
    fill = np.bincount(pieces.texel, weights=pieces.weight)
    assert np.clip(fill - 1.0, 0.0, None).sum() < OVERLAP * fill.sum()


def test_texel_areas_add_up_to_the_mesh(skin: Skin) -> None:
    # Pieces are exact, so only float32 rounding and triangles without room in the atlas remain; 0.5 % is asked for.
    assert skin.area.numpy().sum(dtype=np.float64) == pytest.approx(skin.mesh.area, rel=1e-4)


def test_a_texel_lies_where_its_points_lie(skin: Skin) -> None:
    _, position, place = surface_points(skin)
    texel = np.floor(place).astype(int) @ (1, skin.width)
    u, v = skin.tangent_u.numpy()[texel], skin.tangent_v.numpy()[texel]
    offset = place - np.floor(place) - skin.node.numpy()[texel]
    predicted = skin.position.numpy()[texel] + offset[:, :1] * u + offset[:, 1:] * v
    # First order: what is left is the bend of the surface within a texel.
    error = np.linalg.norm(predicted - position, axis=1)
    assert np.median(error) < 0.05 * texel_size(skin)
    assert np.quantile(error, 0.999) < 1.0 * texel_size(skin)


def test_seam_maps_are_each_others_inverse(skin: Skin) -> None:
    seams = skin.seams
    numbers = np.arange(len(seams))
    assert len(seams) > 0
    rng = np.random.default_rng(2)
    uv = seams.ends[:, 0].mean(axis=1) + rng.normal(0.0, 0.01, (len(seams), 2))
    there_and_back = cross_seam(seams, numbers, 1, cross_seam(seams, numbers, 0, uv))
    assert np.abs(there_and_back - uv).max() < 1e-6
    for end in (0, 1):
        assert np.abs(cross_seam(seams, numbers, 0, seams.ends[:, 0, end]) - seams.ends[:, 1, end]).max() < 1e-12


def test_links_cover_every_seam_once_and_join_neighbours(skin: Skin) -> None:
    links, seams = skin.links, skin.seams
    share = np.bincount(links.seam, weights=links.part, minlength=len(seams))
    assert np.abs(share - 1.0).max() < 1e-5
    position = skin.position.numpy()
    gap = np.linalg.norm(position[links.texel[:, 0]] - position[links.texel[:, 1]], axis=1)
    # Stretch varies over the atlas: a wide texel may be some typical ones across.
    assert np.quantile(gap, 0.99) < 3.0 * texel_size(skin)
    edge = skin.mesh.vertices[seams.vertex[links.seam]]
    middle = edge[:, 0] + links.middle[:, None] * (edge[:, 1] - edge[:, 0])
    for side in (0, 1):
        assert np.quantile(np.linalg.norm(position[links.texel[:, side]] - middle, axis=1), 0.99) < 2 * texel_size(skin)


def test_coverage_agrees_with_counting_points() -> None:
    """Two triangles at odd angles, against 200 × 200 samples per texel."""
    corners = np.array([[[1.3, 0.7], [6.9, 2.2], [2.1, 5.8]], [[6.9, 2.2], [5.5, 6.4], [2.1, 5.8]]])
    pieces = cut_by_texels(corners, 8, 8)
    grid = (np.arange(1600) + 0.5) / 200
    x, y = np.meshgrid(grid, grid)
    inside = np.zeros(x.shape, dtype=bool)
    for a, b, c in corners:
        sides = [(q - p)[0] * (y - p[1]) - (q - p)[1] * (x - p[0]) for p, q in ((a, b), (b, c), (c, a))]
        inside |= (np.minimum.reduce(sides) > 0) | (np.maximum.reduce(sides) < 0)
    counted = inside.reshape(8, 200, 8, 200).mean(axis=(1, 3)).ravel()
    fill = np.bincount(pieces.texel, weights=pieces.weight, minlength=64)
    assert np.abs(fill - counted).max() < 3e-3
    left = np.bincount(pieces.texel, weights=pieces.left, minlength=64)
    counted_left = inside[:, ::200].reshape(8, 200, 8).mean(axis=1).ravel()
    assert np.abs(left - counted_left).max() < 2e-2
    x_moment = np.bincount(pieces.texel, weights=pieces.weight * pieces.centroid[:, 0], minlength=64)
    assert np.abs(x_moment - (inside * (x % 1)).reshape(8, 200, 8, 200).mean(axis=(1, 3)).ravel()).max() < 3e-3


def test_sides_along_the_grid_are_open() -> None:
    """Triangles whose edges run exactly along texel sides, seen from both: each inner side is open once and wholly."""
    square = np.array([[[2.0, 2.0], [4.0, 2.0], [4.0, 4.0]], [[2.0, 2.0], [4.0, 4.0], [2.0, 4.0]]])
    shifts = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])
    pieces = cut_by_texels(np.concatenate([square + shift for shift in shifts]), 8, 8)
    left = np.bincount(pieces.texel, weights=pieces.left, minlength=64).reshape(8, 8)
    bottom = np.bincount(pieces.texel, weights=pieces.bottom, minlength=64).reshape(8, 8)
    assert left[2:4, 3:6] == pytest.approx(1.0)
    assert bottom[3:6, 2:4] == pytest.approx(1.0)
    assert left.max() == pytest.approx(1.0)


def test_maps_follow_a_stretch(device: Device, sphere: tuple[TriangleMesh, Atlas]) -> None:
    """x ↦ A x: tangents become A u, A v, and the metric follows; a turn changes no metric and no area."""
    skin = make_skin(*sphere, 256, device=device)
    covered = skin.texels.numpy()
    u, v, area = (m.numpy()[covered] for m in (skin.tangent_u, skin.tangent_v, skin.area))
    metric = skin.metric.numpy()[covered]
    program = device.record(lambda stage: rebuild_skin(stage, skin), work=skin.count)
    stretch = np.diag([2.0, 1.0, 0.5]) + 0.1
    angle = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    for matrix in (stretch, angle):
        moved = (skin.mesh.vertices @ matrix.T).astype(np.float32)
        wp.copy(skin.vertices, wp.array(moved, dtype=wp.vec3, device=device.warp))
        program.run()
        device.synchronize()
        assert np.abs(skin.tangent_u.numpy()[covered] - u @ matrix.T).max() < 1e-5 * np.abs(u).max()
        assert np.abs(skin.tangent_v.numpy()[covered] - v @ matrix.T).max() < 1e-5 * np.abs(v).max()
        expected = TriangleMesh(skin.mesh.vertices @ matrix.T, skin.mesh.triangles).area
        assert skin.area.numpy().sum(dtype=np.float64) == pytest.approx(expected, rel=1e-5)
    assert np.abs(skin.metric.numpy()[covered] - metric).max() < 1e-5 * metric.max()
    assert np.abs(skin.area.numpy()[covered] - area).max() < 1e-5 * area.max()


def test_maps_in_c_are_those_of_the_plain_kernel(sphere: tuple[TriangleMesh, Atlas], cpu: Device) -> None:
    """Pieces are added in the same order; only fused multiply-adds differ."""
    fast, plain = make_skin(*sphere, 256, device=cpu), make_skin(*sphere, 256, device=cpu)
    for name in ("tangent_u", "tangent_v", "metric", "area", "position"):
        getattr(plain, name).zero_()
    plain.forget()
    cpu.record(lambda stage: rebuild_skin(stage, plain, native=False)).run()
    for name in ("tangent_u", "tangent_v", "metric", "area", "position"):
        a, b = getattr(fast, name).numpy(), getattr(plain, name).numpy()
        assert np.abs(a - b).max() < 1e-6 * np.abs(b).max()


@pytest.mark.parametrize("native", [True, False])
def test_what_moved_is_made_anew_and_nothing_else_is(
    sphere: tuple[TriangleMesh, Atlas], cpu: Device, native: bool
) -> None:
    skin, whole = make_skin(*sphere, 256, device=cpu), make_skin(*sphere, 256, device=cpu)
    skin.forget()
    rebuild = cpu.record(lambda stage: rebuild_skin(stage, skin, native))
    rebuild.run()
    x = skin.vertices.numpy()
    x[x[:, 2] > 0.03] *= np.float32(1.1)
    for one in (skin, whole):
        one.vertices.assign(x)
    names = ("tangent_u", "tangent_v", "metric", "area", "position")
    whole.forget()
    cpu.record(lambda stage: rebuild_skin(stage, whole, native)).run()
    rebuild.run()
    for name in names:
        assert (getattr(skin, name).numpy() == getattr(whole, name).numpy()).all(), name
    skin.metric.zero_()
    rebuild.run()
    assert not skin.metric.numpy().any(), "nothing moved"


def test_finer_textures_use_the_same_atlas(sphere: tuple[TriangleMesh, Atlas]) -> None:
    fine = make_skin(*sphere, 512, 256)
    assert (fine.width, fine.height) == (512, 256)
    assert fine.area.numpy().sum(dtype=np.float64) == pytest.approx(sphere[0].area, rel=1e-5)
    assert fine.image(fine.coverage).shape == (256, 512)


def test_what_cannot_be_is_said(sphere: tuple[TriangleMesh, Atlas], cache: Path) -> None:
    with pytest.raises(InputError, match=r"width = 100 .*powers of two"):
        make_skin(*sphere, 100)
    ring = torus(0.06, 0.02, 64, 24)
    tight = unique_atlas(ring, AtlasSettings(1024), cache)
    with pytest.raises(InputError, match="too coarse for this atlas"):
        make_skin(ring, tight, 64)
    with pytest.raises(InputError, match="the atlas has"):
        make_skin(torus(0.06, 0.02), sphere[1], 256)


def test_a_gutter_repeats_what_lies_next_to_it() -> None:
    """Every texel of the first ring touches the covered texel it repeats; the second ring lies within two steps."""
    skin = make_skin(unrolled_ring(), width=256)
    covered = set(skin.texels.numpy().tolist())
    for rings in (1, 2):
        outside, repeated = gutter(skin, rings)
        assert covered.isdisjoint(outside.tolist())
        assert covered.issuperset(repeated.tolist())
        steps = np.abs(np.stack(np.divmod(outside, 256)) - np.stack(np.divmod(repeated, 256)))
        assert steps.max() == rings
        # None is left out: a texel that touches a covered one is covered or in the gutter.
        row, column = np.divmod(skin.texels.numpy(), 256)
        inner = (row > 0) & (row < 255) & (column > 0) & (column < 255)
        for step in (1, -1, 256, -256, 257, 255, -255, -257):
            assert (covered | set(outside.tolist())).issuperset((skin.texels.numpy()[inner] + step).tolist())
