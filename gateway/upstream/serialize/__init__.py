"""Arguments to bytes: parameters, bodies and headers of one request."""
