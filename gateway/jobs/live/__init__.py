"""Attachments of live sources: one replica holds each, and requests of other replicas are forwarded to it."""
