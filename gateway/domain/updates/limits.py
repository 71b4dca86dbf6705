"""Limits of polls and webhooks."""

MAX_DOUBLINGS = 12
"""Doublings of a delay, before the maximum applies: 4,096 times the interval. The power would overflow without a limit.
"""

MAX_WARNINGS = 20
"""Warnings of an approval in an event, as many as an approval has."""
MAX_TEXT_LENGTH = 500
"""Characters of a text in an event; some texts come from a client or a user."""
