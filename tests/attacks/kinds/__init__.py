"""Attacks on the engines of kinds, each tried on every declared kind."""
