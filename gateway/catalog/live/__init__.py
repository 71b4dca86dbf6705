"""Live sources of a tenant: declarations, attachments, and discovered primitives."""
