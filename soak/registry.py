"""All attacks, by name; a worker imports its own alone."""

from __future__ import annotations

from soak.attack import Attack
from soak.attacks import clocks, commands, crowds, disks, hands, kills, meshes, recordings, wire

ATTACKS: dict[str, Attack] = {
    module.ATTACK.name: module.ATTACK
    for module in (wire, crowds, recordings, meshes, hands, commands, kills, disks, clocks)
}
