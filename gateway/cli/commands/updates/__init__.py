"""Commands about changed resources: inbound webhooks, watches, and a client that follows them."""
