"""The same world on cpu and on cuda: `python -m verify.gpu`. Needs NumPy and Warp alone.

Float sums differ in their last bits between the two (fused multiply-adds, order inside a kernel), so worlds are
compared in the L2 norm after 100 ticks, and sums that physics conserves with their first value on each device.
"""

from __future__ import annotations

import json
import sys

import numpy as np

import viscera
from verify.framework import Measured, Skip, figure
from viscera import grid
from viscera.bench.grid import whirl
from viscera.bench.sources import Fingerprint, SourceTree, current_commit, our_sources
from viscera.device import cuda_state, open_device
from viscera.tissue.lattice import make_lattice
from viscera.tissue.materials import SOFT_TISSUE
from viscera.tissue.params import LatticeParams

TICKS = 100


def palpation_state(device: str) -> dict[str, np.ndarray]:
    """Displacement, velocity, surface and force after 100 ticks of the scenario's own hand, 300 ticks into its push."""
    world = viscera.make("palpation", device=device, seed=1)
    for tick in range(300, 300 + TICKS):
        for one in world.script(tick):
            world.apply(one)
        world.step()
    tissue = world.organs[0].tissue
    state = {
        "displacement": tissue.displacement(),
        "velocity": tissue.velocities(),
        "surface": world.snapshot().arrays["tissue"] - world.organs[0].rest.numpy(),
        "force": np.array(world.tools[0].force),
    }
    world.close()
    return state


def flow_state(device: str) -> dict[str, np.ndarray]:
    """Velocity and ink of a whirl in 48³ that a bar stirs, after twelve steps with the default number of cycles."""
    opened = open_device(device)
    flow = whirl(opened, (48, 48, 48))
    follow = opened.record(lambda stage: grid.follow(stage, flow), work=grid.work(flow))
    step = opened.record(lambda stage: grid.step(stage, flow), work=grid.work(flow))
    for number in range(12):
        place = np.array([0.4 + 0.01 * number, 0.5, 0.3])
        speed = np.array([0.01 / flow.params.dt, 0.0, 0.0])
        grid.set_bars(flow, [[place, place + np.array([0.0, 0.0, 2.0])]], [0.06], [[speed, speed]])
        follow.run()
        step.run()
    opened.synchronize()
    before, after = grid.divergence(flow)
    state = {
        "flow": np.concatenate([part.ravel() for part in grid.velocity(flow)]),
        "ink": grid.values(flow, "ink"),
        "divergence": np.array([after / before]),
        "missing": np.array([grid.missing(flow, "ink")]),
    }
    opened.close()
    return state


def smoke_state(device: str) -> dict[str, np.ndarray]:
    """Smoke over what the scenario's hook has burnt for 0.6 s, as a flow and as puffs, and units missing."""
    state = {}
    for name, model in (("smoke", 0.0), ("puffs", 1.0)):
        world = viscera.make("smoke", device=device, seed=1, parameters={"smoke_model": model})
        for tick in range(600):
            for one in world.script(tick):
                world.apply(one)
            world.advance()
        world.wait()
        flow = world.system("smoke").holds.flow
        state[name] = flow.layout.box(flow.carried["smoke"].amount.numpy()).astype(np.float64)
        if name == "smoke":
            state["missing smoke"] = np.array([grid.missing(flow, "smoke")])
        world.close()
    return state


def relative_error(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.linalg.norm(a.astype(np.float64) - b) / np.linalg.norm(b.astype(np.float64)))


