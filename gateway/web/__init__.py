"""HTTP parts that protocol and admin share: the edge, problem documents, bodies, authentication and probes."""
