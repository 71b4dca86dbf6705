"""The gateway's client at an issuer's introspection endpoint (RFC 7662): draft, endpoint, and test.

The test introspects a random token. So a wrong secret or URL fails the change of the issuer, not later sign-ins.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from gateway.catalog.egress import refusal, require_tls
from gateway.catalog.identity.client_secrets import NOT_STORED, is_moved, open_introspection_secret, settle_reference
from gateway.catalog.snapshots.credential_cache import read_reference
from gateway.catalog.transaction import Author, CatalogContext
from gateway.domain.http.requests import Credential
from gateway.domain.identifiers import TenantId
from gateway.domain.refusals import SecretUnavailable
from gateway.domain.tenancy.issuers import IntrospectionClient, Issuer
from gateway.errors import GatewayError, InvalidBody
from gateway.store.engine import Db
from gateway.store.identity import introspection_secrets
from gateway.upstream.auth.key_sets import discover
from gateway.upstream.auth.token_endpoint import introspect_token, token_introspection

_PLACE = "/introspection"


@dataclass(frozen=True, slots=True, kw_only=True)
class IntrospectionDraft:
    """A requested client. Its `url` is ignored; without secret and reference, the stored secret is kept."""

    client: IntrospectionClient
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerPlace:
    """The issuer for which a client is stored: its identifier, its new state, and its stored form."""

    url: str
    enabled: bool
    before: Issuer | None = None


def draft_of(client: IntrospectionClient | None) -> IntrospectionDraft | None:
    """The draft of a stored client, which keeps its secret."""
    return None if client is None else IntrospectionDraft(client=client)


async def find_introspection(
    tenant: TenantId, catalog: CatalogContext, draft: IntrospectionDraft, issuer: IssuerPlace, *, by: Author
) -> IntrospectionDraft:
    """The draft with its endpoint, and with the secret if it must be stored again; a new client is tested.

    Raises:
        InvalidBody: the metadata has no endpoint, or the endpoint is not https and not permitted, or does not respond
            as one, or a secret is missing or cannot be read.
    """
    before, client = issuer.before, draft.client
    stored = None if before is None else before.introspection
    kept = None if stored is None or is_moved(stored, client) else stored
    client = settle_reference(catalog, client, draft.secret, stored=stored, pointer=_PLACE, by=by)
    draft = replace(draft, client=client)
    if draft.secret is None and before is not None and stored is not None and _has_secret_of(client, kept):
        is_tested = before.enabled and client.client_auth == stored.client_auth
        if is_tested or not issuer.enabled:
            return replace(draft, client=replace(client, url=stored.url))
        if client.client_secret_reference is None:
            draft = replace(draft, secret=await open_introspection_secret(tenant, catalog, before))
    if not issuer.enabled:
        return draft
    try:
        url = client.given_url or await discover(catalog.upstream, tenant, issuer.url, "introspection_endpoint")
        await require_tls(tenant, catalog, url, f"{_PLACE}/url")  # guard: introspection-tls
        found = replace(draft, client=replace(client, url=url))
        await _test_client(tenant, catalog, found.client, await _read_secret(tenant, catalog, found))
    except InvalidBody:
        raise
    except GatewayError as error:
        raise refusal(_PLACE, error.message) from None
    return found


async def save_introspection_secret(
    tenant: TenantId, catalog: CatalogContext, db: Db, draft: IntrospectionDraft | None, *, issuer: Issuer
) -> None:
    """Store the secret of an issuer's new client, bound to its endpoint; without a client, delete it."""
    if draft is None:
        await introspection_secrets.remove(tenant, db, issuer.id)
    elif draft.client.client_secret_reference is not None:
        await introspection_secrets.save(tenant, db, catalog.sealer, issuer, secret=NOT_STORED)
    elif draft.secret is not None:
        await introspection_secrets.save(tenant, db, catalog.sealer, issuer, secret=draft.secret)


def check_alone(others: Sequence[Issuer]) -> None:
    """Refuse a second enabled issuer for opaque tokens: they name no issuer, and each would see the other's tokens.

    Raises:
        InvalidBody: another enabled issuer has a client for opaque tokens.
    """
    for other in others:
        if other.enabled and other.introspects("opaque"):  # guard: introspection-one-issuer
            reason = (
                f"the issuer {other.name} is asked about opaque tokens already, and they do not name their issuer;"
                " use jwt, or disable the other one"
            )
            raise refusal(f"{_PLACE}/tokens", reason)


def _has_secret_of(client: IntrospectionClient, stored: IntrospectionClient | None) -> bool:
    return stored is not None and client.client_secret_reference == stored.client_secret_reference


async def _read_secret(tenant: TenantId, catalog: CatalogContext, draft: IntrospectionDraft) -> str:
    reference = draft.client.client_secret_reference
    if reference is None:
        return draft.secret or ""
    try:
        return await read_reference(catalog.store, catalog.secret_stores, tenant, reference)
    except SecretUnavailable as error:
        raise refusal(f"{_PLACE}/client_secret_reference", error.message) from None


async def _test_client(tenant: TenantId, catalog: CatalogContext, client: IntrospectionClient, secret: str) -> None:
    credential = Credential(username=client.client_id, value=secret)
    introspection = token_introspection("the issuer", client.url, credential, secrets.token_urlsafe(32))
    in_body = client.client_auth == "post"
    if await introspect_token(catalog.upstream, tenant, introspection, in_body=in_body) is not None:
        raise refusal(_PLACE, "the endpoint calls a random token active, so its responses mean nothing")
