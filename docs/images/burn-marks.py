"""Draws docs/images/burn-marks.png: python docs/images/burn-marks.py

A hook at 30 W is held still for 3 s, drawn at 2 mm/s and at 65 mm/s over a sheet of tissue, and forceps pinch it once.
Ends in a check: black, white and pale, in this order.
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from viscera.device import open_device
from viscera.geometry import TriangleMesh, sample
from viscera.geometry.atlas import AtlasSettings, unique_atlas
from viscera.geometry.parts import JointedTool, inverse_transformed, make_tool
from viscera.geometry.tools import bipolar_forceps, monopolar_hook
from viscera.heat.burn import make_burn, measure_burn, step_burn
from viscera.heat.conduction import make_heat, step_heat
from viscera.heat.electrode import Electrode, ElectrodeParams, make_electrode, step_electrodes
from viscera.heat.stages import DEFAULT_STAGES, look_at
from viscera.skin import make_skin

WIDTH, SIDE, FRAME = 512, 0.048, 0.016
UPRIGHT = (0.0, 0.0, 0.0, 1.0)

device = open_device("cpu")
corner = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
vertices = np.concatenate([SIDE * corner, np.zeros((4, 1))], axis=1)
mesh = TriangleMesh(vertices, np.array([[0, 1, 2], [0, 2, 3]]), "sheet", (0.5 + 0.98 * corner).astype(np.float32))
skin = make_skin(mesh, unique_atlas(mesh, AtlasSettings(WIDTH)), WIDTH, device=device)
heat = make_heat(skin, dt=FRAME)
burn = make_burn(heat)
hook, forceps = (make_tool(n, s(), device) for n, s in (("hook", monopolar_hook), ("forceps", bipolar_forceps)))
cutting = make_electrode(hook, burn, ElectrodeParams(power=30.0))
pinching = make_electrode(forceps, burn, ElectrodeParams(power=30.0, bipolar=True, reach=2.5e-3))


def frame(stage) -> None:
    step_electrodes(stage, [cutting, pinching])
    step_heat(stage, heat)
    step_burn(stage, burn)
    measure_burn(stage, burn)


program = device.record(frame)
trace: list[tuple[float, ...]] = []


def draw(electrode: Electrode, start: tuple[float, float], way: float, seconds: float, grip: float = 0.0) -> None:
    """Along y for `way` [m], pressed a little into the sheet, then a second of cooling."""
    x, y, z = start[0], start[1], -1.0e-3 if electrode is pinching else -0.1e-3
    frames = round(seconds / FRAME)
    t = int(np.argmin(np.linalg.norm(skin.position.numpy() - (x + 2e-3, y, 0.0), axis=1)))
    electrode.tool.place((x, y, z), UPRIGHT, grip, jump=True)
    electrode.press(True)
    for n in range(frames):
        electrode.tool.place((x, y + way * (n + 1) / frames, z), UPRIGHT, grip)
        program.run()
        if way == 0.0 and electrode is cutting:
            white, black = (1.0 - np.exp(-float(a.numpy()[t])) for a in (burn.damage, burn.charring))
            now = (heat.temperature.numpy()[t] + 37.0, burn.water.numpy()[t], white, black)
            trace.append((FRAME * (n + 1), *map(float, now), float(electrode.delivered.host[0])))
    electrode.press(False)
    for _ in range(60):
        program.run()


def outline(axis, tool: JointedTool, place: tuple[float, float], reach: float, grip: float = 0.0) -> None:
    """What lies within reach of every electrode of the tool, by its distance fields: the mark's shape."""
    line = np.linspace(-6e-3, 6e-3, 121)
    x, y = np.meshgrid(place[0] + line, place[1] + line)
    points = np.stack([x.ravel(), y.ravel(), np.zeros(x.size)], axis=1)
    tool.place((*place, -1.0e-3 if tool is forceps else -0.1e-3), UPRIGHT, grip, jump=True)
    parts = [(p.field, pose) for p, pose in zip(tool.parts, tool.end, strict=True) if p.active]
    far = np.max([sample(field, inverse_transformed(pose, points))[0] for field, pose in parts], axis=0)
    axis.contour(1e3 * x, 1e3 * y, far.reshape(x.shape), levels=[reach], colors="cyan", linewidths=1.0)


areas = []
for start, way, seconds in (
    ((-0.018, 0.0), 0.0, 3.0),
    ((-0.0095, -0.008), 0.016, 8.0),
    ((0.001, -0.02), 0.04, 0.04 / 0.065),
):
    draw(cutting, start, way, seconds)
    areas.append(1e6 * burn.area.host[0].copy())
draw(pinching, (0.016, 0.0), 0.0, 3.0, grip=0.75)

level = burn.burn_level.numpy().reshape(WIDTH, WIDTH)
look = look_at(DEFAULT_STAGES, level)
rng = np.random.default_rng(1)
own = np.array(DEFAULT_STAGES[0].colour) * (1.0 + 0.12 * rng.normal(size=(WIDTH, WIDTH, 1)))
grain = 1.0 + 0.05 * rng.normal(size=(WIDTH, WIDTH, 1))
colour = own * (1.0 - look[..., 3:4]) + look[..., :3] * look[..., 3:4] * grain

half = 0.5e3 * SIDE / 0.98
box = (-half, half, -half, half)
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(16, 5.2), constrained_layout=True)
left.imshow(np.clip(colour, 0, 1) ** (1 / 2.2), origin="lower", extent=box)
left.set_title("hook: held 3 s, 2 mm/s, 65 mm/s; forceps [mm]")
shown = middle.imshow(level, origin="lower", extent=box, cmap="magma", vmin=0.0, vmax=2.0)
for place in ((-0.018, 0.0), (-0.0095, 0.008), (0.001, 0.02)):
    outline(middle, hook, place, cutting.params.reach)
outline(middle, forceps, (0.016, 0.0), pinching.params.reach, 0.75)
middle.set_title("burn level; cyan: within the tool's reach")
figure.colorbar(shown, ax=middle, shrink=0.8)
time, warm, water, white, black, power = np.array(trace).T
right.plot(time, warm, color="tab:red", label="temperature [°C]")
right.plot(time, 10.0 * power, color="tab:grey", label="power [0.1 W]")
other = right.twinx()
for name, values in (("water left", water), ("coagulation", white), ("char", black)):
    paint = {"water left": "tab:blue", "coagulation": "tab:orange", "char": "black"}[name]
    other.plot(time, values, color=paint, linestyle="--", label=name)
right.set_title("under the hook that is held still")
right.set_xlabel("time [s]")
right.set_ylim(0, 400)
right.legend(loc="upper center")
other.legend(loc="center right")
figure.savefig(Path(__file__).with_name("burn-marks.png"), dpi=70)

x = np.linspace(-half, half, WIDTH)
marks = [float(level[:, (low < x) & (x < high)].max()) for low, high in ((-24, -11), (-11, -1), (0, 9))]
print("highest level of each mark:", np.round(marks, 2).tolist(), "areas [mm²]:", np.round(areas, 1).tolist())
assert marks[0] > 1.9 > 1.2 > marks[1] > 0.95 > marks[2] > 0.1
