"""Attempts in a process of their own: whoever crashes or hangs takes no other with it.

    python -m soak.worker ATTACK        a case per line on standard input, an answer per line on standard output

An answer is `{"problem": …, "memory": MiB, "descriptors": n}`; the problem is empty when all is well.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from soak.attack import Attack, Case, Finding

START_S = 120.0
"""A process that begins has this much more time for its first attempt: kernels may have to be compiled [s]."""

MOST_MEMORY = 1500
"""That attempts may leave behind, over those of the first few [MiB]."""

MOST_DESCRIPTORS = 100
HANGS = "no end within"
SETTLED = 10
"""Attempts after which a process should grow no more."""


class Worker:
    """A process that makes the attempts of one attack."""

    def __init__(self, attack: Attack) -> None:
        self.attack = attack
        self.attempts = 0
        self.first: dict[str, Any] = {}
        self.last: dict[str, Any] = {}
        self._process: subprocess.Popen[bytes] | None = None

    def attempt(self, case: Case) -> str:
        """What is broken, in words; empty when nothing is."""
        fresh = self._process is None
        if self._process is None:
            self._start()
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        patience = self.attack.patience + (START_S if fresh else 0.0)
        try:
            process.stdin.write(json.dumps(case).encode() + b"\n")
            process.stdin.flush()
            if not select.select([process.stdout], [], [], patience)[0]:
                self.close(patience=0.0)
                return f"{HANGS} {patience:.0f} s"
            line = process.stdout.readline()
        except BrokenPipeError:
            line = b""
        if not line:
            code = process.wait(10.0)
            self.close()
            return f"the process ended with {signal.Signals(-code).name if code < 0 else code}"
        answer = json.loads(line)
        self.attempts += 1
        self.last = answer
        if self.attempts == SETTLED:
            self.first = answer
        return answer["problem"] or self._leaks()

    def _leaks(self) -> str:
        for what, most in (("memory", MOST_MEMORY), ("descriptors", MOST_DESCRIPTORS)):
            if self.first and self.last[what] - self.first[what] > most:
                text = f"{what} grew from {self.first[what]} to {self.last[what]} in {self.attempts} attempts"
                self.close()
                return text
        return ""

    def _start(self) -> None:
        self.attempts, self.first = 0, {}
        command = [sys.executable, "-m", "soak.worker", self.attack.name]
        root = Path(__file__).parent.parent
        paths = [str(root / "src"), str(root), str(root / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )

    def close(self, patience: float = 20.0) -> None:
        """Ends the process, and what it has started; by force when it takes longer than this [s]."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(10.0)
        process.stdout.close()


def smaller(worker: Worker, case: Case, problem: str, seconds: float = 60.0) -> Finding:
    """The same finding with as few steps as can be found in this time."""
    if problem.startswith(HANGS):
        return Finding(worker.attack.name, case, problem)  # each try would take as long
    end = time.monotonic() + seconds
    steps = list(case.get("steps", []))
    size = max(1, len(steps) // 2)
    while len(steps) > 1 and time.monotonic() < end:
        for start in range(0, len(steps), size):
            fewer = steps[:start] + steps[start + size :]
            again = worker.attempt({**case, "steps": fewer}) if fewer else ""
            if again:
                steps, problem = fewer, again
                break
            if time.monotonic() > end:
                break
        else:
            if size == 1:
                break
            size = max(1, size // 2)
    return Finding(worker.attack.name, {**case, "steps": steps} if "steps" in case else case, problem)


def find(name: str) -> Attack:
    """One of ours, or the `ATTACK` of a module of that name elsewhere."""
    ours = f"soak.attacks.{name}"
    return importlib.import_module(ours if importlib.util.find_spec(ours) else name).ATTACK


def usage() -> dict[str, int]:
    """Memory [MiB] and open descriptors of this process."""
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[1])
    return {"memory": pages * os.sysconf("SC_PAGE_SIZE") // 2**20, "descriptors": len(os.listdir("/proc/self/fd"))}


def main(name: str) -> None:
    # Whatever the code under attack prints goes to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    attack = find(name)
    for line in sys.stdin:
        problem = ""
        try:
            attack.attempt(json.loads(line))
        except Exception as error:
            problem = f"{type(error).__name__}: {error}\n{''.join(traceback.format_tb(error.__traceback__)[-3:])}"
        gc.collect()  # what is left is what leaks
        answers.write(json.dumps({"problem": problem, **usage()}) + "\n")
        answers.flush()
    os._exit(0)  # servers of attacks may still run, and end with their pipes


if __name__ == "__main__":
    main(sys.argv[1])
