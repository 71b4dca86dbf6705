"""JSON Schema: dialects, acceptance checks of schemas, bounds on the work of validation, validators."""
