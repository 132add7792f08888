"""Contacts in C for what most particles at a wall do: slide along one triangle they remember. For cpu.

Half of the water in a shallow river touches its bed, and asks for nothing more than one plane: it is a radius away, its
way is short, no shape is near, and where the way ends no other triangle is nearer. Then the answer is that of
meeting.py with one plane, in the same order of operations. So it is where a hashed mesh moves, as a bowel's wall does:
the plane has its velocity, and pushes out whom it has come too near to. Whoever needs more (a list that is no longer
good, a fold, a shape, no room to be pushed out) goes the plain way, from the beginning.
"""

from __future__ import annotations

import warp as wp

from viscera.native import fill, on_cpu
from viscera.water.boundary.known import FACES, Known
from viscera.water.boundary.meeting import PUSH, SLOP, ContactRule, Touch, meet
from viscera.water.boundary.triangles_hashed import ROUNDING
from viscera.water.boundary.walls import HASHED, LEAST, WallsView

wp.set_module_options({"enable_backward": False})

CHUNK = 32
"""Particles per thread: Warp copies a kernel's arguments for every thread, here a kilobyte."""
_CHUNK = wp.constant(CHUNK)

_MEET = fill(
    """
#define DOT(a, b) (a[0] * b[0] + a[1] * b[1] + a[2] * b[2])
#define SQUARE(x) ((x) * (x))
#define APART(a, b) ROOT1(SQUARE(a[0] - b[0]) + SQUARE(a[1] - b[1]) + SQUARE(a[2] - b[2]))
const float radius = rule.radius, slop = $slop, rounding = 1.0f + $rounding;
const auto& known = known_before.data[i];
const auto& at = before.data[i];
auto& target = position.data[i];
const float moved = walls.moved.data[0], turned = walls.moved.data[1], clear = known.clear - moved;
const float* centre = (const float*)&known.ball;
const float from_centre = APART(at, centre);
const auto take = [&]() {
    auto& now = known_out.data[i];
    now.ball = known.ball;
    now.ball[3] -= turned;
    now.clear = clear;
    now.shapes = known.shapes - moved;
    now.count = known.count;
    if (known.count > 0) {
        now.faces = known.faces;
        now.away = known.away;
        if (turned > 0.0f) for (int k = 0; k < $faces; ++k) now.away[k] -= turned;
    }
};
if (turned > 0.0f && walls.structure != $hashed) return 0;
if (from_centre < clear && APART(target, centre) <= clear - 1.001f * radius) {
    take();
    touch.face.data[i] = -1;
    touch.kick.data[i] = wp::vec_t<3, wp::float32>();
    return 1;
}
const float left[3] = {target[0] - at[0], target[1] - at[1], target[2] - at[2]};
const float whole = ROOT1(DOT(left, left));
const float need = 1.001f * radius + SMALLER(whole, 0.25f * radius);
const float listed = known.ball[3] - turned, good = listed - from_centre, shapes = known.shapes - moved - from_centre;
if (known.count == 0 || !(whole < 1.0e15f) || good < need || (walls.shape_count > 0 && shapes < need)) return 0;

// The nearest of the listed triangles: its distance, its number, the place on it and the way from there.
const float* corners = (const float*)walls.corners.data;
const auto nearest = [&](const float* point, float away_from_centre, float* weights, float* offset, int& face) {
    float best = 1.0e30f, most = 1.0e15f;
    const float shift = away_from_centre * rounding;
    face = -1;
    for (int k = 0; k < known.count; ++k) {
        if (known.away[k] - turned - shift > most) break;
        const float* p = corners + 9L * known.faces[k];
        float e[3], f[3], to0[3], to1[3], to2[3], w[3];
        for (int c = 0; c < 3; ++c) {
            e[c] = p[3 + c] - p[c]; f[c] = p[6 + c] - p[c];
            to0[c] = point[c] - p[c]; to1[c] = point[c] - p[3 + c]; to2[c] = point[c] - p[6 + c];
        }
        const float a1 = DOT(e, to0), a2 = DOT(f, to0), b1 = DOT(e, to1), b2 = DOT(f, to1);
        const float c1 = DOT(e, to2), c2 = DOT(f, to2);
        const float area2 = a1 * b2 - b1 * a2, area1 = c1 * a2 - a1 * c2, area0 = b1 * c2 - c1 * b2;
        w[0] = w[1] = w[2] = 0.0f;
        if (a1 <= 0.0f && a2 <= 0.0f) w[0] = 1.0f;
        else if (b1 >= 0.0f && b2 <= b1) w[1] = 1.0f;
        else if (c2 >= 0.0f && c1 <= c2) w[2] = 1.0f;
        else if (area2 <= 0.0f && a1 >= 0.0f && b1 <= 0.0f) {
            w[1] = a1 / LARGER(a1 - b1, 1.0e-30f);
            w[0] = 1.0f - w[1];
        } else if (area1 <= 0.0f && a2 >= 0.0f && c2 <= 0.0f) {
            w[2] = a2 / LARGER(a2 - c2, 1.0e-30f);
            w[0] = 1.0f - w[2];
        } else if (area0 <= 0.0f && b2 - b1 >= 0.0f && c1 - c2 >= 0.0f) {
            w[2] = (b2 - b1) / LARGER((b2 - b1) + (c1 - c2), 1.0e-30f);
            w[1] = 1.0f - w[2];
        } else {
            const float all = LARGER(area0 + area1 + area2, 1.0e-30f);
            w[0] = area0 / all; w[1] = area1 / all; w[2] = area2 / all;
        }
        float way[3];
        for (int c = 0; c < 3; ++c) way[c] = point[c] - (w[0] * p[c] + w[1] * p[3 + c] + w[2] * p[6 + c]);
        const float square = DOT(way, way);
        if (square < best || (square == best && known.faces[k] < face)) {
            best = square;
            most = ROOT1(square) * rounding;
            face = known.faces[k];
            for (int c = 0; c < 3; ++c) { offset[c] = way[c]; weights[c] = w[c]; }
        }
    }
    return ROOT1(best);
};

const float here[3] = {at[0], at[1], at[2]};
float weights[3], n[3];
int face;
const float distance = nearest(here, from_centre, weights, n, face);
if (face < 0 || distance > good) return 0;
// Whom a wall has come too near to is pushed out, by a part of a radius at most.
const bool deep = !(distance > (1.0f - slop) * radius);
if (deep && (turned == 0.0f || distance < $least * radius)) return 0;
float keep = SMALLER(radius, distance);
if (deep) keep = distance < (1.0f - $push) * radius ? distance + $push * radius : radius;
const float free = walls.shape_count > 0 ? SMALLER(distance, shapes) : distance;
const float most = LARGER(free - $least * radius, 0.5f * free);
if (whole > most) return 0;
for (int c = 0; c < 3; ++c) n[c] /= distance;

float carried[3] = {0.0f, 0.0f, 0.0f};  // the wall's velocity
if (turned > 0.0f) {
    const auto& table = walls.table.data[0];
    for (int k = 0; k < 3; ++k) {
        const auto& corner = table.velocity.data[table.indices.data[3L * face + k]];
        for (int c = 0; c < 3; ++c) carried[c] += weights[k] * corner[c];
    }
}

// What comes of a way or a velocity at one plane, with what must be left of it along the normal; a wall that moves
// takes it along for `time`, and being pushed out of it (a limit above 0) presses on nothing.
const auto& velocity = speed.data[i];
const float approach[3] = {velocity[0] - carried[0], velocity[1] - carried[1], velocity[2] - carried[2]};
const float bounce = DOT(n, approach) < -rule.rest_speed ? rule.restitution : 0.0f;
const auto obey = [&](const float* wanted, float limit, float meets, float time, float pushed, float* out) {
    const float along = DOT(n, wanted);
    const float press = LARGER(limit + bounce * LARGER(meets - along, 0.0f) - along, 0.0f);
    for (int c = 0; c < 3; ++c) out[c] = wanted[c] + press * n[c];
    if (rule.friction > 0.0f) {
        const float hold = rule.friction * LARGER(press - pushed, 0.0f);
        float slip[3], drag[3];
        for (int c = 0; c < 3; ++c) slip[c] = out[c] - time * carried[c];
        const float still = DOT(n, slip);
        for (int c = 0; c < 3; ++c) drag[c] = -(slip[c] - still * n[c]);
        const float size = ROOT1(DOT(drag, drag));
        const float part = size > hold ? hold / size : 1.0f;
        for (int c = 0; c < 3; ++c) out[c] += part * drag[c];
    }
};
const float limit = keep - distance;
const bool plane = distance - whole < keep;
float way[3] = {left[0], left[1], left[2]};
if (plane) obey(left, limit, SMALLER(limit, 0.0f), step, LARGER(limit, 0.0f), way);
const float length = ROOT1(DOT(way, way));
if (!(length <= most)) return 0;
const float there[3] = {at[0] + way[0], at[1] + way[1], at[2] + way[2]};
if (length > 1.0e-3f * slop * radius && free - length < radius) {
    const float away = APART(there, centre);
    if (listed - away < keep || (walls.shape_count > 0 && known.shapes - moved - away < keep)) return 0;
    float w[3], o[3];
    int other;
    const float then = nearest(there, away, w, o, other);
    if (then < keep - 0.1f * slop * radius || (deep && then < free)) return 0;
}
const bool touches = plane && (DOT(n, left) < limit || DOT(n, way) <= limit + slop * radius);
take();
touch.face.data[i] = -1;
float kept[3] = {velocity[0], velocity[1], velocity[2]};
if (touches) {
    const float arrived[3] = {velocity[0], velocity[1], velocity[2]};
    const float fast = DOT(n, carried);
    obey(arrived, fast, fast, 1.0f, 0.0f, kept);
    if (distance < 1.5f * radius) {
        touch.face.data[i] = face;
        for (int c = 0; c < 3; ++c) touch.weights.data[i][c] = weights[c];
    }
}
for (int c = 0; c < 3; ++c) {
    touch.kick.data[i][c] = kept[c] - velocity[c];
    target[c] = there[c];
}
for (int c = 0; c < 3; ++c) speed.data[i][c] = kept[c];
return 1;
""",
    slop=SLOP,
    push=PUSH,
    rounding=ROUNDING,
    least=LEAST,
    faces=int(FACES),
    hashed=int(HASHED),
)


