"""The OpenAPI compiler: reads a document, compiles its operations to tools, and reports on each; no I/O."""
