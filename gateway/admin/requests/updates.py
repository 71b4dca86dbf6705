"""Request models of webhooks."""
