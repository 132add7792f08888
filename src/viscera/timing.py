"""Time in a world: how long a tick and a frame are. The only place that says so."""

TICK = 0.001
"""One turn of hand and tissue [s]."""

TICKS_PER_FRAME = 16
"""What is seen, and every system beside the tissue, advances once in so many ticks."""

TICKS_PER_SECOND = round(1.0 / TICK)

FRAME = TICKS_PER_FRAME * TICK
"""[s]"""
