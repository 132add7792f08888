"""The part of Warp 1.19 that viscera uses, as pyright should see it.

Warp's own annotations do not let its dtypes stand in a kernel's signature, in a struct's field or on either side of an
operator. This stub replaces them. A name that is missing here is an error: add it here first, and only if Warp has it
(`tests/project/test_warp_stub.py` compares both).

    _dtypes    numbers, vectors, matrices, quaternions, transforms
    _arrays    `wp.array` and what makes one
    _kernels   what may be called inside a kernel
    _host      decorators, launches, graphs, devices, meshes

Inside kernels `float` and `float32`, `int` and `int32`, `bool` and `wp.bool` are the same type for Warp, and so here.
All other dtypes mix with nothing but themselves, in Warp and here.
"""

from . import config as config
from . import geometry as geometry
from . import types as types
from . import utils as utils
from ._arrays import *
from ._dtypes import *
from ._host import *
from ._kernels import *

__version__: str
