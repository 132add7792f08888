"""Env steps per second of soft worlds with a probe in contact: MuJoCo, Newton and viscera, on cpu, in one run.

The protocol is that of Newton's issue 4141: 100 actions to warm up, 500 measured, random actions, resets included;
`--actions` and `--warm-up` take fewer. An action is 10 ms. Each world is a block of 16 × 8 × 8 = 1 024 masses 4 mm
apart, 3 kPa, ν = 0.4, held below, with a ball of 8 mm pressed 1 to 5 mm into it. Each project computes it as it does:

- MuJoCo: a `flexcomp` grid of tetrahedra; `mujoco.rollout` steps worlds in threads.
- Newton: `add_soft_grid`, tetrahedra, all worlds in one model; VBD. Its semi-implicit solver flies apart within the
  first action at our step and at half of it, with and without damping, so it is left out.
- viscera: `viscera.batch`.

What differs: the elements (theirs are tetrahedra, ours springs and cells), the contact (ours is with points of the
surface a millimetre apart, theirs with the masses or the triangles between them), and the steps that each can take.
So this compares what a user gets for a second of a machine, not the same sums. Neither is a dependency of viscera:

    python -m venv /tmp/peers && /tmp/peers/bin/pip install mujoco newton numpy
    PYTHONPATH=src nice /tmp/peers/bin/python benchmarks/peers/soft_worlds.py

It prints a table and writes soft_worlds.json beside itself (elsewhere with --out).
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp
from numpy.typing import NDArray

from viscera import batch
from viscera.bench.batch import SMALL_CELLS, actor, pad
from viscera.device import available_cores, open_device, processor_name

NODES = tuple(count + 1 for count in SMALL_CELLS)
SPACING, RADIUS = 0.004, 0.008
"""[m]"""
YOUNG, POISSON, DENSITY = 3_000.0, 0.4, 1_060.0
"""[Pa], and [kg/m³]"""
ACTION = 0.01
"""[s]"""
SHALLOWEST, DEEPEST, ASIDE = 0.001, 0.005, 0.004
"""How far the ball presses, and how far from the middle it goes [m]."""
LEAST_CONTACT = 0.9
"""Share of the worlds whose ball touches tissue at the end; with less a case does not count."""
EPISODE = 200
"""Actions after which a world is reset."""
MUJOCO_STEPS = 5
"""Of 2 ms each."""
NEWTON_STEPS = 4
"""VBD is implicit and takes 10 iterations per step; ours has 30 substeps."""
TOP = SMALL_CELLS[2] * SPACING
"""Height of the block's upper side [m]."""


class Hands:
    """Random targets of the ball's middle [m], one for each world."""

    def __init__(self, worlds: int) -> None:
        self._rng = np.random.default_rng(7)
        self.place = np.tile([0.0, 0.0, TOP + RADIUS - SHALLOWEST], (worlds, 1))
        self._low = np.array([-ASIDE, -ASIDE, TOP + RADIUS - DEEPEST])
        self._high = np.array([ASIDE, ASIDE, TOP + RADIUS - SHALLOWEST])

    def act(self) -> NDArray[np.float64]:
        step = self._rng.uniform(-0.003, 0.003, self.place.shape)
        self.place = np.clip(self.place + step, self._low, self._high)
        return self.place


def ours(worlds: int, cores: int) -> tuple[Callable[[], None], Callable[[], float]]:
    made = batch.make(pad(1_000), worlds=worlds, device=open_device("cpu", cores=cores), seed=1)
    act = actor(made)
    return act, lambda: float((made.forces.peak.numpy()[:, 0, 0] > 0.0).mean())


def mujoco_model() -> Any:
    mujoco = import_module("mujoco")

    count, size = " ".join(map(str, NODES)), SPACING
    mass = DENSITY * float(np.prod(np.array(SMALL_CELLS) * SPACING))
    last = f"{NODES[0] - 1} {NODES[1] - 1} 0"
    return mujoco.MjModel.from_xml_string(f"""
    <mujoco>
      <option timestep="{ACTION / MUJOCO_STEPS}" gravity="0 0 0" solver="CG" tolerance="1e-6"
              integrator="discrete"/>
      <worldbody>
        <body name="probe" mocap="true" pos="0 0 {TOP + 0.02}"><geom type="sphere" size="{RADIUS}"/></body>
        <flexcomp name="pad" type="grid" dim="3" count="{count}" spacing="{size} {size} {size}" mass="{mass}"
                  radius="0.0005" pos="0 0 {TOP / 2}">
          <contact selfcollide="none"/>
          <elasticity young="{YOUNG}" poisson="{POISSON}" damping="0.002"/>
          <pin gridrange="0 0 0 {last}"/>
        </flexcomp>
      </worldbody>
    </mujoco>""")


def of_mujoco(worlds: int, cores: int) -> tuple[Callable[[], None], Callable[[], float]]:
    """Each world has its own data; threads take them one after the other."""
    mujoco = import_module("mujoco")

    model = mujoco_model()
    data = [mujoco.MjData(model) for _ in range(worlds)]
    hands, pool, count = Hands(worlds), ThreadPoolExecutor(cores), 0

    def one(number: int) -> None:
        mine = data[number]
        if (count + number) % EPISODE == 0:
            mujoco.mj_resetData(model, mine)
        mine.mocap_pos[0] = hands.place[number]
        mujoco.mj_step(model, mine, nstep=MUJOCO_STEPS)

    def act() -> None:
        nonlocal count
        count += 1
        hands.act()
        list(pool.map(one, range(worlds)))

    return act, lambda: float(np.mean([mine.ncon > 0 for mine in data]))


