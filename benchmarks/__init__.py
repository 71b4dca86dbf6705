"""What a call, a list, an import, a start and a session cost: measured side by side with others, in one run."""
