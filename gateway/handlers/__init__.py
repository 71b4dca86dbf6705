"""Handlers: the objects that run primitives, behind one interface."""
