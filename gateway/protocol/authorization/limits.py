"""Limits of requests to the authorization server."""

MAX_PARAMETERS = 30
"""Parameters of one request; OAuth and its extensions define about 20 for the largest one."""
MAX_METADATA_BYTES = 16 * 1024
"""Bytes of the metadata that a client registers: at most 20 redirect URIs of 500 characters, and texts."""
REGISTRATION_BODY_S = 10.0
"""Seconds for a registration's body to arrive; anyone may send one, so a slow body must not hold its connection."""
MAX_DESCRIPTION_LENGTH = 300
"""Characters of a provider's error description, which a page shows to a person."""
