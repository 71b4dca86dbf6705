"""Handlers written in Python: what a function receives, how it runs, and what it may return."""
