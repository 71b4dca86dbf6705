"""Endpoints, one module per noun."""
