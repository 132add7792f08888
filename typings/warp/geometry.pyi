from ._arrays import array
from ._dtypes import vec3

class IsoSurfaceMarchingCubes:
    @staticmethod
    def extract(
        field: array[float],
        threshold: float = 0.0,
        *,
        lower: vec3 | tuple[float, float, float] | None = None,
        upper: vec3 | tuple[float, float, float] | None = None,
    ) -> tuple[array[vec3], array[int]]: ...
