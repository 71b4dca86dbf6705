"""Snapshots: one tenant's catalog at one revision, composed of stored and registered primitives."""
