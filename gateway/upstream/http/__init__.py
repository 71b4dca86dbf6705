"""The HTTP/1.1 client: connection pool, connector, request heads, responses."""
