"""Nobody leaves a colon in minutes of filling, tilting and rolling, whatever its wall is: a long run of `barium`.

    python -m verify.inside [--structure hashed|hierarchy|field] [--wall rigid|moved|lattice] [--minutes 10] [--seed 3]
                            [--device cpu|cuda] [--cores N]

The scenario's own script once, then the table goes anywhere every five seconds while it is filled and drained; a wall
that may move has waves, other pressures of gas and another course in turn. Every ten seconds each particle must be
inside the wall as it is then (signed distance), and every unit accounted for. It ends with 1 if one is not.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import viscera
from viscera import water
from viscera.geometry import TriangleMesh, build_query, signed_distance
from viscera.scenarios.barium import SCENARIO, build
from viscera.water.coating import account
from viscera.world import World

WALLS = ("rigid", "moved", "lattice")
LOOKS = 10
"""Seconds between two looks."""
SCRIPT = 62
"""Seconds that the scenario's own hand takes."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m verify.inside", description="Whether anybody leaves the colon.")
    parser.add_argument("--structure", choices=("hashed", "hierarchy", "field"), default="hashed")
    parser.add_argument("--wall", choices=WALLS, default="rigid")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--detail", type=float, default=1.0)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cores", type=int, default=None, help="of the machine, so that several may run side by side")
    chosen = parser.parse_args(arguments)
    if chosen.structure == "field" and chosen.wall != "rigid":
        parser.error("a field is rigid: take --wall rigid, or hashed or hierarchy")
    seconds = round(60.0 * chosen.minutes)
    place = {"device": chosen.device, "cores": chosen.cores}
    found = run(chosen.structure, chosen.wall, seconds, chosen.seed, chosen.detail, **place)
    print(
        f"{chosen.structure}, {chosen.wall}: {found['outside']} outside, {found['missing']} units missing", flush=True
    )
    return int(found["outside"] > 0 or found["missing"] != 0)


def run(structure: Any, wall: str, seconds: int, seed: int, detail: float, **place: Any) -> dict[str, int]:
    scenario = replace(SCENARIO, build=lambda setting: build(setting, structure))
    world = viscera.make(scenario, seed=seed, detail=detail, **place)
    rng, total = np.random.default_rng(seed), {"outside": 0, "missing": 0}
    for second in range(seconds):
        act(world, second, wall, rng, moves=structure != "field")
        for tick in range(1000 * second, 1000 * (second + 1)):
            for one in world.script(tick):
                world.apply(one)
            world.advance()
        if second % LOOKS == LOOKS - 1 or second == seconds - 1:
            outside, missing, count = look(world)
            total["outside"] += outside
            total["missing"] += abs(missing)
            print(f"{second + 1} s: {count} particles, {outside} outside, {missing} units missing", flush=True)
    world.close()
    return total


def act(world: World, second: int, wall: str, rng: np.random.Generator, *, moves: bool) -> None:
    """What a hand does in this second."""
    wanted: dict[str, float] = {}
    if moves and second == 0:
        wanted["structure"] = float(WALLS.index(wall))
    if moves and wall != "rigid" and second % 15 == 2:
        wanted |= {
            "waves": rng.uniform(0.0, 60.0),
            "gas": rng.uniform(4.0, 30.0),
            "wave_speed": rng.uniform(-40.0, 40.0),
        }
    if second >= SCRIPT and second % 5 == 0:
        wanted |= {"tilt": rng.uniform(-45.0, 90.0), "roll": rng.uniform(-180.0, 180.0)}
        wanted |= {"flow": rng.choice([0.0, 10.0, 25.0]), "drain": rng.choice([0.0, 0.0, 20.0])}
    for name, value in wanted.items():
        world.apply(viscera.SetParameter(name, float(value)))


def look(world: World) -> tuple[int, int, int]:
    """Particles outside the wall as it is now, units missing, and particles in all."""
    world.wait()
    enema = world.system("barium").holds
    wall = TriangleMesh(enema.vessel.walls.vertices.numpy().astype(np.float64), enema.vessel.walls.mesh.triangles)
    places = water.particles(enema.fluid)["position"]
    outside = 0
    if len(places):
        outside = int((signed_distance(build_query(wall, enema.fluid.device), places) > 0.0).sum())
    return outside, account(enema.coating, enema.fluid).missing, len(places)


if __name__ == "__main__":
    sys.exit(main())
