"""The pipeline between registry and handler: every call passes each stage, whatever protocol or API it came from."""
