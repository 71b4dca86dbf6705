"""Credentials of requests: stored secrets and OAuth access tokens."""
