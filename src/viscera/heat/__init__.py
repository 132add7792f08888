"""Heat in the skin: how it spreads, and how it is lost."""
