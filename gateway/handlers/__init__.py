"""Handlers: the objects that run primitives, one module per kind, behind one interface."""
