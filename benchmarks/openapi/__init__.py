"""Measurements of the OpenAPI import over real documents: `python -m benchmarks.openapi`."""
