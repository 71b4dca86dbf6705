"""Limits of the conditions of a policy: patterns and values."""

MAX_READ = 500
"""Maximum number of values that are read from one call."""
MAX_NAME_LENGTH = 128
"""Maximum length of a member name; a member with a longer name is cut."""
MAX_TEXT_LENGTH = 16_384
"""Characters of an argument that are folded or searched; a longer one is not decidable."""
MAX_MEMBERS = 1000
"""Members of an object, or elements of a list, that a condition reads; more are not decidable."""
MAX_CONDITION_NUMBER = 2**63 - 1
"""The highest absolute number of a condition, 64 bits with sign; PostgreSQL and clients of other languages keep it."""
MAX_RULES_BYTES = 64 * 1024
"""JSON bytes of all rules of one policy; a replica keeps and reads them for each call of the tenant."""

MAX_PATH_LENGTH = 4096
"""Characters of a path, as in Linux (`PATH_MAX`); a longer one is not decidable."""
MAX_DECODINGS = 5
"""Percent-decodings of one path; a path that changes after five was encoded to deceive and is not decidable."""
