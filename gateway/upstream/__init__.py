"""The only outbound HTTP path: guarded dialling, pooled connections, and requests written exactly as planned."""
