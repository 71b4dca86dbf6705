"""The gateway's own client at an issuer: its declaration, and its endpoints from the issuer's metadata.

The metadata is read when the client is stored. A later change of the metadata therefore sends no secret to another host
(decision 46).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from gateway.catalog.egress import refusal, require_tls
from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.issuers import Issuer, SignInClient
from gateway.errors import GatewayError, InvalidBody
from gateway.upstream.auth.key_sets import fetch_metadata

_OPENID = "openid"
RESERVED = frozenset(
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
_MEMBERS_FROM_METADATA = ("authorization_url", "token_url", "userinfo_url", "names_issuer")
"""The members of a client that the metadata of its issuer determines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInDraft:
    """A requested client, whose endpoints are ignored; without secret and reference, the stored secret is kept."""

    client: SignInClient
    secret: str | None = field(default=None, repr=False)


def draft_of(client: SignInClient | None) -> SignInDraft | None:
    """The draft of a stored client, which keeps its secret."""
    return None if client is None else SignInDraft(client=client)


def check_draft(draft: SignInDraft, audiences: Sequence[str]) -> None:
    """Refuse a client that cannot sign people in, or whose ID tokens would be accepted as access tokens.

    Raises:
        InvalidBody: a member of the draft is not allowed.
    """
    client = draft.client
    if _OPENID not in client.scopes:
        raise refusal("/sign_in/scopes", "must have the scope openid; without it the issuer sends no ID token")
    if reserved := sorted({name for name, _ in client.parameters} & RESERVED):  # guard: sign-in-parameters
        raise refusal("/sign_in/parameters", f"the gateway sets {', '.join(reserved)} itself")
    if client.client_id in audiences:  # guard: sign-in-client-no-audience
        reason = "must not be one of the audiences: ID tokens for the client would be accepted as access tokens"
        raise refusal("/sign_in/client_id", reason)
    if client.grant_idle_s > client.grant_max_s:
        raise refusal("/sign_in/grant_idle_s", "must not be more than grant_max_s, after which each grant ends")


def is_changed(draft: SignInDraft, before: Issuer | None) -> bool:
    """True if the endpoints of the client must be read from the metadata."""
    if before is None or before.sign_in is None or not before.enabled or draft.secret is not None:
        return True
    return described(draft, before.sign_in) != before.sign_in


def described(draft: SignInDraft, before: SignInClient | None) -> SignInClient:
    """The client of a draft without new endpoints; the endpoints of the stored client are kept."""
    endpoints = before or SignInClient(client_id=draft.client.client_id)
    return replace(draft.client, **{name: getattr(endpoints, name) for name in _MEMBERS_FROM_METADATA})


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
    return replace(
        draft.client,
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
