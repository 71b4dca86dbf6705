"""Limits that all replicas share: token buckets, concurrent calls, open streams."""
