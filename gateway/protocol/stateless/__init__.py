"""Revision 2026-07-28: each request stands alone, and `subscriptions/listen` is the only stream."""
