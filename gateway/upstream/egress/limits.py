"""Limits of the entries of allow-lists."""

MAX_DOMAIN_LENGTH = 254
"""Characters of a domain name (RFC 1035 section 2.3.4), including its final dot."""
MAX_SOCKET_PATH_BYTES = 107
"""Bytes of a unix socket's path (`sun_path` of Linux, without its final zero)."""
