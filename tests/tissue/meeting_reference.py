"""Tissue that meets tissue, in float64 and one pair after the other: what the kernels must do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from viscera.timing import TICK
from viscera.tissue.meeting import ROUNDS, Meeting
from viscera.tissue.pieces import PARTED

Floats = NDArray[np.float64]
Pairs = dict[tuple[int, int], tuple[Floats, float, float]]
"""Normal, weight and reach of each pair."""


class Reference:
    """Of the masses at the surface, as the meeting numbers them."""

    def __init__(self, meeting: Meeting) -> None:
        self.spacing = max(tissue.params.spacing for tissue in meeting.tissues)
        edges = [one.edge for one in meeting.pieces]
        self.mass = np.concatenate([edge.mass for edge in edges])
        self.of = np.repeat(np.arange(len(edges)), [len(edge.mass) for edge in edges])
        first = np.cumsum([0, *(len(np.unique(edge.piece)) for edge in edges)])
        numbers = [np.unique(edge.piece, return_inverse=True)[1] + n for edge, n in zip(edges, first, strict=False)]
        self.piece = np.concatenate(numbers)
        self.parted = np.concatenate([edge.kind & PARTED for edge in edges]) != 0
        tissues = meeting.tissues
        self.offset = np.concatenate([e.offset * t.params.spacing for e, t in zip(edges, tissues, strict=True)])
        self.yields = np.concatenate(
            [np.where(t.params.anchored, 0.0, 1.0 / t.mass)[e.mass] for e, t in zip(edges, tissues, strict=True)]
        )
        node = [{int(slot): n for n, slot in enumerate(t.layout.slot_of_node)} for t in tissues]
        self.ties = [
            {node[k][int(slot)] for slot in row if slot >= 0} for k, edge in enumerate(edges) for row in edge.tied
        ]
        self.leans = [
            [node[k][int(slot)] for bit, slot in enumerate(row) if (int(bits) >> bit) & 1]
            for k, edge in enumerate(edges)
            for row, bits in zip(edge.tied, edge.leans, strict=True)
        ]
        self.flat = np.concatenate([edge.flat for edge in edges])
        self.rest_normal = np.concatenate([edge.normal for edge in edges])
        self._meeting, self.dt = meeting, TICK / meeting.tissues[0].substeps
        self.x, self.v, self.normal = self.places()

    def places(self) -> tuple[Floats, Floats, Floats]:
        x, v, normal = [], [], []
        for k, tissue in enumerate(self._meeting.tissues):
            place = tissue.rest_positions() + tissue.displacement().astype(np.float64)
            some = self.of == k
            x.append(place[self.mass[some]])
            v.append(tissue.velocities().astype(np.float64)[self.mass[some]])
            rest = tissue.rest_positions()
            for c in np.flatnonzero(some):
                out = -(place[self.leans[c]] - place[self.mass[c]]).sum(axis=0)
                ties = sorted(self.ties[c])
                # d = F D over all ties, by least squares; a normal turns with the inverse transpose.
                fitted = np.linalg.lstsq(rest[ties] - rest[self.mass[c]], place[ties] - place[self.mass[c]], rcond=None)
                if fitted[2] == 3:
                    turned = np.linalg.det(fitted[0]) * np.linalg.inv(fitted[0]) @ self.rest_normal[c]
                    if turned @ out > 0.3 * np.linalg.norm(turned) * np.linalg.norm(out):
                        out = turned
                normal.append(out / max(np.linalg.norm(out), 1e-12) * self.flat[c])
        return np.concatenate(x), np.concatenate(v), np.array(normal)

    def pairs(self) -> Pairs:
        """Of masses that may meet."""
        found: Pairs = {}
        h = self.spacing
        for c in range(len(self.x)):
            for d in np.flatnonzero(np.linalg.norm(self.x - self.x[c], axis=1) <= 1.5 * h + 1.5e-3).tolist():
                same = self.piece[c] == self.piece[d]
                if c == d or (same and not (self.parted[c] or self.parted[d])):
                    continue
                if same and int(self.mass[d]) in self.ties[c]:
                    continue
                one = self._pair(c, d, h)
                if one is not None:
                    found[c, d] = one
        return found

    def _pair(self, c: int, d: int, h: float) -> tuple[Floats, float, float] | None:
        way = self.x[d] - self.x[c]
        mine, its = self.normal[c], self.normal[d]
        n = (mine - its) / np.linalg.norm(mine - its)
        height = float(n @ way)
        flat, its_flat = np.linalg.norm(mine), np.linalg.norm(its)
        point = (flat < 0.1) != (its_flat < 0.1)
        above = height >= -0.5 * h
        if mine @ its < -0.25 * flat * its_flat or (point and above):
            reach = float(self.offset[c] + self.offset[d])
            weight = 1.0 - float(np.linalg.norm(way - height * n) / h) ** 2
            good = weight > 0.0 and above and height - reach <= 1.5e-3
            return (n, weight, reach) if good else None
        far = float(np.linalg.norm(way))
        touch = min(max(float(self.offset[c] + self.offset[d]), 0.8 * h), h)
        return None if far > touch + 1.5e-3 else (way / far, 1.0, touch)

    def push(self, pairs: Pairs, friction: float) -> tuple[Floats, Floats]:
        """Where all masses are and how fast after the rounds of a substep."""
        x, v, h = self.x.copy(), self.v.copy(), self.spacing
        total = np.ones(len(x))
        for c in range(len(x)):
            total[c] = max(1.0, sum(weight for (a, _), (_, weight, _) in pairs.items() if a == c))
        for _ in range(ROUNDS):
            dv, dx = np.zeros_like(v), np.zeros_like(x)
            for (c, d), (n, weight, reach) in pairs.items():
                deep = reach - float(n @ (x[d] - x[c]))
                yields = total[c] * self.yields[c] + total[d] * self.yields[d]
                if deep <= 0.0 or yields == 0.0:
                    continue
                part, soft = weight * self.yields[c] / yields, min(1.0, deep / (0.05 * h))
                speed = v[d] - v[c]
                closing = soft * max(-float(n @ speed), 0.0)
                slide = speed - float(n @ speed) * n
                size = float(np.linalg.norm(slide))
                rub = -slide * min(friction * closing, size) / size if size > 1e-9 else np.zeros(3)
                dv[c] -= part * (closing * n + rub)
                dx[c] -= part * (soft * min(0.8 * deep, 0.1 * h) * n + self.dt * rub)
            v, x = v + dv, x + dx
        return x, v
