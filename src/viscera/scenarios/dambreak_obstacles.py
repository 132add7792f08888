"""Dam break with obstacles: adaptive water after Elmasdotter §4.2; see _adaptive/pools.py."""

from viscera.scenarios._adaptive.scenario import pool_scenario

SCENARIO = pool_scenario(
    "dambreak-obstacles", "Dam break with obstacles", "A dam breaks, and the water meets two pillars and a ball."
)
