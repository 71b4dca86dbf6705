"""Documents: read as JSON or YAML, unpacked, bundled, converted from Swagger 2, with their references resolved."""
