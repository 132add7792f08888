"""`kernels.splat` and `finish.soften` in C for cpu, sixteen texels at once.

Splat: texels side by side in a row lie in two or three cells of the search, and see mostly the same particles. So each
of these is read once and its weight computed for all of them, without sums over lanes at the end. A texel sums in the
order of the plain kernel; who is too far for it adds 0, so its sum is the same whoever is beside it. What stands in a
pool is added and the picture painted before the next sixteen are looked at: sixteen that were and are dry cost three
comparisons.

Soften: sixteen texels in a row away from a chart's border (`Texels.row_of_sixteen`) have their neighbours in the three
rows around them; others go by the table of neighbours.

All of a thread's texels are one call: what is passed to a Warp function is copied, here a kilobyte.
"""

from __future__ import annotations

import warp as wp

from viscera.blood.columns import DRY, FLAT, NO_GROUND, OVERHANG
from viscera.blood.picture.kernels import AROUND, LEVEL, SELDOM, TILE, Look, Painting, Sources, Texels
from viscera.native import fill, on_cpu
from viscera.neighbors.cells import GridView

wp.set_module_options({"enable_backward": False})

WIDE = 3
"""Texels whose cells are less than this apart along each axis look at their particles together."""

_NORMAL = """
const I face = 3 * (in_row ? LOAD_INT(view.face.data + texel[0]) : FETCH_INT(view.face.data, texel));
const V nx = FETCH(normals, face), ny = FETCH(normals, face + 1), nz = FETCH(normals, face + 2);
"""
"""As `texel_normal`."""

_SEE = fill(
    """
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
volume *= scale; blood *= scale; dye *= scale; clot *= scale;
""",
    wide=WIDE,
)
"""As `thickness_at`."""

_POOL = fill(
    """
const V u = (px - pool.left) / pool.side - 0.5f, v = (py - pool.front) / pool.side - 0.5f;
const V fu = FLOOR(u), fv = FLOOR(v);
const I i0 = INTEGER(fu), j0 = INTEGER(fv);
const M inside = over & (i0 >= FILL_INT(0)) & (j0 >= FILL_INT(0))
    & (i0 + 1 < FILL_INT(pool.columns)) & (j0 + 1 < FILL_INT(pool.rows));
V weight = FILL(0.0f), level = FILL(0.0f), deep = FILL(0.0f);
V lowest = FILL(1.0e30f), highest = FILL(-1.0e30f), ground = FILL(-1.0e30f);
M rim = FILL_INT(0);
I column[4];
V share[4];
UNROLL for (int k = 0; k < 4; ++k) {
    const int a = k % 2, b = k / 2;
    const I n = inside ? (j0 + b) * pool.columns + i0 + a : FILL_INT(0);
    const V bottom = FETCH(pool.ground.data, n), here = FETCH(pool.level.data, n);
    const M wet = inside & (here > FILL($dry));
    const V part = AT_LEAST(ABS((float)(1 - a) - (u - fu)) * ABS((float)(1 - b) - (v - fv)), 1.0e-6f);
    column[k] = n;
    share[k] = wet ? part : FILL(0.0f);
    ground = AT_LEAST(bottom, ground);
    rim |= bottom == FILL($no_ground);
    weight += share[k];
    level += share[k] * here;
    deep += wet ? share[k] * (here - bottom) : FILL(0.0f);
    lowest = wet ? AT_MOST(here, lowest) : lowest;
    highest = wet ? AT_LEAST(here, highest) : highest;
}
const V per_weight = 1.0f / AT_LEAST(weight, 1.0e-20f);
const V still = AT_MOST(AT_LEAST(1.0f - (highest - lowest) / $flat, 0.0f), 1.0f);
const V smooth = still * (level * per_weight - pz) + (1.0f - still) * AT_MOST(weight, 1.0f) * (deep * per_weight);
const M covered = (weight > FILL(0.0f)) & (pz > ground - $overhang * pool.side) & (smooth > FILL(0.0f));
depth = covered ? smooth : FILL(0.0f);
over = depth > FILL(0.0f);
if (ANY(over)) {
    F amounts[16];
    EACH(c) {
        amounts[c] = (F)(0.0f);
        for (int k = 0; k < 4; ++k) {
            const N_anywhere& content = *(const N_anywhere*)(pool.content.data + 4 * column[k][c]);
            amounts[c] += share[k][c] * __builtin_convertvector(content, F);
        }
        const float all = amounts[c][0] + amounts[c][1] + amounts[c][2] + amounts[c][3];
        const float per_all = 1.0f / LARGER(all, 1.0e-20f);
        bloody[c] = look.blood >= 0 ? amounts[c][look.blood] * per_all : 0.0f;
        dyed[c] = look.dye >= 0 ? amounts[c][look.dye] * per_all : 0.0f;
    }
    // A wall below a rim has fluid running down it, and no pool.
    steep = rim ? FILL($steep) : FILL(0.0f);
}
""",
    no_ground=float(NO_GROUND),
    dry=float(DRY),
    flat=float(FLAT),
    overhang=float(OVERHANG),
    steep=float(LEVEL),
)
"""As `pooled_at` and `fluid_over`."""

