"""Hands: devices that say where a hand is and push it, the loop that talks to them at 1 kHz, and what keeps it safe."""
