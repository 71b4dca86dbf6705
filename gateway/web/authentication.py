"""Who sent a request: the bridge between the Authorization header and `gateway.identity`."""

from collections.abc import Mapping, MutableMapping
from typing import Any

from structlog.contextvars import bind_contextvars

from gateway.domain.principals import Caller, Principal
from gateway.errors import Unauthenticated
from gateway.identity.credentials import Credentials


def authorization_of(scope: Mapping[str, Any]) -> str | None:
    """The Authorization header; None when there is none, or more than one, of which no one can say who it is."""
    found: bytes | None = None
    for name, value in scope["headers"]:
        if name == b"authorization":
            if found is not None:
                return None
            found = value
    return None if found is None else found.decode("latin-1")


async def authenticate(scope: MutableMapping[str, Any], credentials: Credentials) -> Caller:
    """Find out who asks, and keep it in the scope and in the log's context.

    Raises:
        Unauthenticated: nobody we know.
    """
    caller = await credentials.authenticate(authorization_of(scope))
    scope["caller"] = caller
    if isinstance(caller, Principal):
        bind_contextvars(tenant=caller.slug, principal=caller.name)
    else:
        bind_contextvars(principal=caller.name)
    return caller


def caller_of(scope: Mapping[str, Any]) -> Caller:
    """Who was found to ask; for what runs behind `authenticate`."""
    caller: Caller | None = scope.get("caller")
    if caller is None:
        raise Unauthenticated("the credential is missing or not valid")
    return caller
