"""Subset of Liquid: an interpreter over JSON values, without I/O, that counts its steps."""