_PAINT = """
const V low = FILL(look.edge_low), part = AT_MOST(AT_LEAST((volume - low) / (look.edge_high - low), 0.0f), 1.0f);
const V rise = volume < FILL(look.edge_high) ? part * part * (3.0f - 2.0f * part) : FILL(1.0f);
const V obstacle = in_row ? LOAD(view.obstacle.data + texel[0]) : FETCH(view.obstacle.data, texel);
const V full = volume * rise, above = AT_LEAST(full - obstacle, 0.0f);
const V left = rise * (above / AT_LEAST(full, 1.0e-20f)), fresh = volume * left;
blood *= left; dye *= left; clot *= left;
const V height = AT_LEAST(fresh, look.keep * before);
// Tiles with nothing but trails on them take turns.
const M still = fresh == FILL(0.0f), alone = still & (before == FILL(0.0f));
const V stays = alone ? FILL(look.seldom_keep) : FILL(look.trail_keep);
const V dries = alone ? FILL(look.seldom_drying) : FILL(look.drying);
const V glaze = AT_LEAST(AT_MOST(fresh, look.trail), stays * trail);
// What is left of the frame before keeps its mixture; a trail that nothing flows over dries.
const M there = height > FILL(0.0f);
const V rest = height - fresh, per_height = 1.0f / AT_LEAST(height, 1.0e-30f);
const V old1 = KEPT(1), old2 = KEPT(2), old3 = KEPT(3);
const V part1 = there ? (blood + rest * old1) * per_height : old1;
const V part2 = there ? (dye + rest * old2) * per_height : old2;
const V part3 = there ? (clot + rest * old3) * per_height : old3;
const V dried = still ? part3 + dries * (part1 - part3) : part3;
const V high = height < FILL(look.thinnest) ? FILL(0.0f) : height;
const V wet = glaze < FILL(look.thinnest) ? FILL(0.0f) : glaze;
const unsigned alive = BITS(~alone | fading) & ((1u << lanes) - 1u);
for (unsigned these = alive; these; these &= these - 1) {
    const int c = FIRST_BIT(these), t = texel[c];
    float* out = kept + 4 * (long)t;
    out[0] = high[c]; out[1] = part1[c]; out[2] = part2[c]; out[3] = dried[c];
    picture.trail.data[t] = wet[c];
}
if (alive && lanes == 16 && view.row_of_sixteen.data[i]) {
    // Of neighbours in the rows around, the first and the last column are enough: a tile is as wide as these are.
    const int first = texel[FIRST_BIT(alive)], last = texel[31 - __builtin_clz(alive)];
    for (int t = first - view.width, end_ = last - view.width, k = 0; k < 3; ++k, t += view.width, end_ += view.width) {
        picture.tile.data[TILE_OF(t - 1)] = now; picture.tile.data[TILE_OF(t)] = now;
        picture.tile.data[TILE_OF(end_)] = now; picture.tile.data[TILE_OF(end_ + 1)] = now;
    }
} else for (unsigned these = alive; these; these &= these - 1) {
    const int c = FIRST_BIT(these);
    picture.tile.data[TILE_OF(texel[c])] = now;
    if (!view.one_tile.data[i + c])
        for (int k = 0; k < $around; ++k)
            picture.tile.data[TILE_OF(view.around.data[(long)$around * (i + c) + k])] = now;
}
"""
"""As `paint`."""

