"""Walls for fluids: triangle meshes in three structures, shapes by formula, boundary particles; contacts with them."""
