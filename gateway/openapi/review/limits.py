"""Limits of the review of changed documents: findings and comparisons."""

MAX_OF_TOOL = 20
"""Limit on the differences that are listed for one tool."""
MAX_OF_DOCUMENT = 200
"""Limit on the listed differences of the documents' outlines."""
MAX_STEPS = 20_000
"""Limit on the schemas that are compared for one tool."""
