"""Surfaces: loading, checking and asking them, filling them with lattice nodes, moving them along."""

from viscera.geometry.distance import (
    DistanceField,
    FieldGrid,
    box_distance,
    capsule_distance,
    distance_field,
    sample,
    sample_distance,
    sample_exact,
    sample_field,
    sphere_distance,
)
from viscera.geometry.embedding import Embedding, embed, embed_surface
from viscera.geometry.inspect import Hole, MeshReport, inspect_mesh, repair, require_closed
from viscera.geometry.intersections import Intersections, self_intersections
from viscera.geometry.mesh import TriangleMesh, load_mesh
from viscera.geometry.primitives import box, capsule, icosphere, rounded_slab, torus, uv_sphere
from viscera.geometry.queries import (
    Closest,
    MeshQuery,
    RayHits,
    build_query,
    cast_rays,
    closest_points,
    signed_distance,
)
from viscera.geometry.voxels import Voxels, box_nodes, spacing_for_count, voxelise

__all__ = [
    "Closest",
    "DistanceField",
    "Embedding",
    "FieldGrid",
    "Hole",
    "Intersections",
    "MeshQuery",
    "MeshReport",
    "RayHits",
    "TriangleMesh",
    "Voxels",
    "box",
    "box_distance",
    "box_nodes",
    "build_query",
    "capsule",
    "capsule_distance",
    "cast_rays",
    "closest_points",
    "distance_field",
    "embed",
    "embed_surface",
    "icosphere",
    "inspect_mesh",
    "load_mesh",
    "repair",
    "require_closed",
    "rounded_slab",
    "sample",
    "sample_distance",
    "sample_exact",
    "sample_field",
    "self_intersections",
    "signed_distance",
    "spacing_for_count",
    "sphere_distance",
    "torus",
    "uv_sphere",
    "voxelise",
]
