"""Models of request bodies and queries."""
