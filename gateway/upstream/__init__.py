"""The only door out: guarded dialling, pooled connections, and requests written exactly as a plan says."""
