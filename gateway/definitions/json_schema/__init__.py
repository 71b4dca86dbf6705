"""JSON Schema: dialects, checks of schemas, bounds on the work of validation, validators."""
