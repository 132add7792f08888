"""Heat's loops in C beside their plain twins."""

from __future__ import annotations

import numpy as np

from viscera.device import Device
from viscera.heat import native as loops
from viscera.heat.conduction import Heat, HeatParams, make_heat, set_heat, stage_plain, step_heat
from viscera.heat.network import cut_sides, limit_bodies, rebuild_network, shear_conductances, side_conductances
from viscera.native import Trial, Twin, register
from viscera.native.twins import Results
from viscera.skin import rebuild_skin
from viscera.skin.twins import ring_skin

_PARAMS = {
    "conduction": HeatParams(),
    "losses": HeatParams(perfusion=58_000.0, air_transfer=10.0, air_temperature=295.15),
    "power": HeatParams(),
    "at rest": HeatParams(),
    "stretched": HeatParams(),
    "cut": HeatParams(conductivity=50.0),
}


def _heat(device: Device, feature: str, native: bool, size: int) -> Heat:
    """On a ring, which heat crosses over seams; warm here and there."""
    skin = ring_skin(device, size, 0.0 if feature == "at rest" else 0.4)
    device.record(lambda stage: rebuild_skin(stage, skin, native)).run()
    heat = make_heat(skin, HeatParams() if feature == "cut" else _PARAMS[feature], native=native)
    rng = np.random.default_rng(5)
    warm = np.zeros(skin.width * skin.height, dtype=np.float32)
    warm[skin.texels.numpy()] = 30.0 * rng.random(skin.count)
    heat.temperature.assign(warm)
    if feature == "power":
        heat.power.assign(0.01 * warm)
    return heat


def _step(device: Device, feature: str, native: bool, size: int) -> Trial:
    heat = _heat(device, feature, native, size)

    def results() -> Results:
        return {"temperature": heat.temperature.numpy()}

    return Trial(lambda stage: step_heat(stage, heat), results, heat.skin.count, heat.skin.count * heat.stages)


def _conductances(device: Device, feature: str, native: bool, size: int) -> Trial:
    heat = _heat(device, feature, native, size)
    set_heat(heat, _PARAMS[feature])
    skin, net = heat.skin, heat.network.net

    def results() -> Results:
        return {name: getattr(net, name).numpy() for name in ("left", "bottom", "shear", "inverse", "link")}

    return Trial(
        lambda stage: rebuild_network(stage, skin, heat.network, native), results, skin.count, skin.count
    )  # fmt: skip


register(Twin(
    "heat.stages", (stage_plain,), {"cpu": (loops.stage_cpu,), "cuda": (loops.stage_cuda,)},
    ("conduction", "losses", "power"),
    1e-5,  # some twenty stages, each a sum of nine terms with multiply-adds
    _step, small=64, large=512,
))  # fmt: skip
register(Twin(
    "heat.conductances", (side_conductances, shear_conductances, limit_bodies, cut_sides),
    {"cpu": (loops.side_tiles, loops.shear_tiles, loops.limit_tiles, loops.cut_tiles)},
    ("at rest", "stretched", "cut"),
    5e-5,  # the metric's determinant loses digits where the ring is sheared
    _conductances, small=64, large=512,
))  # fmt: skip