def momentum_drift(device: str) -> float:
    """Change of total momentum over the sum of all momenta, free lattice, after 100 ticks."""
    axis = np.arange(20, dtype=np.int32)
    nodes = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    free = np.zeros(len(nodes), dtype=bool)
    params = LatticeParams(
        nodes, 0.004, (0.5, 0.0, 0.0), free, SOFT_TISSUE, SOFT_TISSUE.young, viscous_time=0.0, poisson=0.25
    )
    opened = open_device(device)
    tissue = make_lattice(opened, params)
    rng = np.random.default_rng(0)
    velocity = rng.normal(0.0, 0.1, (len(nodes), 3)) + np.array([0.2, 0.0, 0.0])
    tissue.set_motion(rng.normal(0.0, 1e-4, (len(nodes), 3)), velocity)
    before = tissue.mass @ tissue.velocities().astype(np.float64)
    for _ in range(TICKS):
        tissue.step()
    after = tissue.mass @ tissue.velocities().astype(np.float64)
    opened.close()
    return float(np.abs(after - before).max() / (tissue.mass @ np.abs(velocity)).max())


def compare() -> dict[str, float]:
    cpu, cuda = palpation_state("cpu"), palpation_state("cuda:0")
    figures = {f"relative L2, {name}": relative_error(cuda[name], cpu[name]) for name in cpu}
    figures["momentum drift, cpu"] = momentum_drift("cpu")
    figures["momentum drift, cuda"] = momentum_drift("cuda:0")
    figures["peak displacement [m]"] = float(np.abs(cpu["displacement"]).max())
    return figures


def fingerprint(tree: SourceTree) -> Fingerprint:
    """The sources of this comparison, for files that keep its output."""
    return tree.fingerprint("verify.gpu", "same_world_on_cuda")


@figure(
    area="foundation",
    claim="cpu and cuda give the same world after 100 steps",
    bound="relative L2 ≤ 1e-4, conserved sums ≤ 1e-5",
    needs=("cuda",),
)
def same_world_on_cuda() -> Measured:
    if not cuda_state().usable:
        raise Skip(cuda_state().reason)
    figures = compare()
    worst = max(value for name, value in figures.items() if "L2" in name)
    drift = max(value for name, value in figures.items() if "drift" in name)
    return Measured(worst, "relative L2", worst <= 1e-4 and drift <= 1e-5, json.dumps(figures))


@figure(
    area="grid",
    claim="cpu and cuda give the same flow in 48³ with a bar that stirs, and the same smoke over a hook's burn",
    bound="relative L2 ≤ 1e-3 of the flow, ≤ 2e-2 of smoke; divergence ≤ 1e-4 and no unit missing on both",
    needs=("cuda",),
)
def same_flow_on_cuda() -> Measured:
    """Float sums differ in their last bits, and a step multiplies that by what the flow stretches: less in a whirl of
    twelve steps than in a plume over tissue, whose burns already differ."""
    if not cuda_state().usable:
        raise Skip(cuda_state().reason)
    flows = {name: flow_state(name) for name in ("cpu", "cuda:0")}
    smokes = {name: smoke_state(name) for name in ("cpu", "cuda:0")}
    apart = {name: relative_error(flows["cuda:0"][name], flows["cpu"][name]) for name in ("flow", "ink")}
    apart |= {name: relative_error(smokes["cuda:0"][name], smokes["cpu"][name]) for name in ("smoke", "puffs")}
    left = max(float(one["divergence"][0]) for one in flows.values())
    missing = [int(one["missing"][0]) for one in flows.values()]
    missing += [int(one["missing smoke"][0]) for one in smokes.values()]
    alike = max(apart["flow"], apart["ink"]) <= 1e-3 and max(apart["smoke"], apart["puffs"]) <= 2e-2
    detail = json.dumps(apart | {"divergence": left, "missing units": sum(map(abs, missing))})
    return Measured(max(apart.values()), "relative L2", alike and left <= 1e-4 and not any(missing), detail)


if __name__ == "__main__":
    measured = same_world_on_cuda()
    for name, value in json.loads(measured.detail).items():
        print(f"{name:32s} {value:.3e}")
    print("agree" if measured.passed else "DIFFER")
    tree = our_sources()
    print(f"commit {current_commit(tree)}, sources {fingerprint(tree).digest}")
    sys.exit(0 if measured.passed else 1)
