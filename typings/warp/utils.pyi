from typing import Any

from ._arrays import array

def array_scan(in_array: array[Any], out_array: array[Any], inclusive: bool = True) -> None: ...
def radix_sort_pairs(
    keys: array[Any], values: array[Any], count: int, begin_bit: int = 0, end_bit: int | None = None
) -> None: ...
