"""Rest a probe on a living liver and feel the heart.

The great vessels behind the liver lift its back with every beat; the tissue carries that to the front, where the probe
rests 6 mm deep and is not moved. Printed is the force over one beat, as an instrument or a haptic device would give it
to the hand. Checked is what must be so: the strongest frequency of the force is the heart rate, and with the pulse at
zero the force is still.

    python examples/03_feel_the_heartbeat.py [--rate 75]
"""

from __future__ import annotations

import argparse

import numpy as np

import viscera
from viscera.errors import VisceraError
from viscera.inputs import SetParameter, ToolInput
from viscera.scenarios.liver import HOME_HEIGHT, PROBE_RADIUS
from viscera.world import World

DEPTH = 0.006
"""Of the resting probe's tip below the surface [m]."""


def rest(world: World, ticks: int) -> np.ndarray:
    """The force on the probe [N], along z, in each tick of 1 ms, while it rests where it waits above."""
    x, y, z = world.scene().instruments[0].home
    world.apply(ToolInput(0, (x, y, z - HOME_HEIGHT + PROBE_RADIUS - DEPTH)))
    force = np.empty(ticks)
    for tick in range(ticks):
        world.step()
        force[tick] = world.tools[0].force[2]
    return force


def strongest_frequency(force: np.ndarray) -> tuple[float, float]:
    """[Hz], and its amplitude [N]."""
    amplitude = 2.0 / len(force) * np.abs(np.fft.rfft(force - force.mean()))
    best = int(np.argmax(amplitude))
    return float(np.fft.rfftfreq(len(force), 1e-3)[best]), float(amplitude[best])


def main() -> None:
    parser = argparse.ArgumentParser(description="Rest a probe on a living liver and feel the heart.")
    parser.add_argument("--rate", type=float, default=75.0, help="beats per minute, 40 to 160")
    rate = parser.parse_args().rate

    world = viscera.make("liver", device="cpu", seed=1, parameters={"heart_rate": rate})
    beat = 60_000.0 / rate  # [ticks]
    rest(world, 1_000)  # until the probe has come down and the tissue is calm
    force = rest(world, round(3 * beat))

    print(f"one beat at {rate:g} per minute, force on the resting probe:")
    begin, low = int(np.argmin(force[: round(beat)])), force.min()
    for share in np.arange(0.0, 1.0, 0.05):
        newton = force[begin + round(share * beat)]
        bar = "▒" * round(50 * (newton - low) / np.ptp(force))
        print(f"  {share * beat:5.0f} ms  {1e3 * newton:5.1f} mN  {bar}")
    frequency, amplitude = strongest_frequency(force)
    print(f"strongest at {60 * frequency:.1f} per minute, {1e3 * amplitude:.1f} mN")

    world.apply(SetParameter("pulse", 0.0))
    rest(world, 2_000)
    still = rest(world, 1_000)
    world.close()
    print(f"with the pulse at zero the force moves by {1e3 * np.ptp(still):.2f} mN")

    assert abs(60.0 * frequency - rate) < 1.0, "the force does not beat at the heart rate"
    assert np.ptp(force) > 10.0 * np.ptp(still), "the pulse is not felt"
    print("ok")


if __name__ == "__main__":
    try:
        main()
    except VisceraError as error:
        raise SystemExit(str(error)) from None
