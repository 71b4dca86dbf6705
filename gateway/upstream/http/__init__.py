"""The HTTP/1.1 client: pool, connector, request heads, responses; `exchange` is its surface (README.md)."""
