"""How the gateway speaks about itself: structured logs, and numbers for Prometheus."""
