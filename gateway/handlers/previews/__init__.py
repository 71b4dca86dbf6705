"""Requests and calls as a user reads them before confirming."""
