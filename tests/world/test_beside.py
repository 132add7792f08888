"""Work beside the ticks."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import time
from viscera.world.beside import Beside

def work():
    time.sleep(0.3)
    print("done", flush=True)

beside = Beside("test")
beside.start(work)
"""


def test_a_program_that_ends_waits_for_the_piece_that_is_being_done() -> None:
    """Else the thread would come back from native code into an interpreter that is gone, which aborts the process."""
    ended = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr
