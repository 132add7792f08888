"""Drops that fly, land and let go."""