def of_newton(worlds: int) -> tuple[Callable[[], None], Callable[[], float]]:
    """All worlds in one model; the ball is so heavy that tissue does not stop it."""
    newton = import_module("newton")

    one = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    one.default_particle_radius = 0.0005
    x, y, _ = (np.array(SMALL_CELLS) * SPACING).tolist()
    one.add_soft_grid(
        pos=wp.vec3(-x / 2, -y / 2, 0.0), rot=wp.quat_identity(), vel=wp.vec3(), dim_x=SMALL_CELLS[0],
        dim_y=SMALL_CELLS[1], dim_z=SMALL_CELLS[2], cell_x=SPACING, cell_y=SPACING, cell_z=SPACING, density=DENSITY,
        k_mu=YOUNG / (2 * (1 + POISSON)), k_lambda=YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON)), k_damp=0.5,
    )  # fmt: skip
    ball = one.add_body(xform=wp.transform(wp.vec3(0.0, 0.0, TOP + RADIUS), wp.quat_identity()), mass=1.0e3)
    one.add_shape_sphere(ball, radius=RADIUS, cfg=newton.ModelBuilder.ShapeConfig(density=0.0, mu=0.1))
    for particle, place in enumerate(one.particle_q):
        if float(place[2]) < 0.5 * SPACING:
            one.particle_mass[particle] = 0.0
    builder = newton.ModelBuilder(gravity=(0.0, 0.0, 0.0))
    builder.replicate(one, world_count=worlds)
    builder.color()
    model = builder.finalize(device="cpu")
    model.soft_contact_ke, model.soft_contact_kd, model.soft_contact_mu = 200.0, 0.02, 0.1
    options = {"iterations": 10, "particle_enable_self_contact": False, "rigid_compliant_alm": True}
    solver = newton.solvers.SolverVBD(model, **options)
    states, control = [model.state(), model.state()], model.control()
    pipeline = newton.CollisionPipeline(model)
    contacts, hands, steps, count = pipeline.contacts(), Hands(worlds), NEWTON_STEPS, 0
    rest = states[0].particle_q.numpy().copy().reshape(worlds, -1, 3)

    def act() -> None:
        nonlocal count
        count += 1
        state = states[0]
        ended = (count + np.arange(worlds)) % EPISODE == 0
        if ended.any():
            state.particle_q.numpy().reshape(worlds, -1, 3)[ended] = rest[ended]
            state.particle_qd.numpy().reshape(worlds, -1, 3)[ended] = 0.0
        here, speed = state.body_q.numpy(), state.body_qd.numpy()
        speed[:] = 0.0
        speed[:, :3] = (hands.act() - here[:, :3]) / ACTION
        for _ in range(steps):
            states[0].clear_forces()
            pipeline.collide(states[0], contacts)
            solver.step(states[0], states[1], control, contacts, ACTION / steps)
            states.reverse()

    def touching() -> float:
        number = int(contacts.soft_contact_count.numpy()[0])
        which = contacts.soft_contact_particle.numpy()[:number] // rest.shape[1]
        return len(np.unique(which)) / worlds

    return act, touching


def measure(
    case: str, made: tuple[Callable[[], None], Callable[[], float]], worlds: int, chosen: Any
) -> dict[str, Any]:
    act, touching = made
    for _ in range(chosen.warm_up):
        act()
    start, own = time.perf_counter(), time.process_time()
    for _ in range(chosen.actions):
        act()
    wall, processor = time.perf_counter() - start, time.process_time() - own
    share = touching()
    row = {
        "case": case, "worlds": worlds, "env_steps_per_s": worlds * chosen.actions / wall,
        "env_steps_per_processor_s": worlds * chosen.actions / processor, "in_contact": share,
        "counts": share >= LEAST_CONTACT,
    }  # fmt: skip
    figures = f"{row['env_steps_per_s']:.1f} | {row['env_steps_per_processor_s']:.1f} | {share:.2f}"
    print(
        f"| {case}{'' if row['counts'] else ' (not in contact: does not count)'} | {worlds} | {figures} |", flush=True
    )
    return row


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--worlds", type=int, default=64)
    parser.add_argument("--warm-up", type=int, default=100)
    parser.add_argument("--actions", type=int, default=500)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".json"))
    chosen = parser.parse_args()
    cores, worlds = available_cores(), chosen.worlds
    cases: dict[str, Callable[[], Any]] = {
        f"viscera, {cores} cores": lambda: ours(worlds, cores),
        "viscera, 1 core": lambda: ours(worlds, 1),
        f"mujoco, {cores} threads": lambda: of_mujoco(worlds, cores),
        "newton, vbd": lambda: of_newton(worlds),
    }
    print("| case | worlds | env steps/s | per second of processor | worlds in contact |")
    print("| --- | ---: | ---: | ---: | ---: |")
    rows = [measure(case, make(), worlds, chosen) for case, make in cases.items() if chosen.only in case]
    report = {
        "machine": f"{processor_name()}, {cores} cores, {platform.system()} {platform.release()}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {name: version(name) for name in ("mujoco", "newton", "warp-lang", "numpy")},
        "masses": int(np.prod(NODES)),
        "warm_up": chosen.warm_up,
        "actions": chosen.actions,
        "rows": rows,
    }
    chosen.out.write_text(json.dumps(report, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
