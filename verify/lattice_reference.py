"""The lattice in float64, spring by spring, to hold the kernels against.

Source: Etheredge, Kunst and Sanders 2013, Algorithm 1, without its factor ½ before a·Δt² (which makes periods √2 too
long). Stiffnesses are read back from what the kernels use, so a table that was changed (a cut) counts here too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viscera.tissue.springs import DIRECTIONS, NodeIndex, axis_stiffness
from viscera.tissue.tissue import Tissue
from viscera.tissue.volume import bulk_share_of_young, spring_share_of_young

Array = NDArray[Any]
"""Of float64 throughout; NumPy's own types say less."""


@dataclass(frozen=True)
class Springs:
    """Every spring once."""

    first: NDArray[np.int64]
    second: NDArray[np.int64]
    rest: Array
    """From the first mass to the second at rest [m], shape (springs, 3)."""
    stiffness: Array
    """[N/m]"""

    @property
    def length(self) -> Array:
        return np.linalg.norm(self.rest, axis=1)


def springs_of(tissue: Tissue) -> Springs:
    """The springs that are there (stiffness above 0), from the table that the kernels read."""
    nodes = tissue.params.nodes
    index = NodeIndex(nodes)
    table = tissue.constants.stiffness.numpy().astype(np.float64).reshape(len(DIRECTIONS), -1)
    first, second, rest, stiffness = [], [], [], []
    for row, direction in enumerate(DIRECTIONS):
        other = index.find(nodes + np.array(direction, dtype=np.int32))
        relative = table[row, tissue.layout.slot_of_node]
        here = np.nonzero((other >= 0) & (relative > 0.0))[0]
        first.append(here)
        second.append(other[here].astype(np.int64))
        rest.append(np.tile(np.array(direction) * tissue.params.spacing, (len(here), 1)))
        stiffness.append(relative[here])
    springs_young = tissue.young * spring_share_of_young(tissue.params.first_poisson)
    scale = axis_stiffness(springs_young, tissue.params.spacing)
    return Springs(
        np.concatenate(first), np.concatenate(second), np.concatenate(rest), np.concatenate(stiffness) * scale
    )


def pulls(springs: Springs, u: Array) -> Array:
    """Force of every spring on its first mass at displacements u [N]."""
    d = springs.rest + u[springs.second] - u[springs.first]
    length = np.linalg.norm(d, axis=1)
    return (springs.stiffness * (length - springs.length) / length)[:, None] * d


def spring_force(springs: Springs, u: Array) -> Array:
    """Σ F_ij on every mass [N]: action on the first, reaction on the second."""
    pull = pulls(springs, u)
    total = np.zeros_like(u)
    for axis in range(3):
        total[:, axis] += np.bincount(springs.first, pull[:, axis], len(u))
        total[:, axis] -= np.bincount(springs.second, pull[:, axis], len(u))
    return total


def bulk_modulus_added(tissue: Tissue) -> float:
    """κ of the volume-preserving force in a lattice of one material [Pa]."""
    return tissue.young * bulk_share_of_young(tissue.params.first_poisson)


def volume_force(tissue: Tissue, u: Array) -> Array:
    """−∂U/∂x of U = Σ ½ κ h³ (V/h³ − 1)² over the whole cells, V = det of the mean edges, on every mass [N]."""
    nodes, h = tissue.params.nodes, tissue.params.spacing
    index = NodeIndex(nodes)
    low = nodes[index.look_up(index.whole_cells(), nodes)]
    corners = np.array(list(np.ndindex(2, 2, 2)), dtype=np.int32)
    cells = np.stack([index.find(low + corner) for corner in corners], axis=1)
    sign = 2.0 * corners - 1.0
    edges = h * np.eye(3) + 0.25 * np.einsum("ca,kcx->kax", sign, u[cells])  # row a: mean edge along axis a
    cofactor = np.cross(edges[:, [1, 2, 0]], edges[:, [2, 0, 1]])
    growth = np.einsum("kx,kx->k", edges[:, 0], cofactor[:, 0]) / h**3 - 1.0
    push = -0.25 * bulk_modulus_added(tissue) * growth[:, None, None] * np.einsum("ca,kax->kcx", sign, cofactor)
    total = np.zeros_like(u)
    for axis in range(3):
        total[:, axis] = np.bincount(cells.ravel(), push[..., axis].ravel(), len(u))
    return total


