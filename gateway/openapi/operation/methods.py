"""Properties of HTTP methods (RFC 9110)."""

from gateway.domain.tenancy.policy import Safety

_SAFE = frozenset(("GET", "HEAD", "OPTIONS", "QUERY", "TRACE"))
_IDEMPOTENT = _SAFE | {"PUT", "DELETE"}


def is_idempotent(method: str) -> bool:
    """True if sending the request twice has the effect of sending it once."""
    return method in _IDEMPOTENT


def method_safety(method: str) -> Safety:
    """Return the safety level that the method implies without hints or overrides.

    Methods are case-sensitive, so `get` is not safe. Some servers accept `delete` as DELETE, so any spelling of DELETE
    is dangerous.
    """
    if method in _SAFE:
        return Safety.SAFE
    return Safety.DANGEROUS if method.upper() == "DELETE" else Safety.MODERATE  # guard: method-of-any-case
