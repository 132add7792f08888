"""Wave generator: adaptive water after Elmasdotter §4.2; see _adaptive/pools.py."""

from viscera.scenarios._adaptive.scenario import pool_scenario

SCENARIO = pool_scenario("waves", "Wave generator", "A wall goes to and fro and makes waves.")
