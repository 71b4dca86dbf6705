"""Configuration as code: manifests of objects, their differences from a gateway, plans, `apply` and `export`."""
