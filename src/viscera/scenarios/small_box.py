"""Small box: adaptive water after Elmasdotter §4.2; see _adaptive/pools.py."""

from viscera.scenarios._adaptive.scenario import pool_scenario

SCENARIO = pool_scenario("small-box", "Small box", "Water in a narrow box, most of it in sight at once.")
