"""One upstream request: its plan, and the request and response themselves."""
