"""A world in real time: its own process, snapshots in shared memory, a log of every input."""
