"""The composition root: builds every part, opens it, mounts the routes, serves."""
