"""Signing keys of an issuer that a change fetches: a wrong URL is an error of the change, and the keys are kept."""

from typing import NamedTuple, Protocol

from gateway.catalog.egress import refusal, require_tls
from gateway.catalog.identity.introspection_clients import IntrospectionDraft
from gateway.catalog.transaction import CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.issuers import Issuer
from gateway.errors import FetchFailed, GatewayError, InvalidBody
from gateway.upstream.auth.key_sets import Jwk, discover, fetch_key_set


class KeysWanted(Protocol):
    """The members of a requested issuer that name its keys."""

    @property
    def url(self) -> str:
        """The issuer identifier."""
        ...

    @property
    def jwks_url(self) -> str | None:
        """The URL of the keys, if the request has it."""
        ...

    @property
    def introspection(self) -> IntrospectionDraft | None:
        """The gateway's introspection client."""
        ...


class FoundKeys(NamedTuple):
    """The URL of an issuer's signing keys, and the keys if they were fetched."""

    url: str
    keys: tuple[Jwk, ...] | None = None


async def find_keys(tenant: TenantId, catalog: CatalogContext, draft: KeysWanted) -> FoundKeys:
    """Return the URL of the issuer's keys, and the keys."""
    await _check_url(tenant, catalog, draft.url, "/url")
    keys_url, pointer = draft.jwks_url, "/jwks_url"
    try:
        if keys_url is None:
            pointer = "/url"
            keys_url = await _discover_keys(tenant, catalog, draft)
        if keys_url == "":
            return FoundKeys(keys_url)
        await _check_url(tenant, catalog, keys_url, pointer)
        return FoundKeys(keys_url, await fetch_key_set(catalog.upstream, tenant, keys_url))
    except InvalidBody:
        raise
    except GatewayError as error:
        raise refusal(pointer, error.message) from None


async def _discover_keys(tenant: TenantId, catalog: CatalogContext, draft: KeysWanted) -> str:
    """Return the URL of the keys in the metadata; empty for an issuer of opaque tokens that publishes none."""
    try:
        return await discover(catalog.upstream, tenant, draft.url)
    except FetchFailed:
        if draft.introspection is None or draft.introspection.client.tokens != "opaque":
            raise
        return ""


def keep_keys(tenant: TenantId, catalog: CatalogContext, issuer: Issuer, found: FoundKeys) -> None:
    """Put the keys that a change has fetched in place on this replica; others fetch them for the next token."""
    if catalog.key_sets is not None and found.keys is not None and found.url == issuer.jwks_url:
        catalog.key_sets.put(tenant, found.url, found.keys, state=issuer.state)


async def _check_url(tenant: TenantId, catalog: CatalogContext, url: str, pointer: str) -> None:
    if "?" in url or "#" in url:
        raise refusal(pointer, "must be an absolute https URL without a query (RFC 8414 section 2)")
    await require_tls(tenant, catalog, url, pointer)
