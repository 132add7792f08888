"""Stand-ins for haptic hardware: libraries in C that the vendors' Python packages load, and a Haply service."""
