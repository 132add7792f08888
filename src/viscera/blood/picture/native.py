"""`kernels.splat` and `finish.soften` in C for cpu, sixteen texels at once.

Splat: texels side by side in a row lie in two or three cells of the search, and see mostly the same particles. So each
of these is read once and its weight computed for all of them, without sums over lanes at the end. A texel sums in the
order of the plain kernel; who is too far for it adds 0, so its sum is the same whoever is beside it.

Soften: sixteen texels in a row away from a chart's border (`Texels.row_of_sixteen`) have their neighbours in the three
rows around them; others take the plain way.
"""

from __future__ import annotations

import warp as wp

from viscera.blood.columns import is_near
from viscera.blood.picture.finish import soften_texel
from viscera.blood.picture.kernels import (
    TILE,
    Look,
    Painting,
    Sources,
    Texels,
    paint,
    pooled_at,
    texel_normal,
    tile_of,
)
from viscera.native import fill, on_cpu
from viscera.neighbors.cells import GridView

wp.set_module_options({"enable_backward": False})

WIDE = 3
"""Texels whose cells are less than this apart along each axis look at their particles together."""

_SEE = fill(
    """
#define CELLS(p, axis, n) __builtin_convertvector( \
    AT_MOST(AT_LEAST((p - grid.lower[axis]) * grid.cells_per_length, 0.0f), (float)(n - 1)), I)
#define LANES_OF(bits) ({ I lanes_; EACH(c_) lanes_[c_] = -(int)((bits) >> c_ & 1); lanes_; })
const float per = 1.0f / (look.radius * look.radius), scale = look.scale, facing = look.facing;
const float* position = (const float*)view.position.data;
const float* vertices = (const float*)view.vertices.data;
const int* corners = (const int*)view.triangles.data;
const int now = picture.frame.data[0];
for (int i = begin; i < end; i += 16) {
    const int lanes = end - i < 16 ? end - i : 16;
    I texel;
    V px, py, pz;
    EACH(c) {
        texel[c] = view.texels.data[c < lanes ? i + c : end - 1];
        const float* at = position + 3 * (long)texel[c];
        px[c] = at[0]; py[c] = at[1]; pz[c] = at[2];
    }
    const I cx = CELLS(px, 0, grid.cells_x), cy = CELLS(py, 1, grid.cells_y), cz = CELLS(pz, 2, grid.cells_z);
    const I cell = (cz * grid.cells_y + cy) * grid.cells_x + cx;
    unsigned todo = BITS(FETCH_INT(picture.near.data, cell) == FILL_INT(now));
    V volume = FILL(0.0f), blood = FILL(0.0f), dye = FILL(0.0f), clot = FILL(0.0f);
    if (todo) {
        const I face = FETCH_INT(view.face.data, texel);
        const I ta = 3 * FETCH_INT(corners, 3 * face), tb = 3 * FETCH_INT(corners, 3 * face + 1);
        const I tc = 3 * FETCH_INT(corners, 3 * face + 2);
        const V ax = FETCH(vertices, ta), ay = FETCH(vertices, ta + 1), az = FETCH(vertices, ta + 2);
        const V ex = FETCH(vertices, tb) - ax, ey = FETCH(vertices, tb + 1) - ay, ez = FETCH(vertices, tb + 2) - az;
        const V fx = FETCH(vertices, tc) - ax, fy = FETCH(vertices, tc + 1) - ay, fz = FETCH(vertices, tc + 2) - az;
        V nx = ey * fz - ez * fy, ny = ez * fx - ex * fz, nz = ex * fy - ey * fx;
        const V unit = 1.0f / AT_LEAST(ROOT(nx * nx + ny * ny + nz * nz), 1.0e-30f);
        nx *= unit; ny *= unit; nz *= unit;
        while (todo) {
            // Those in and around the cell of the first one, and the box of their cells.
            const int one = FIRST_BIT(todo);
            const M beside = (ABS(cx - cx[one]) < FILL_INT($wide)) & (ABS(cy - cy[one]) < FILL_INT($wide));
            const unsigned mine = todo & BITS(beside & (ABS(cz - cz[one]) < FILL_INT($wide)));
            todo &= ~mine;
            int x0 = cx[one], x1 = x0, y0 = cy[one], y1 = y0, z0 = cz[one], z1 = z0;
            EACH(c) {
                if (!(mine >> c & 1)) continue;
                x0 = cx[c] < x0 ? cx[c] : x0; x1 = cx[c] > x1 ? cx[c] : x1;
                y0 = cy[c] < y0 ? cy[c] : y0; y1 = cy[c] > y1 ? cy[c] : y1;
                z0 = cz[c] < z0 ? cz[c] : z0; z1 = cz[c] > z1 ? cz[c] : z1;
            }
            x0 = x0 > 0 ? x0 - 1 : 0; x1 = x1 < grid.cells_x - 1 ? x1 + 1 : x1;
            y0 = y0 > 0 ? y0 - 1 : 0; y1 = y1 < grid.cells_y - 1 ? y1 + 1 : y1;
            z0 = z0 > 0 ? z0 - 1 : 0; z1 = z1 < grid.cells_z - 1 ? z1 + 1 : z1;
            const M these = LANES_OF(mine);
            for (int z = z0; z <= z1; ++z) for (int y = y0; y <= y1; ++y) {
                const int* start = grid.cell_start.data + (z * grid.cells_y + y) * grid.cells_x;
                for (int s = start[x0]; s < start[x1 + 1]; ++s) {
                    const V ox = sources.x.data[s] - px, oy = sources.y.data[s] - py, oz = sources.z.data[s] - pz;
                    const V q = 1.0f - (ox * ox + oy * oy + oz * oz) * per;
                    const M near = these & (q > FILL(0.0f));
                    const V turned = sources.nx.data[s] * nx + sources.ny.data[s] * ny + sources.nz.data[s] * nz;
                    const V weight = (near & (turned > FILL(facing))) ? q * q * q : FILL(0.0f);
                    volume += weight * sources.volume.data[s];
                    blood += weight * sources.blood.data[s];
                    dye += weight * sources.dye.data[s];
                    clot += weight * sources.clot.data[s];
                }
            }
        }
    }
    for (int c = 0; c < lanes; ++c) {
        auto& out = picture.seen.data[i + c];
        out[0] = scale * volume[c]; out[1] = scale * blood[c]; out[2] = scale * dye[c]; out[3] = scale * clot[c];
    }
}
""",
    wide=WIDE,
)


