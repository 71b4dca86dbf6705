"""An example package of primitives in Python."""
