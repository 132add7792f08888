"""Code in C inside Warp kernels: one vector header, one template function, one registry of twins.

`vectors` is the header, `template` fills slots, `twins` is the registry. docs/decisions/007-native-twins.md says why.
"""

from viscera.native.template import TemplateError, fill
from viscera.native.twins import Trial, Twin, register, registered
from viscera.native.vectors import TEAM, on_both, on_cpu, on_cuda

__all__ = ["TEAM", "TemplateError", "Trial", "Twin", "fill", "on_both", "on_cpu", "on_cuda", "register", "registered"]