_TILE_OF = "(((t_) >> view.columns) / $tile * view.tiles_x + ((t_) & (view.width - 1)) / $tile)"

_SPLAT = """
#define CELLS(p, axis, n) __builtin_convertvector( \\
    AT_MOST(AT_LEAST((p - grid.lower[axis]) * grid.cells_per_length, 0.0f), (float)(n - 1)), I)
#define LANES_OF(bits) ({ I lanes_; EACH(c_) lanes_[c_] = -(int)((bits) >> c_ & 1); lanes_; })
#define TENTHS_(a, b, k) __builtin_shufflevector(a, b, k, k + 3, k + 6, k + 9, k + 12, k + 15, k + 18, k + 21, k + 24, \
    k + 27, (k + 30) % 32, 0, 0, 0, 0, 0)
#define THIRD(a, b, d, k) __builtin_shufflevector(TENTHS_(a, b, k), d, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, \
    k < 2 ? 10 : k + 14, k + 17, k + 20, k + 23, k + 26, k + 29)
#define LATER(a, b) ((a) > (b) ? (a) : (b))
#define FLOOR(v) __builtin_elementwise_floor(v)
#define INTEGER(v) __builtin_convertvector(v, I)
#define TILE_OF(t_) $tile_of
typedef float F __attribute__((ext_vector_type(4)));
typedef int N_anywhere __attribute__((ext_vector_type(4), aligned(4)));
#define KEPT(k) (in_row ? FOURTH(kept, texel[0], k) : FETCH(kept, 4 * texel + k))
const float per = 1.0f / (look.radius * look.radius), scale = look.scale, facing = look.facing;
const float* position = (const float*)view.position.data;
const float* normals = (const float*)view.normal.data;
const auto& pool = view.pool;
const bool pooled = pool.wet.data[0] > 0;
float* kept = (float*)picture.kept.data;
const int now = picture.frame.data[0];
for (int i = begin; i < end; i += 16) {
    const int lanes = end - i < 16 ? end - i : 16;
    I texel;
    if (lanes == 16) texel = LOAD_INT(view.texels.data + i);
    else EACH(c) texel[c] = view.texels.data[c < lanes ? i + c : end - 1];
    const bool in_row = texel[15] - texel[0] == 15;
    V px, py, pz;
    if (in_row) {
        const float* at = position + 3 * (long)texel[0];
        const V a = LOAD(at), b = LOAD(at + 16), d = LOAD(at + 32);
        px = THIRD(a, b, d, 0); py = THIRD(a, b, d, 1); pz = THIRD(a, b, d, 2);
    } else EACH(c) {
        const float* at = position + 3 * (long)texel[c];
        px[c] = at[0]; py[c] = at[1]; pz[c] = at[2];
    }
    const I cx = CELLS(px, 0, grid.cells_x), cy = CELLS(py, 1, grid.cells_y), cz = CELLS(pz, 2, grid.cells_z);
    const I cell = (cz * grid.cells_y + cy) * grid.cells_x + cx;
    unsigned todo = BITS(FETCH_INT(picture.near.data, cell) == FILL_INT(now));
    M over = FILL_INT(0);
    if (pooled) {
        const I column = INTEGER(FLOOR((px - pool.left) * pool.per_metre));
        const I row = INTEGER(FLOOR((py - pool.front) * pool.per_metre));
        const M within = (column >= FILL_INT(0)) & (row >= FILL_INT(0)) & (column < FILL_INT(pool.columns))
            & (row < FILL_INT(pool.rows));
        const I at = within ? row * pool.columns + column : FILL_INT(0);
        over = within & (FETCH_INT(pool.near.data, at) != FILL_INT(0));
        // Under an overhang, as the other side of an organ is: nothing of a pool is seen there.
        if (ANY(over)) over &= pz > FETCH(pool.ground.data, at) - $overhang * pool.side;
    }
    // Who was painted marked its tile then: most of what is dry is not even read.
    const int tile0 = TILE_OF(texel[0]), tile1 = TILE_OF(texel[15]);
    const int since = now - LATER(picture.tile.data[tile0], picture.tile.data[tile1]);
    const bool turn = ((tile0 + now) & ($seldom - 1)) == 0 || ((tile1 + now) & ($seldom - 1)) == 0;
    if (!todo && !ANY(over) && in_row && !look.document && since > (turn ? $seldom : 1)) continue;
    const V before = look.document ? FETCH(picture.soft.data, texel) : KEPT(0);
    const V trail = in_row ? LOAD(picture.trail.data + texel[0]) : FETCH(picture.trail.data, texel);
    const M due = ((TILE_OF(texel) + now) & ($seldom - 1)) == FILL_INT(0), fading = due & (trail != FILL(0.0f));
    if (!todo && !ANY(over | fading | (before != FILL(0.0f)))) continue;
    V volume = FILL(0.0f), blood = FILL(0.0f), dye = FILL(0.0f), clot = FILL(0.0f);
    V depth = FILL(0.0f), bloody = FILL(0.0f), dyed = FILL(0.0f), steep = FILL(0.0f);
    if (ANY(over)) {
        $pool
    }
    if (todo || ANY(over)) {
        $normal
        if (todo) {
            $see
        }
        const V deep = nz > steep ? depth : FILL(0.0f);
        volume += deep; blood += deep * bloody; dye += deep * dyed;
    }
    $paint
}
"""

