"""Calls that wait: for the decision of a person, or as tasks of their clients."""
