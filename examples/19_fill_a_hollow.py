"""Pour blood into a bowl of tissue and look how deep it stands, then tilt gravity and see where it goes.

A paraboloid z = r²/2a holds π a h² up to the level h. The level must be that of what was poured, within 5 % in one
column, and under gravity tilted by an angle the pool's middle must be a·tan(angle) aside.

    python examples/19_fill_a_hollow.py [--millilitres 0.3]
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from viscera import drops, film, open_device, pools
from viscera.device import Device
from viscera.geometry import TriangleMesh

CURVE = 0.02
"""a [m]"""


def bowl() -> TriangleMesh:
    line = np.linspace(-0.022, 0.022, 45)
    x, y = (axis.ravel() for axis in np.meshgrid(line, line, indexing="ij"))
    at = np.arange(45 * 45).reshape(45, 45)
    a, b, c, d = (part.ravel() for part in (at[:-1, :-1], at[1:, :-1], at[1:, 1:], at[:-1, 1:]))
    triangles = np.concatenate([np.stack([a, b, c], axis=1), np.stack([a, c, d], axis=1)])
    return TriangleMesh(np.stack([x, y, (x**2 + y**2) / (2.0 * CURVE)], axis=1), triangles.astype(np.int32), "bowl")


def poured(device: Device, volume: float, tilt: float) -> tuple[float, float]:
    """Depth in the middle of the pool, and where that is along x, once it stands [m]."""
    gravity = (9.81 * math.sin(tilt), 0.0, -9.81 * math.cos(tilt))
    blood = film.make(bowl(), film.FilmParams(gravity=gravity), capacity=100, device=device)
    spray = drops.make(blood, capacity=16)
    deep = pools.make(blood, spray)
    pools.pour(deep, (0.0, 0.0), volume)
    device.record(lambda stage: pools.step(stage, deep), work=1).run(250)
    line = np.stack([np.linspace(-0.012, 0.012, 97), np.zeros(97)], axis=1)
    depth = pools.depth(deep, line)
    depth = np.where(depth > 0.3e-3, depth, 0.0)
    return float(depth.max()), float((depth @ line[:, 0]) / depth.sum())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--millilitres", type=float, default=0.3)
    parser.add_argument("--device", default=None)
    options = parser.parse_args()

    device = open_device(options.device)
    volume = 1e-6 * options.millilitres
    want = math.sqrt(volume / (math.pi * CURVE))
    depth, _ = poured(device, volume, 0.0)
    print(f"{options.millilitres:g} mL stand {1e3 * depth:.2f} mm deep; by the bowl's shape {1e3 * want:.2f} mm")
    tilt = math.radians(6.0)
    _, aside = poured(device, volume, tilt)
    print(f"tilted by 6° the pool is {1e3 * aside:.2f} mm aside; by the shape {1e3 * CURVE * math.tan(tilt):.2f} mm")
    assert abs(depth - want) < 0.05 * want
    assert abs(aside - CURVE * math.tan(tilt)) < 0.3e-3
    print("it stands where it must")


if __name__ == "__main__":
    main()
