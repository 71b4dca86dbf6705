"""What the faces share: the edge of HTTP, problems, bodies, authentication and probes."""
