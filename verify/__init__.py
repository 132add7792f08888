"""Every figure we claim, measured at full size. `make verify` runs it; docs/verify.md says how to read it."""
