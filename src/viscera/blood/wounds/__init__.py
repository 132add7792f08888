"""Open vessels and what leaves them."""
