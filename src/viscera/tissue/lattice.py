"""Soft tissue as a volumetric lattice of masses and springs that one can push: the door to it.

`make_lattice` turns integer mass positions into a `Tissue`. The class is in `tissue.py`, its tick in `stepping.py`, the
physics in `kernels.py` and beside it, the places in memory in `layout.py`, the stiffnesses in `springs.py`.

Source: Etheredge, Kunst and Sanders, "Harnessing the GPU for Real-Time Haptic Tissue Simulation", JCGT 2(2), 2013.
"""

from __future__ import annotations

from viscera.device import Device
from viscera.errors import InputError
from viscera.tissue.making import make_whole
from viscera.tissue.params import LatticeParams, check_params
from viscera.tissue.slabs import make_slabs
from viscera.tissue.tissue import Tissue

__all__ = ["Tissue", "make_lattice"]


def make_lattice(device: Device, params: LatticeParams, *, native: bool = True) -> Tissue:
    """Builds the lattice at rest, in slabs if `params.slabs` says so, or if the device has others to share it with.
    `native=False` takes the plain kernels, which know no rest skipping."""
    check_params(params)
    device = device.ticks
    if params.rest_skipping is not None and not native:
        raise InputError("the plain lattice knows no rest skipping.", "Leave native out, or rest_skipping.")
    if device.others:
        return make_slabs([device, *device.others], params, native=native)
    if params.slabs > 1:
        return make_slabs([device] * params.slabs, params, native=native)
    return make_whole(device, params, native=native, bricks=device.is_cuda)
