"""Limits of the conditions of a policy: patterns and values."""

MAX_READ = 500
"""Maximum number of values that are read from one call."""
MAX_NAME_LENGTH = 128
"""Maximum length of a member name; a member with a longer name is cut."""
MAX_TEXT_LENGTH = 16_384
"""Characters of an argument that are folded or searched; a longer one is not decidable."""
MAX_MEMBERS = 1000
"""Members of an object, or elements of a list, that a condition reads; more are not decidable."""
