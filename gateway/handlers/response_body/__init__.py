"""Bodies of upstream responses: their kind, charset and value."""
