"""Limits of the deliveries of outbound webhooks."""

MAX_HOLD_S = 300.0
"""The longest pause in seconds of an endpoint that fails, after which one delivery tests it."""
MAX_ERROR_LENGTH = 300
"""Characters of the stored error of a delivery."""
