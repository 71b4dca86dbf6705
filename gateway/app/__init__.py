"""Composition root: builds and opens every part, mounts the routes, serves."""
