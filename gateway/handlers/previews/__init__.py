"""Previews: requests and calls in readable form, for the user's confirmation."""
