"""Authentication of HTTP requests: passes the Authorization header to `gateway.identity`."""

from collections.abc import Mapping, MutableMapping
from typing import Any

from gateway.domain.refusals import ProofRefused
from gateway.domain.tenancy.keys import KEY_PREFIX
from gateway.domain.tenancy.principals import Caller, Principal
from gateway.errors import Unauthenticated
from gateway.identity.access_tokens import bearer_token
from gateway.identity.authenticator import REFUSED, Authenticator
from gateway.identity.dpop import Proof
from gateway.identity.people import Target
from gateway.telemetry.log_context import LABELS
from gateway.web.headers import headers_of

_USUAL = f"Bearer {KEY_PREFIX}"
_PROOF = "gateway.proof"


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
    # skips the costly `Target` for API keys, the usual credential
    if authorization is None or authorization.startswith(_USUAL):
        caller = await credentials.authenticate(authorization, address=address_of(scope))
    elif is_bound(authorization):
        caller = await _authenticate_bound(scope, authorization, credentials)
    else:
        caller = await credentials.authenticate(authorization, address=address_of(scope), target=target_of(scope))
    scope["caller"] = caller
    labels = LABELS.get()
    if labels is not None:
        labels.principal = caller.name
        labels.tenant = caller.slug if isinstance(caller, Principal) else None
    return caller


async def _authenticate_bound(
    scope: MutableMapping[str, Any], authorization: str, credentials: Authenticator
) -> Principal:
    """Authenticate a request with a DPoP-bound access token (RFC 9449 section 7.1)."""
    target, address = target_of(scope)._replace(is_bound=True), address_of(scope)
    caller, people = await credentials.authenticate(authorization, address=address, target=target), credentials.people
    resource = credentials.resource_of(target)
    token = bearer_token(authorization, b"dpop")
    # guard: bound-tokens-only
    if (
        not isinstance(caller, Principal)
        or caller.thumbprint is None
        or token is None
        or people is None
        or people.proofs is None
        or resource is None
    ):
        raise Unauthenticated(REFUSED)
    proof, url = proof_of(scope), f"{resource.origin}{target.path}"
    try:
        await people.proofs.check(
            caller.tenant, proof, token=token.decode("ascii", "replace"), url=url, thumbprint=caller.thumbprint
        )
    except ProofRefused:
        credentials.count_failure(address)
        raise
    return caller


def proof_of(scope: MutableMapping[str, Any]) -> Proof:
    """Return the DPoP proof of a request; repeated calls return the same object."""
    found: Proof | None = scope.get(_PROOF)
    if found is None:
        fields = headers_of(scope)
        sent = None if b"dpop" in fields.repeated else fields.get(b"dpop")  # guard: one-proof
        text = None if sent is None else sent.decode("latin-1")
        found = scope[_PROOF] = Proof(text, scope["method"])
    return found


def is_bound(authorization: str) -> bool:
    """True if the Authorization header uses the scheme DPoP, which is for bound tokens."""
    return authorization[:5].lower() == "dpop "


def target_of(scope: MutableMapping[str, Any]) -> Target:
    """Return the URL of a request; the edge has checked its host."""
    host: bytes = headers_of(scope).get(b"host", b"")
    return Target(f"{scope['scheme']}://{host.decode('latin-1').lower()}", scope["path"])
