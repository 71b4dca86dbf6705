"""Primitives registered in Python: typed definitions, plugins, registrations."""
