"""Limits of collections of objects."""

MAX_USERS_SHOWN = 20
"""Objects that a refused deletion names as users of the object."""

FIRST_POLL_S = 2.0
"""Seconds within which a new watch is polled for the first time, at random, so that many new ones are not polled at
once.
"""
