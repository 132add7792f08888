"""How a film is drawn on the skin."""
