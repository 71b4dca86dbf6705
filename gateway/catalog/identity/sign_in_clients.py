"""The gateway's own client at an issuer: its form, and its endpoints, which the issuer's metadata names.

The metadata is read when the client is stored, so a change of it later sends no secret to another place (decision 46).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gateway.catalog.egress import refusal, require_tls
from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.issuers import Issuer, SignInClient
from gateway.errors import GatewayError, InvalidBody
from gateway.upstream.auth.key_sets import fetch_metadata

_OPENID = "openid"
_RESERVED = frozenset(
    {
        "client_id",
        "client_secret",
        "code_challenge",
        "code_challenge_method",
        "nonce",
        "redirect_uri",
        "registration",
        "request",
        "request_uri",
        "response_mode",
        "response_type",
        "scope",
        "state",
    }
)
"""Parameters of authorization requests that the gateway sets itself, and those that replace the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInDraft:
    """A requested client; without a secret, the stored one stays."""

    client_id: str
    scopes: tuple[str, ...] = (_OPENID,)
    parameters: tuple[tuple[str, str], ...] = ()
    secret: str | None = field(default=None, repr=False)


def draft_of(client: SignInClient | None) -> SignInDraft | None:
    """The draft of a stored client, which keeps its secret."""
    if client is None:
        return None
    return SignInDraft(client_id=client.client_id, scopes=client.scopes, parameters=client.parameters)


def check_draft(draft: SignInDraft, audiences: Sequence[str], before: SignInClient | None) -> None:
    """Refuse a client that cannot work, or one whose ID tokens would be access tokens.

    Raises:
        InvalidBody: a member of the draft is not possible.
    """
    if _OPENID not in draft.scopes:
        raise refusal("/sign_in/scopes", "must have the scope openid; without it the issuer sends no ID token")
    if reserved := sorted({name for name, _ in draft.parameters} & _RESERVED):  # guard: sign-in-parameters
        raise refusal("/sign_in/parameters", f"the gateway sets {', '.join(reserved)} itself")
    if draft.client_id in audiences:  # guard: sign-in-client-no-audience
        reason = "must not be one of the audiences: ID tokens for the client would be accepted as access tokens"
        raise refusal("/sign_in/client_id", reason)
    is_same = before is not None and before.client_id == draft.client_id
    if draft.secret is None and not is_same:  # guard: sign-in-secret-of-client
        raise refusal("/sign_in/client_secret", "is missing: a client needs the secret that the issuer gave it")


def is_changed(draft: SignInDraft, before: Issuer | None) -> bool:
    """True if the endpoints of the client have to be read."""
    return before is None or not before.enabled or draft != draft_of(before.sign_in)


def described(draft: SignInDraft, before: SignInClient | None) -> SignInClient:
    """The client of a draft without new endpoints: with those of before, if there are any."""
    known = before or SignInClient(client_id=draft.client_id)
    return SignInClient(
        client_id=draft.client_id,
        scopes=draft.scopes,
        parameters=draft.parameters,
        authorization_url=known.authorization_url,
        token_url=known.token_url,
        userinfo_url=known.userinfo_url,
        names_issuer=known.names_issuer,
    )


async def find_endpoints(
    tenant: TenantId, catalog: CatalogContext, draft: SignInDraft, issuer_url: str
) -> SignInClient:
    """The client of a draft, with the endpoints of the issuer's metadata.

    Raises:
        InvalidBody: the metadata cannot be read or lacks an endpoint, or an endpoint is not https and not permitted.
    """
    try:
        metadata = await fetch_metadata(catalog.upstream, tenant, issuer_url)
        authorization_url = await _endpoint(tenant, catalog, metadata, "authorization_endpoint")
        token_url = await _endpoint(tenant, catalog, metadata, "token_endpoint")
        userinfo_url = None
        if "userinfo_endpoint" in metadata:
            userinfo_url = await _endpoint(tenant, catalog, metadata, "userinfo_endpoint")
    except InvalidBody:
        raise
    except GatewayError as error:
        raise refusal("/sign_in", error.message) from None
    return SignInClient(
        client_id=draft.client_id,
        scopes=draft.scopes,
        parameters=draft.parameters,
        authorization_url=authorization_url,
        token_url=token_url,
        userinfo_url=userinfo_url,
        names_issuer=metadata.get("authorization_response_iss_parameter_supported") is True,
    )


async def _endpoint(tenant: TenantId, catalog: CatalogContext, metadata: Mapping[str, Any], member: str) -> str:
    url = metadata.get(member)
    if not isinstance(url, str):
        raise refusal("/sign_in", f"the metadata of the issuer has no `{member}`, so people cannot sign in with it")
    await require_tls(tenant, catalog, url, "/sign_in")  # guard: sign-in-endpoints-tls
    return url
