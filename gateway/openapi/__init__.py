"""OpenAPI documents as tools: reads a document, compiles its operations, reports on each; no I/O."""
