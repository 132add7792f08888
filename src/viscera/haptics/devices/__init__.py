"""Drivers, one file per make of device. Each imports its vendor's package only when it is opened."""
