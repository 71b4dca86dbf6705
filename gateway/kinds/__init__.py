"""Declarations of the kinds of objects that a tenant configures, from which the engines of each layer are built."""
