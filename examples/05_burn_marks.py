"""Burn tissue with a monopolar hook three ways: held still, drawn slowly, drawn fast.

The hook's foot is pressed a tenth of a millimetre into a sheet of tissue and put under current. Where it is held, water
boils off first (tissue stays at 100 °C and is white), then the dry tissue chars. Drawn slowly it leaves a white
line, drawn fast a pale one. Checked is what must be so: three marks that differ, and every joule of the generator found
again in warm tissue and steam.

    python examples/05_burn_marks.py [--power 30]
"""

from __future__ import annotations

import argparse

import numpy as np

from viscera import burns, electrodes, heat, open_device, skin
from viscera.errors import VisceraError
from viscera.geometry import TriangleMesh
from viscera.geometry.atlas import AtlasSettings, unique_atlas
from viscera.geometry.parts import make_tool
from viscera.geometry.tools import monopolar_hook

SIDE, WIDTH, FRAME = 0.03, 128, 0.016
"""Of the sheet [m] and its texture; a step [s]."""
UPRIGHT = (0.0, 0.0, 0.0, 1.0)
SHADES = " .:=#@"
"""Burn level 0 to 2."""


def sheet() -> skin.Skin:
    corner = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
    vertices = np.concatenate([SIDE * corner, np.zeros((4, 1))], axis=1)
    triangles = np.array([[0, 1, 2], [0, 2, 3]])
    mesh = TriangleMesh(vertices, triangles, "sheet", (0.5 + 0.9 * corner).astype(np.float32))
    atlas = unique_atlas(mesh, AtlasSettings(WIDTH))
    return skin.make(mesh, width=WIDTH, atlas=atlas, device=open_device("cpu"))


def draw(hook: electrodes.Electrode, speed: float, seconds: float) -> tuple[float, float]:
    """Draws along y, then lets it cool for a second; the generator's energy [J] and the hottest [°C]."""
    burn = hook.burn

    def frame(stage) -> None:
        electrodes.step(stage, [hook])
        heat.step(stage, burn.heat)
        burns.step(stage, burn)
        burns.measure(stage, burn)

    program = burn.heat.skin.device.record(frame)
    x, y, z = -0.002, -0.5 * speed * seconds, -1.0e-4
    electrodes.place(hook, (x, y, z), UPRIGHT, jump=True)
    electrodes.press(hook, True)
    energy, hottest = 0.0, 0.0
    for number in range(round(seconds / FRAME)):
        electrodes.place(hook, (x, y + speed * FRAME * (number + 1), z), UPRIGHT)
        program.run()
        energy += FRAME * electrodes.power(hook)
        hottest = max(hottest, float(burn.heat.temperature.numpy().max()))
    electrodes.press(hook, False)
    program.run(round(1.0 / FRAME))
    return energy, 37.0 + hottest


def show(burn: burns.Burn) -> None:
    level = burn.burn_level.numpy().reshape(WIDTH, WIDTH)
    for row in level[WIDTH // 2 + 30 : WIDTH // 2 - 30 : -4, WIDTH // 2 - 24 : WIDTH // 2 + 24]:
        print("  " + "".join(SHADES[min(len(SHADES) - 1, int(2.6 * value + 0.8))] for value in row))


def main() -> None:
    parser = argparse.ArgumentParser(description="Burn tissue with a monopolar hook three ways.")
    parser.add_argument("--power", type=float, default=30.0, help="of the generator, 20 to 40 W")
    power = parser.parse_args().power

    levels = []
    tissue = sheet()
    for name, speed, seconds in (("held still", 0.0, 3.0), ("at 5 mm/s", 0.005, 3.0), ("at 60 mm/s", 0.06, 0.3)):
        burn = burns.make(heat.make(tissue, dt=FRAME))
        tool = make_tool("hook", monopolar_hook(), tissue.device)
        hook = electrodes.make(burn, tool, electrodes.ElectrodeParams(power=power))
        energy, hottest = draw(hook, speed, seconds)
        coagulated, charred = (1e6 * area for area in burns.areas(burn))
        levels.append(float(burn.burn_level.numpy().max()))
        print(f"{name}: {energy:.1f} J, up to {hottest:.0f} °C, level {levels[-1]:.2f}, ", end="")
        print(f"coagulated {coagulated:.1f} mm², charred {charred:.1f} mm²")
        show(burn)
        kept = heat.energy(burn.heat) + burns.steam(burn)
        assert abs(kept / energy - 1.0) < 1e-4, "heat was lost"
    still, slow, fast = levels
    assert still > 1.5 > 1.1 > slow > 0.9 > fast > 0.0, "the three marks do not differ as they should"
    print("ok")


if __name__ == "__main__":
    try:
        main()
    except VisceraError as error:
        raise SystemExit(str(error)) from None
