"""`kernels.move_on` in C for what most particles do: 16 at once, each inside the triangle where it lies. For cpu.

A particle moves a few hundredths of a millimetre in a step, a triangle is millimetres wide. So nearly all stay on their
triangle; where nothing stands in their way there (`WalkView.free`), the step is a few dozen operations, the same for
all of them. Who crosses an edge, meets an obstacle or is not finite is marked `WALKS`, and goes the way of the plain
kernel afterwards. Which way a particle goes depends on itself alone, never on who is sorted beside it.
"""

from __future__ import annotations

import warp as wp

from viscera.blood.film.kernels import INNER, SETTLED, SMALL_DRAG, Home, move_particles
from viscera.blood.film.obstacles import Sheeted
from viscera.blood.film.pairs import Carried, FilmView, Rates, Sorted
from viscera.blood.film.state import EXPIRED, STAYS
from viscera.blood.film.walk import WalkView
from viscera.native import fill, on_cpu

wp.set_module_options({"enable_backward": False})

WALKS = wp.constant(-1)
"""Fate, for as long as the kernel runs, of who is left to the plain way."""

_MOVE = fill(
    """
#define KEEP(array, store, v) if (lanes == 16) store((array).data + s, v); \
    else for (int c = 0; c < lanes; ++c) (array).data[s + c] = (v)[c]
#define DOT4(a, b) (FOURTH(a, s, 0) * b[0] + FOURTH(a, s, 1) * b[1] + FOURTH(a, s, 2) * b[2] + FOURTH(a, s, 3) * b[3])
const auto& rate = rates.data[0];
const float dt = rate.dt, radius = view.radius;
const float* vertices = (const float*)surface.vertices.data;
const float* normals = (const float*)surface.vertex_normal.data;
const int* corners = (const int*)surface.triangles.data;
for (int s = first_place; s < last_place; s += 16) {
    const int lanes = last_place - s < 16 ? last_place - s : 16;
    // How far, and what the surface and a clot take of it.
    const V clot = LOAD(cargo.clot.data + s), drag = dt * DOT4(cargo.fluid.data, rate.traction);
    const V held = drag * rate.clot_hold * clot * clot * clot;
    const V part = held > FILL($small) ? (1.0f - EXP(-held)) / AT_LEAST(held, $small) : 1.0f - 0.5f * held;
    V dx = LOAD(film.dx.data + s) * part, dy = LOAD(film.dy.data + s) * part, dz = LOAD(film.dz.data + s) * part;
    // What the contact line holds.
    const V density = LOAD(film.density.data + s);
    V line = FILL(0.0f);
    if (rate.line_hold > 0.0f) {
        V settled;
        EACH(c) {
            const auto& stiff = film.stiff.data[s + c];
            settled[c] = stiff[2] * stiff[0] / LARGER(stiff[0] + $settling * stiff[1], 1.0e-30f);
        }
        const V inner = AT_LEAST(settled, 1.0e-30f) * $inner;
        line = dt * dt * rate.line_hold * AT_LEAST(1.0f - density / inner, 0.0f);
    }
    const V way = ROOT(dx * dx + dy * dy + dz * dz);
    const V less = AT_MOST(AT_LEAST(way - line, 0.0f), radius) / AT_LEAST(way, 1.0e-30f);
    dx *= less; dy *= less; dz *= less;
    // The triangle, the way in its plane, and where it ends.
    const I face = LOAD_INT(cargo.face.data + s);
    const I ta = 3 * FETCH_INT(corners, 3 * face), tb = 3 * FETCH_INT(corners, 3 * face + 1);
    const I tc = 3 * FETCH_INT(corners, 3 * face + 2);
    const V ax = FETCH(vertices, ta), ay = FETCH(vertices, ta + 1), az = FETCH(vertices, ta + 2);
    const V ex = FETCH(vertices, tb) - ax, ey = FETCH(vertices, tb + 1) - ay, ez = FETCH(vertices, tb + 2) - az;
    const V fx = FETCH(vertices, tc) - ax, fy = FETCH(vertices, tc + 1) - ay, fz = FETCH(vertices, tc + 2) - az;
    const V nx = ey * fz - ez * fy, ny = ez * fx - ex * fz, nz = ex * fy - ey * fx;
    const V per_size = 1.0f / AT_LEAST(nx * nx + ny * ny + nz * nz, 1.0e-37f);
    const V off = (dx * nx + dy * ny + dz * nz) * per_size;
    dx -= nx * off; dy -= ny * off; dz -= nz * off;
    const V second = ((dy * fz - dz * fy) * nx + (dz * fx - dx * fz) * ny + (dx * fy - dy * fx) * nz) * per_size;
    const V third = ((ey * dz - ez * dy) * nx + (ez * dx - ex * dz) * ny + (ex * dy - ey * dx) * nz) * per_size;
    V wb = second, wc = third;
    EACH(c) {
        wb[c] += cargo.barycentric.data[s + c][0];
        wc[c] += cargo.barycentric.data[s + c][1];
    }
    const V wa = 1.0f - wb - wc;
    const M stays = (wa >= FILL(0.0f)) & (wb >= FILL(0.0f)) & (wc >= FILL(0.0f))
                    & (FETCH_INT(surface.free.data, face) != FILL_INT(0)) & (per_size < FILL(1.0e37f))
                    & FILL_INT(dt > 0.0f ? -1 : 0);
    const V px = ax + wb * ex + wc * fx, py = ay + wb * ey + wc * fy, pz = az + wb * ez + wc * fz;
    V mx = wa * FETCH(normals, ta) + wb * FETCH(normals, tb) + wc * FETCH(normals, tc);
    V my = wa * FETCH(normals, ta + 1) + wb * FETCH(normals, tb + 1) + wc * FETCH(normals, tc + 1);
    V mz = wa * FETCH(normals, ta + 2) + wb * FETCH(normals, tb + 2) + wc * FETCH(normals, tc + 2);
    const V per_length = 1.0f / AT_LEAST(ROOT(mx * mx + my * my + mz * mz), 1.0e-30f);
    mx *= per_length; my *= per_length; mz *= per_length;
    // The velocity that is left.
    const V slow = EXP(-drag - held) / (part * dt);
    V vx = dx * slow, vy = dy * slow, vz = dz * slow;
    const V speed = ROOT(vx * vx + vy * vy + vz * vz);
    const V clamp = AT_MOST(rate.max_speed / AT_LEAST(speed, 1.0e-30f), 1.0f);
    vx *= clamp; vy *= clamp; vz *= clamp;
    // What it carries.
    const V age = LOAD(cargo.age.data + s) + dt;
    const M over = rate.lifetime > 0.0f ? age >= FILL(rate.lifetime) : FILL_INT(0) != FILL_INT(0);
    const I fate = stays ? (over ? FILL_INT($expired) : FILL_INT($staying)) : FILL_INT($walking);
    V grown = clot;
    if (mixes != 0) {
        const V able = DOT4(cargo.mixed.data, rate.clots), swift = speed * clamp / rate.clot_speed;
        const float time = dt * (float)mixes;
        grown = able - (able - clot) * EXP(-time * rate.clot_rate / (1.0f + swift * swift));
        grown = grown * EXP(-time * rate.dissolve_rate * LOAD(cargo.solvent.data + s));
        grown = AT_LEAST(AT_MOST(grown, AT_LEAST(able, 0.0f)), 0.0f);
    }
    const I volume = LOAD_INT(cargo.volume.data + s);
    KEEP(home.fate, STORE_INT, fate);
    KEEP(home.clot, STORE, grown);
    KEEP(home.age, STORE, age);
    KEEP(home.density, STORE, density);
    KEEP(home.face, STORE_INT, face);
    KEEP(home.volume, STORE_INT, volume);
    const auto* fluid = mixes != 0 ? cargo.mixed.data : cargo.fluid.data;
    for (int c = 0; c < lanes; ++c) {
        home.fluid.data[s + c] = fluid[s + c];
        auto& place = home.position.data[s + c];
        place[0] = px[c]; place[1] = py[c]; place[2] = pz[c];
        auto& up = home.normal.data[s + c];
        up[0] = mx[c]; up[1] = my[c]; up[2] = mz[c];
        auto& velocity = home.velocity.data[s + c];
        velocity[0] = vx[c]; velocity[1] = vy[c]; velocity[2] = vz[c];
        auto& weights = home.barycentric.data[s + c];
        weights[0] = wb[c]; weights[1] = wc[c];
    }
}
""",
    small=SMALL_DRAG,
    settling=SETTLED,
    inner=INNER,
    expired=int(EXPIRED),
    staying=int(STAYS),
    walking=int(WALKS),
)


@wp.func_native(on_cpu(_MOVE))
def move_sixteens(
    first_place: int,
    last_place: int,
    view: FilmView,
    mixes: int,
    rates: wp.array(dtype=Rates),
    surface: WalkView,
    film: Sorted,
    cargo: Carried,
    home: Home,
): ...


@wp.kernel
def move_on_triangles(
    first: int,
    # params
    view: FilmView,
    mixes: int,
    # in
    rates: wp.array(dtype=Rates),
    surface: WalkView,
    sheet: Sheeted,
    film: Sorted,
    cargo: Carried,
    # out
    home_out: Home,
):
    begin = (first + wp.tid()) * view.chunk
    end = wp.min(begin + view.chunk, film.count[0])
    move_sixteens(begin, end, view, mixes, rates, surface, film, cargo, home_out)
    move_particles(view, mixes, WALKS, rates[0], surface, sheet, film, cargo, begin, end, home_out)