_SPLAT = fill(
    _SPLAT,
    normal=_NORMAL,
    see=_SEE,
    pool=_POOL,
    paint=fill(_PAINT, around=int(AROUND)),
    overhang=float(OVERHANG),
    seldom=SELDOM,
    tile_of=fill(_TILE_OF, tile=TILE),
)


@wp.func_native(on_cpu(_SPLAT))
def splat_all(begin: int, end: int, grid: GridView, look: Look, view: Texels, sources: Sources, picture: Painting): ...


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
    splat_all(begin, wp.min(begin + chunk, view.texels.shape[0]), grid, looks[0], view, sources, picture_out)


_MEAN = fill(
    """
#define TILE_OF(t_) $tile_of
#define BYTE(v) __builtin_convertvector(AT_MOST(AT_LEAST(v, 0.0f), 1.0f) * 255.0f + 0.5f, I)
#define BYTE1(x) ((unsigned)(SMALLER(LARGER(x, 0.0f), 1.0f) * 255.0f + 0.5f))
const float* kept = (const float*)picture.kept.data;
const float* trail = picture.trail.data;
const int now = picture.frame.data[0];
for (int i = begin; i < end;) {
    const int t = view.texels.data[i];
    const bool row = i + $tile <= end && view.row_of_sixteen.data[i];
    const bool written = picture.tile.data[TILE_OF(t)] == now
        || (row && picture.tile.data[TILE_OF(t + $tile - 1)] == now);
    if (written && row) {
        V total = FILL(0.0f), blood = FILL(0.0f), dye = FILL(0.0f), clot = FILL(0.0f);
        for (int dy = -1; dy <= 1; ++dy) for (int dx = -1; dx <= 1; ++dx) {
            const int at = t + dy * view.width + dx;
            const V height = AT_LEAST(FOURTH(kept, at, 0), LOAD(trail + at));
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
    } else if (written) {
        float total = 0.0f, blood = 0.0f, dye = 0.0f, clot = 0.0f;
        for (int k = -1; k < $around; ++k) {
            const int at = k < 0 ? t : view.around.data[(long)$around * i + k];
            const float* one = kept + 4 * (long)at;
            const float height = LARGER(one[0], trail[at]);
            total += height; blood += height * one[1]; dye += height * one[2]; clot += height * one[3];
        }
        const float mean = total / 9.0f;
        picture.soft.data[t] = mean;
        picture.pixel.data[t] = total > 0.0f ? BYTE1(ROOT1(mean / look.thickest)) | BYTE1(blood / total) << 8
            | BYTE1(dye / total) << 16 | BYTE1(clot / total) << 24 : 0u;
    }
    i += row ? $tile : 1;
}
""",
    tile=TILE,
    around=int(AROUND),
    tile_of=fill(_TILE_OF, tile=TILE),
)


@wp.func_native(on_cpu(_MEAN))
def soften_all(begin: int, end: int, view: Texels, look: Look, picture: Painting): ...


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
    soften_all(begin, wp.min(begin + chunk, view.texels.shape[0]), view, looks[0], picture_out)
