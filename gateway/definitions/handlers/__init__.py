"""Specs of the handlers that tenants declare: parser, safety levels and checks."""
