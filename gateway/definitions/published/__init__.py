"""JSON Schemas of definitions and handlers, for editors and clients of the admin API."""
