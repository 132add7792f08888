"""What two film particles do to each other, and the arrays that hold them in sorted order while a step runs.

With x_ij = x_j − x_i, r = |x_ij|, q = r/h < 1, r̂ = x_ij/r (Clavet, Beaudoin and Poulin 2005,
doi:10.1145/1073368.1073400; Kvick §3.5.3–4, which prints q as r itself):

    viscosity      u = (v_i − v_j)·r̂ > 0:    I = dt (1 − q)(σ u + β u²) r̂,    v_i ← v_i − I/2
    density        ρ_i = Σ (1 − q)²,    ρ_i^near = Σ (1 − q)³
    pressure       P_i = k (ρ_i − ρ₀),    P_i^near = k_near ρ_i^near
    displacement   D = dt² (P (1 − q) + P^near (1 − q)²) r̂,    x_i ← x_i − D
    closeness      1 − q is multiplied by `pooling` where surfaces face each other across a gap, and is 0 back to back
    separation     P ← P + S |φ_i − φ_j| between fluids of different phase φ (Kvick §6.2.8 relies on the constants,
                   which separate fluids slowly and only in part)

In the original a pair meets twice, once in the loop of either particle, and each time both move by half of what the
loop's own pressure gives. Together that is D with P = (P_i + P_j)/2: a gather that needs no atomics and keeps
momentum. The document's GPU variant (§3.6.6) takes P = P_i and leaves the ½ of the viscosity out: `one_sided`.

Differs from the source: all pairs see the same velocities and positions, so the order of particles does not matter
(there they are updated inside the loop). A pair's dt (σ + β u) is at most `MOST_VISCOUS` per particle's share: more
would turn an approach round (a remark of the source, which can lean on its order: there a pair sees what the one
before has left). Two particles at one place push each other apart along a fixed direction,
which the source leaves undefined.
"""

from __future__ import annotations

import warp as wp

from viscera.blood.film.params import MOST_VISCOUS

wp.set_module_options({"enable_backward": False})

SAME_PLACE = wp.constant(1.0e-5)
"""Particles closer than this part of the radius count as being this far apart, along `APART`."""

APART = wp.constant(wp.vec3(0.6, 0.64, 0.48))
"""Unit vector from the earlier to the later of two particles at one place; no axis, so no organ's face is normal to it
for long."""

BACK_TO_BACK = wp.constant(-0.2)
"""Cosine between normals below which two particles that lie behind each other's surface are on two sides of one wall.
A ridge is such a wall where it is narrower than a radius of curvature of 0.65 h."""

FACING = wp.constant(-0.7)
"""Cosine below which two particles in front of each other's surface are on two surfaces that face each other. Walls of
a valley up to 67° steep are one surface, and so is a hollow with a radius of curvature above 0.54 h."""

VISCOUS = wp.constant(MOST_VISCOUS)


@wp.struct
class FilmView:
    """What never changes."""

    capacity: int
    chunk: int
    """Particles per thread where kernels say so: 1 on cuda; on cpu more, see native.py."""
    team: int
    """Threads per particle in the native loops: 1 on cpu; a power of two up to 32 on cuda."""
    radius: float
    """h [m]"""
    reach: float
    """Farthest move before particles push each other [m]."""
    on_surface: int
    """1 on a surface in space, 0 on a sheet."""
    wrap: int
    width: float
    height: float
    """Of the sheet [texel]."""
    columns: int
    rows: int
    """Of the sheet's maps."""
    images: int
    """Copies of a point to search around: 9 where the sheet wraps, else 1."""
    half: float
    """Part of the viscous impulse a particle takes: ½, one-sided 1."""
    own: float
    other: float
    """Weights of P_i and P_j: ½ and ½, one-sided 1 and 0."""
    atomic: int
    """1 on cuda, where integer sums are atomic; on cpu one thread adds up."""


@wp.struct
class Rates:
    """Live numbers of a step; from an array, as scalars are frozen when a program is recorded. Components of vec4: one
    per fluid."""

    dt: float
    gravity: wp.vec3
    max_speed: float
    pooling: float
    lifetime: float
    rest: wp.vec4
    stiffness: wp.vec4
    near: wp.vec4
    linear: wp.vec4
    quadratic: wp.vec4
    traction: wp.vec4
    phase: wp.vec4
    clots: wp.vec4
    dissolves: wp.vec4
    separation: float
    dilution: float
    clot_rate: float
    clot_speed: float
    clot_hold: float
    line_hold: float
    """Of a lone particle's contact line [m/s²]."""
    dissolve_rate: float
    spring_stiffness: float
    plasticity: float
    yield_ratio: float