def inner_force(tissue: Tissue, u: Array) -> Array:
    """Springs and volume together, on every mass [N]."""
    force = spring_force(springs_of(tissue), u)
    return force + volume_force(tissue, u) if tissue.params.has_volume else force


def elastic_energy(springs: Springs, u: Array) -> float:
    """Σ ½ k (|d| − L)² [J]"""
    stretch = np.linalg.norm(springs.rest + u[springs.second] - u[springs.first], axis=1) - springs.length
    return float(0.5 * (springs.stiffness * stretch**2).sum())


def total_energy(tissue: Tissue, springs: Springs) -> float:
    """Kinetic and elastic [J]. Verlet's velocity is half a step late, so it is brought to the step first."""
    u, v = tissue.displacement().astype(np.float64), tissue.velocities().astype(np.float64)
    moves = ~tissue.params.anchored
    v = v + 0.5 * tissue.constants.dt * spring_force(springs, u) / tissue.mass[:, None]
    kinetic = 0.5 * (tissue.mass[moves, None] * v[moves] ** 2).sum()
    return float(kinetic) + elastic_energy(springs, u)


def highest_frequency(tissue: Tissue, rounds: int = 150) -> float:
    """ω_max of the lattice at rest [rad/s], from below, by power iteration on forces at tiny displacements."""
    springs, has_volume = springs_of(tissue), tissue.params.has_volume
    weight = 1.0 / np.sqrt(tissue.mass)[:, None]
    x = np.random.default_rng(0).normal(size=(len(tissue.mass), 3))
    largest = 0.0
    for _ in range(rounds):
        tiny = 1e-7 * tissue.params.spacing / np.abs(x * weight).max()
        u = x * weight * tiny
        force = spring_force(springs, u) + (volume_force(tissue, u) if has_volume else 0.0)
        change = -force * weight / tiny
        largest = float(np.linalg.norm(change) / np.linalg.norm(x))
        x = change / np.linalg.norm(change)
    return math.sqrt(largest)


def algorithm_1(tissue: Tissue, start: Array, steps: int) -> Array:
    """World positions [m] after some steps from displacement `start`, at rest: the serial loop, spring after spring.

    x⁺ = 2x − x⁻ + Δt² F/m in world coordinates, as the source has it, without its ½.
    """
    springs = springs_of(tissue)
    columns = (springs.first, springs.second, springs.length, springs.stiffness)
    edges = list(zip(*(column.tolist() for column in columns), strict=True))
    x: list[list[float]] = (tissue.rest_positions() + start).tolist()
    before = list(x)
    free = np.nonzero(~tissue.params.anchored)[0].tolist()
    gains = (tissue.constants.dt**2 / tissue.mass).tolist()
    for _ in range(steps):
        force = [[0.0, 0.0, 0.0] for _ in x]
        for i, j, length, stiffness in edges:
            a, b, fa, fb = x[i], x[j], force[i], force[j]
            d = (b[0] - a[0], b[1] - a[1], b[2] - a[2])
            now = math.sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2])
            pull = stiffness * (now - length) / now
            for c in range(3):
                fa[c] += pull * d[c]
                fb[c] -= pull * d[c]
        for i in free:
            p, q, f = x[i], before[i], force[i]
            before[i] = p
            x[i] = [2.0 * p[c] - q[c] + gains[i] * f[c] for c in range(3)]
    return np.array(x)
