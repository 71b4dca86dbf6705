"""Limits of the fields of primitives and of contents."""

MAX_BLOCKS = 1_000
"""Elements of one list of contents. Each is validated field by field on the event loop. Chosen, not measured."""
MAX_LINK_SIZE = 2**53 - 1
"""The highest `size` of a resource link in bytes: the largest integer that JavaScript clients read exactly (RFC 8259,
6).
"""

MAX_FORM_FIELDS = 50
"""Fields of one form; a client shows all of them to a user at once. Chosen, not measured."""
MAX_CHOICES = 500
"""Values of one choice in a form. Chosen, not measured: lists of countries and time zones fit."""

MAX_TITLE_LENGTH = 200
"""Characters of a title, which clients show in one line."""
MAX_DESCRIPTION_LENGTH = 16_384
"""Characters of a description, about 4,000 tokens of each list that a model reads."""
MAX_ICONS = 16
"""Icons of one primitive: some sizes, each for light and dark themes."""
MAX_ICON_LENGTH = 64 * 1024
"""Characters of an icon's `src`, which may be a data URI with the picture. Lists contain it for each primitive."""
MAX_META_BYTES = 16 * 1024
"""JSON bytes of `_meta`, which each list contains; clients put identifiers and settings there, not contents."""

MAX_PROMPT_ARGUMENTS = 100
"""Arguments of one prompt, which a user fills by hand. Chosen, not measured."""

MAX_TOOL_NAME_LENGTH = 64
"""Characters of a name: hosts of models accept 64; MCP permits 128."""