@wp.func_native(on_cpu(_SEE))
def see_sixteens(
    begin: int, end: int, grid: GridView, look: Look, view: Texels, sources: Sources, picture: Painting
): ...


@wp.kernel
def splat_sixteens(
    first: int,
    # params
    grid: GridView,
    view: Texels,
    looks: wp.array(dtype=Look),
    chunk: int,
    # in
    sources: Sources,
    # out
    picture_out: Painting,
):
    begin = (first + wp.tid()) * chunk
    end = wp.min(begin + chunk, view.texels.shape[0])
    look = looks[0]
    see_sixteens(begin, end, grid, look, view, sources, picture_out)
    pooled = view.pool.wet[0] > 0
    for i in range(begin, end):
        seen = picture_out.seen[i]
        if pooled:
            t = view.texels[i]
            if is_near(view.pool, view.position[t]):
                seen += pooled_at(view, look, view.position[t], texel_normal(view, t))
        paint(view, look, picture_out, i, seen)


_MEAN = """
#define BYTE(v) __builtin_convertvector(AT_MOST(AT_LEAST(v, 0.0f), 1.0f) * 255.0f + 0.5f, I)
const int t = view.texels.data[i];
const float* kept = (const float*)picture.kept.data;
V total = FILL(0.0f), blood = FILL(0.0f), dye = FILL(0.0f), clot = FILL(0.0f);
for (int dy = -1; dy <= 1; ++dy) for (int dx = -1; dx <= 1; ++dx) {
    const int at = t + dy * view.width + dx;
    const V height = AT_LEAST(FOURTH(kept, at, 0), LOAD(picture.trail.data + at));
    total += height;
    blood += height * FOURTH(kept, at, 1);
    dye += height * FOURTH(kept, at, 2);
    clot += height * FOURTH(kept, at, 3);
}
const V mean = total / 9.0f, per = 1.0f / AT_LEAST(total, 1.0e-30f);
const I mixture = (BYTE(blood * per) << 8) | (BYTE(dye * per) << 16) | (BYTE(clot * per) << 24);
const I pixel = BYTE(ROOT(mean / look.thickest)) | mixture;
STORE(picture.soft.data + t, mean);
STORE_INT((int*)picture.pixel.data + t, total > FILL(0.0f) ? pixel : FILL_INT(0));
"""


@wp.func_native(on_cpu(_MEAN))
def soften_row(view: Texels, look: Look, picture: Painting, i: int): ...


@wp.kernel
def soften_sixteens(
    first: int,
    # params
    view: Texels,
    looks: wp.array(dtype=Look),
    chunk: int,
    # out
    picture_out: Painting,
):
    """Where one of a row's two tiles was written all sixteen are: what stands beside it comes out as it was."""
    begin = (first + wp.tid()) * chunk
    end = wp.min(begin + chunk, view.texels.shape[0])
    look = looks[0]
    now = picture_out.frame[0]
    i = wp.int32(begin)
    while i < end:
        if i + TILE <= end and view.row_of_sixteen[i] != 0:
            t = view.texels[i]
            if picture_out.tile[tile_of(view, t)] == now or picture_out.tile[tile_of(view, t + TILE - 1)] == now:
                soften_row(view, look, picture_out, i)
            i += TILE
        else:
            soften_texel(view, look, picture_out, i)
            i += 1
