"""What an HTTP method says of the requests that are made with it (RFC 9110)."""

from gateway.domain.tenancy.policy import Safety

_SAFE = frozenset(("GET", "HEAD", "OPTIONS", "QUERY", "TRACE"))
_IDEMPOTENT = _SAFE | {"PUT", "DELETE"}


def is_idempotent(method: str) -> bool:
    """Whether sending the request twice does what sending it once does."""
    return method in _IDEMPOTENT


def judge_safety(method: str) -> Safety:
    """How much harm the method can do before anybody says otherwise."""
    if method in _SAFE:
        return Safety.SAFE
    return Safety.DANGEROUS if method == "DELETE" else Safety.MODERATE
