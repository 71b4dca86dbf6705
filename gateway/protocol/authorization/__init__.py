"""The authorization server's endpoints: the SDK's handlers, over the gateway's clients, grants and pages."""
