"""The audit trail: hash chains, signed heads, verification."""
