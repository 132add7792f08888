from typing import Any, TypeVar

from ._arrays import array as array
from ._dtypes import _Vector

_S = TypeVar("_S")

def vector(length: int, dtype: type[_S]) -> type[_Vector[_S]]: ...
def matrix(shape: tuple[int, int], dtype: Any) -> Any: ...