@wp.struct
class Sorted:
    """Particles in sorted order; shape (capacity + LANES,) for what native loops read, one array per axis."""

    count: wp.array(dtype=wp.int32)
    """Particles that take part in this step; shape (1,)."""
    x: wp.array(dtype=float)
    y: wp.array(dtype=float)
    z: wp.array(dtype=float)
    """Where the step began [m]."""
    vx: wp.array(dtype=float)
    vy: wp.array(dtype=float)
    vz: wp.array(dtype=float)
    """Velocity with gravity [m/s]."""
    px: wp.array(dtype=float)
    py: wp.array(dtype=float)
    pz: wp.array(dtype=float)
    """Predicted position [m]."""
    dx: wp.array(dtype=float)
    dy: wp.array(dtype=float)
    dz: wp.array(dtype=float)
    """Displacement of the whole step [m]."""
    nx: wp.array(dtype=float)
    ny: wp.array(dtype=float)
    nz: wp.array(dtype=float)
    """Normal of the triangle."""
    linear: wp.array(dtype=float)
    quadratic: wp.array(dtype=float)
    """σ [1/s] and β [1/m]."""
    pressure: wp.array(dtype=float)
    near_pressure: wp.array(dtype=float)
    """P and P_near [m/s²]."""
    phase: wp.array(dtype=float)
    density: wp.array(dtype=float)
    stiff: wp.array(dtype=wp.vec3)
    """k, k_near [m/s²] and ρ₀."""
    hits: wp.array(dtype=wp.uint64)
    """On cpu: blocks with neighbours at the predicted positions, noted by density (`neighbors.blocks`)."""


@wp.struct
class Carried:
    """The rest of a particle, in sorted order; shape (capacity + LANES,)."""

    face: wp.array(dtype=wp.int32)
    barycentric: wp.array(dtype=wp.vec2)
    volume: wp.array(dtype=wp.int32)
    fluid: wp.array(dtype=wp.vec4)
    mixed: wp.array(dtype=wp.vec4)
    """Concentrations after mixing."""
    solvent: wp.array(dtype=float)
    """What dissolves clots, around a particle, 0 … 1."""
    clot: wp.array(dtype=float)
    age: wp.array(dtype=float)


@wp.func
def image_shift(view: FilmView, k: int, here: wp.vec3, margin: float):
    """Offset of copy `k` of a point on a sheet that wraps, and whether anything near it can lie on the sheet."""
    shift = wp.vec3(0.0, 0.0, 0.0)
    near = bool(True)
    if k > 0:
        column = float((k + 1) % 3 - 1)
        row = float(((k + 4) // 3) % 3 - 1)
        shift = wp.vec3(column * view.width, row * view.height, 0.0)
        x = here[0] + shift[0]
        y = here[1] + shift[1]
        near = x > -margin and x < view.width + margin and y > -margin and y < view.height + margin
    return shift, near


@wp.func
def apart(view: FilmView, offset: wp.vec3, own: int, other: int) -> wp.vec3:
    """`offset`, or a short one along `APART` where two particles share a place."""
    least = SAME_PLACE * view.radius
    result = offset
    if wp.dot(offset, offset) < least * least:
        side = least
        if own > other:
            side = -least
        result = wp.vec3(APART[0] * side, APART[1] * side, APART[2] * side * float(view.on_surface))
    return result


@wp.func
def touch(view: FilmView, film: Sorted, own: int, other: int, offset: wp.vec3, pooling: float) -> float:
    """By how much two particles within the radius are one film: 0 back to back on two sides of a thin body, `pooling`
    where two surfaces face each other (two organs that touch, a fold), else 1."""
    result = float(1.0)
    if view.on_surface != 0:
        n = wp.vec3(film.nx[own], film.ny[own], film.nz[own])
        m = wp.vec3(film.nx[other], film.ny[other], film.nz[other])
        alike = wp.dot(n, m)
        if alike < FACING:
            result = pooling
        if alike < BACK_TO_BACK and wp.dot(offset, n - m) <= 0.0:
            result = 0.0
    return result


@wp.func
def viscous_push(
    offset: wp.vec3, approach: wp.vec3, radius: float, linear: float, quadratic: float, most: float
) -> wp.vec3:
    """−I/dt of particle i; `approach` = v_i − v_j; `most` is the largest σ + β u [1/s]."""
    length = wp.length(offset)
    along = offset / length
    u = wp.dot(approach, along)
    push = wp.vec3(0.0, 0.0, 0.0)
    if u > 0.0:
        push = along * (-(1.0 - length / radius) * u * wp.min(linear + quadratic * u, most))
    return push


@wp.func
def most_viscous(view: FilmView, dt: float) -> float:
    """Largest σ + β u [1/s]."""
    return VISCOUS / (view.half * wp.max(dt, 1.0e-30))


@wp.func
def closeness(offset: wp.vec3, radius: float) -> float:
    """1 − q"""
    return 1.0 - wp.length(offset) / radius


@wp.func
def pressure_push(offset: wp.vec3, w: float, pressure: float, near_pressure: float) -> wp.vec3:
    """−D/dt² of particle i; w = 1 − q."""
    return offset * (-(pressure * w + near_pressure * w * w) / wp.length(offset))


@wp.func
def place(film: Sorted, s: int) -> wp.vec3:
    return wp.vec3(film.x[s], film.y[s], film.z[s])


@wp.func
def predicted(film: Sorted, s: int) -> wp.vec3:
    return wp.vec3(film.px[s], film.py[s], film.pz[s])


@wp.func
def speed(film: Sorted, s: int) -> wp.vec3:
    """Velocity with gravity [m/s]."""
    return wp.vec3(film.vx[s], film.vy[s], film.vz[s])
