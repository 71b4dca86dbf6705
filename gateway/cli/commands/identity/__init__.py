"""Commands about keys, issuers, and the people whom they name."""
