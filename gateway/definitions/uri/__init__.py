"""URIs and URI templates (RFC 6570): grammar, expansion, matching."""
