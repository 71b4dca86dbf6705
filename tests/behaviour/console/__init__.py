"""The pages of approvals, over HTTP and in a real browser."""
