"""Sweeps: a scenario run with many settings and seeds, on one machine or on a Ray cluster (docs/sweeps.md)."""

from __future__ import annotations

from viscera.sweeps.plan import Plan, Run, parse_seeds, parse_values
from viscera.sweeps.running import Finished, sweep

__all__ = ["Finished", "Plan", "Run", "parse_seeds", "parse_values", "sweep"]
