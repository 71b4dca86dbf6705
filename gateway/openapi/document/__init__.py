"""Documents: read as JSON or YAML, unpacked, bundled, converted from Swagger 2, their references resolved."""
