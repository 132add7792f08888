"""Large box: adaptive water after Elmasdotter §4.2; see _adaptive/pools.py."""

from viscera.scenarios._adaptive.scenario import pool_scenario

SCENARIO = pool_scenario("large-box", "Large box", "Water falls into a wide box and spreads.")
