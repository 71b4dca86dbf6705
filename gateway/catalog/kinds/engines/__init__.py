"""Engines of declared kinds: the verbs of collections and singletons, with their secrets and special functions."""
