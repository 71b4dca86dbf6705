"""Operators of the installation: their keys and their rights."""
