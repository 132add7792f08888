"""One file for each way to break something."""
