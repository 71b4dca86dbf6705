"""Sessions of the handshake revisions in Redis: records, stream logs, subscriptions, pending requests."""
