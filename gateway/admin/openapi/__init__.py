"""The OpenAPI document of the admin API."""
