"""The pipeline between registry and handler: every call passes each stage, from any protocol or API."""
