"""Typed definitions: typed dictionaries of definitions and schemas, and definitions of typed functions."""