# Whether it was simple; what is not is left as it came.
@wp.func_native(on_cpu(_MEET, fused=False) + "\nreturn 0;")
def meet_simply(
    walls: WallsView,
    rule: ContactRule,
    i: int,
    step: float,
    before: wp.array(dtype=wp.vec3),
    known_before: wp.array(dtype=Known),
    position: wp.array(dtype=wp.vec3),
    speed: wp.array(dtype=wp.vec3),
    known_out: wp.array(dtype=Known),
    touch: Touch,
) -> int: ...


@wp.kernel
def meet_walls_simply(
    first: int,
    # params
    walls: WallsView,
    rules: wp.array(dtype=ContactRule),
    # in
    count: wp.array(dtype=wp.int32),
    dt: wp.array(dtype=float),
    tag: wp.array(dtype=wp.int32),
    before: wp.array(dtype=wp.vec3),
    known_before: wp.array(dtype=Known),
    # out
    position_out: wp.array(dtype=wp.vec3),
    velocity_out: wp.array(dtype=wp.vec3),
    known_out: wp.array(dtype=Known),
    touch_out: Touch,
):
    """`meeting.meet_walls`. A thread takes `CHUNK` particles."""
    begin = (first + wp.tid()) * _CHUNK
    rule = rules[0]
    t = dt[0]
    for i in range(begin, wp.min(begin + _CHUNK, count[0])):
        if tag[i] >= 0:
            done = meet_simply(
                walls, rule, i, t, before, known_before, position_out, velocity_out, known_out, touch_out
            )
            if done == 0:
                meet(walls, rule, i, t, before, known_before, position_out, velocity_out, known_out, touch_out)
