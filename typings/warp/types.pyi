from typing import TypeVar

from ._arrays import array as array
from ._dtypes import _Vector

_S = TypeVar("_S")

def vector(length: int, dtype: type[_S]) -> type[_Vector[_S]]: ...
