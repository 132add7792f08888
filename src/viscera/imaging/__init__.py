"""Pictures: surfaces from particles, looked at from an eye; nothing here changes a world."""
