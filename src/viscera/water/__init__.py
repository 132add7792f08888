"""Free fluids: smoothed particles in 2D and 3D. Start with `sph`, which has the step; docs/water.md shows its use."""
