"""Limits of the members of request bodies."""

MAX_REMOTE_NAME_LENGTH = 2_048
"""Characters of a primitive's name, URI or URI template at a live source, as long as a URI may be."""
MAX_NAMES = 1_000
"""Definitions in one request, as many as a live source has remembered ones."""
