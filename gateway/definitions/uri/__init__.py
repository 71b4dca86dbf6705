"""URIs and URI templates (RFC 6570): grammar and matching."""
