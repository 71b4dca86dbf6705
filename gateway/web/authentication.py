"""Authentication of a request: connects the Authorization header with `gateway.identity`."""

from collections.abc import Mapping, MutableMapping
from typing import Any

from gateway.domain.tenancy.principals import Caller, Principal
from gateway.errors import Unauthenticated
from gateway.identity.authenticator import REFUSED, Authenticator
from gateway.telemetry.log_context import LABELS
from gateway.web.headers import headers_of


def authorization_of(scope: MutableMapping[str, Any]) -> str | None:
    """The Authorization header; None if it is missing, or repeated and therefore ambiguous."""
    fields = headers_of(scope)
    found = fields.get(b"authorization")
    return None if found is None or b"authorization" in fields.repeated else found.decode("latin-1")


def address_of(scope: Mapping[str, Any]) -> str:
    """The client address as the edge stores it: behind a trusted proxy, the address that the proxy names."""
    client = scope.get("client")
    return "" if client is None else str(client[0])


async def authenticate(scope: MutableMapping[str, Any], credentials: Authenticator) -> Caller:
    """Authenticate the request; store the caller in the scope and in the log context.

    Raises:
        Unauthenticated: the credential is missing or unknown.
        LimitExceeded: the credential is missing or unknown, and the address has too many such failures.
    """
    caller = await credentials.authenticate(authorization_of(scope), address=address_of(scope))
    scope["caller"] = caller
    labels = LABELS.get()
    if labels is not None:
        labels.principal = caller.name
        labels.tenant = caller.slug if isinstance(caller, Principal) else None
    return caller


def caller_of(scope: Mapping[str, Any]) -> Caller:
    """The authenticated caller, for code that runs behind `authenticate`."""
    caller: Caller | None = scope.get("caller")
    if caller is None:
        raise Unauthenticated(REFUSED)
    return caller
