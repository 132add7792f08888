"""These tests need gymnasium, which comes with `pip install viscera[rl]`."""

from __future__ import annotations

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("gymnasium") else ["test_*.py"]
