"""What a call costs: measured side by side with a bare proxy, in one run."""
