"""Revision 2026-07-28: each request is independent, and `subscriptions/listen` is the only long-lived stream."""
