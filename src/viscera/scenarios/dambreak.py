"""Dam break: adaptive water after Elmasdotter §4.2; see _adaptive/pools.py."""

from viscera.scenarios._adaptive.scenario import pool_scenario

SCENARIO = pool_scenario("dambreak", "Dam break", "A dam of water breaks; it is fine where you look.")
