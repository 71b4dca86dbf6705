"""The domain's frozen values and identifiers, shared by every other package; no I/O, no framework."""
