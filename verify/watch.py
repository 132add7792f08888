"""A viewer that draws nothing, in a process of its own: `python -m verify.watch URL` until standard input ends."""

from __future__ import annotations

import asyncio
import sys
import time


async def watch(url: str) -> int:
    import subprocess

    from verify.viewers import Served, view

    # Only the address of a `Served` is used to view it.
    served = Served(subprocess.Popen(["true"], text=True), url)
    start = time.monotonic()
    async with view(served) as viewer:
        print("watching", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        print(f"{viewer.rate(start):.1f} frames/s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(watch(sys.argv[1])))
