"""What the gateway does without a caller: it looks for what is due and does it, each piece on one replica."""
