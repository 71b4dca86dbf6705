"""Outbound webhooks: their endpoints, the delivery log, and the attempts that a worker makes."""
