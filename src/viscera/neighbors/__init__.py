"""Who is near whom: neighbour search for particles. Start with `grid`."""
