"""Authentication of a request: connects the Authorization header with `gateway.identity`."""

from collections.abc import Mapping, MutableMapping
from typing import Any

from gateway.domain.tenancy.principals import Caller, Principal
from gateway.errors import Unauthenticated
from gateway.identity.authenticator import REFUSED, Authenticator
from gateway.identity.people import Target
from gateway.telemetry.log_context import LABELS
from gateway.web.headers import headers_of

_USUAL = "Bearer mcpg_"


def authorization_of(scope: MutableMapping[str, Any]) -> str | None:
    """Return the Authorization header; None if it is missing, or repeated and therefore ambiguous."""
    fields = headers_of(scope)
    found = fields.get(b"authorization")
    # guard: one-credential
    return None if found is None or b"authorization" in fields.repeated else found.decode("latin-1")


def address_of(scope: Mapping[str, Any]) -> str:
    """Return the client address that the edge stored in the scope; empty if it is unknown."""
    client = scope.get("client")
    return "" if client is None else str(client[0])


async def authenticate(scope: MutableMapping[str, Any], credentials: Authenticator) -> Caller:
    """Authenticate the request; store the caller in the scope and in the log context.

    Raises:
        Unauthenticated: the credential is missing or invalid.
        LimitExceeded: the credential is missing or invalid, and the address has too many such failures.
        DatabaseUnavailable: the key cannot be checked now.
    """
    authorization = authorization_of(scope)
    # building a target costs more than this check of the usual header with a key
    target = None if authorization is None or authorization.startswith(_USUAL) else target_of(scope)
    caller = await credentials.authenticate(authorization, address=address_of(scope), target=target)
    scope["caller"] = caller
    labels = LABELS.get()
    if labels is not None:
        labels.principal = caller.name
        labels.tenant = caller.slug if isinstance(caller, Principal) else None
    return caller


def target_of(scope: Mapping[str, Any]) -> Target:
    """Return the URL of a request; the edge has checked its host."""
    host = next((value for name, value in scope["headers"] if name == b"host"), b"")
    return Target(f"{scope['scheme']}://{host.decode('latin-1').lower()}", scope["path"])


def caller_of(scope: Mapping[str, Any]) -> Caller:
    """Return the caller that `authenticate` stored in the scope.

    Raises:
        Unauthenticated: `authenticate` has not accepted the request.
    """
    caller: Caller | None = scope.get("caller")
    if caller is None:
        raise Unauthenticated(REFUSED)
    return caller
