"""Secrets of the gateway's clients at issuers: stored encrypted, or read at each use in an external store.

A change that names neither a secret nor a reference keeps the stored one, for the same client and endpoint only.
"""

from dataclasses import replace
from typing import TypeVar

from gateway.catalog.egress import refusal
from gateway.catalog.kinds.engines.kept_secrets import refuse_moved_secret
from gateway.catalog.snapshots.credential_cache import read_reference
from gateway.catalog.transaction import Author, CatalogContext
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.issuers import IntrospectionClient, Issuer, SignInClient
from gateway.domain.tenancy.principals import Operator
from gateway.domain.tenancy.secret_references import SecretReference, fault_of
from gateway.errors import SecretUnreadable
from gateway.kinds.members import moved_receivers
from gateway.store.identity import introspection_secrets, issuers

NOT_STORED = ""
"""The text that is encrypted in place of an external secret; it binds the reference to its client and endpoint."""
C = TypeVar("C", SignInClient, IntrospectionClient)


def check_reference(catalog: CatalogContext, reference: SecretReference, pointer: str, *, by: Author) -> None:
    """Refuse a malformed reference, and one that the author may not create.

    Raises:
        InvalidBody: the fault names the member.
    """
    if (wrong := fault_of(reference)) is not None:
        raise refusal(f"{pointer}/{wrong[0]}", wrong[1])
    fault = catalog.secret_stores.fault_of(reference, is_operator=isinstance(by.caller, Operator))
    if fault is not None:
        raise refusal(pointer, fault)


def settle_reference(
    catalog: CatalogContext, client: C, secret: str | None, *, stored: C | None, pointer: str, by: Author
) -> C:
    """Return a requested client with its final reference; `stored` is the client of the issuer as it is stored.

    Raises:
        InvalidBody: secret and reference are both present, or both missing, or the author may not use the reference.
        SecretNotKept: both are missing, and the stored client is another one.
    """
    given, place = client.client_secret_reference, f"{pointer}/client_secret_reference"
    if given is None:
        if secret is not None:
            return client
        if stored is None:
            reason = "is missing: a client needs the secret that the issuer gave it, or a reference to it"
            raise refusal(f"{pointer}/client_secret", reason)
        remedy = "another client or URL needs its own `client_secret`, or a `client_secret_reference`"
        refuse_moved_secret(stored, client, pointer=pointer, remedy=remedy, names={"given_url": "url"})
        return replace(client, client_secret_reference=stored.client_secret_reference)
    if secret is not None:
        raise refusal(place, "the secret is either stored here or in an external store; give one of them")
    # a tenant may keep a reference of the operator
    if stored is None or is_moved(stored, client) or given != stored.client_secret_reference:
        check_reference(catalog, given, place, by=by)
    return client


def is_moved(stored: C, client: C) -> bool:
    """True if a client is another one than the stored one, so that it needs a secret of its own."""
    return any(moved_receivers(stored, client))


async def open_client_secret(tenant: TenantId, catalog: CatalogContext, issuer: Issuer) -> str:
    """The secret of the gateway's sign-in client at an issuer.

    Raises:
        SecretUnreadable: no secret is stored, or no configured key decrypts it.
        SecretUnavailable: the external store to which the client refers did not return the secret.
    """
    async with catalog.store.transaction(tenant) as db:
        found = await issuers.open_secret(tenant, db, catalog.sealer, issuer)
    return await _complete(tenant, catalog, issuer.sign_in, found)


async def open_introspection_secret(tenant: TenantId, catalog: CatalogContext, issuer: Issuer) -> str:
    """The secret of the gateway's client at an issuer's introspection endpoint.

    Raises:
        SecretUnreadable, SecretUnavailable: as for a sign-in client.
    """
    async with catalog.store.transaction(tenant) as db:
        found = await introspection_secrets.open_one(tenant, db, catalog.sealer, issuer)
    return await _complete(tenant, catalog, issuer.introspection, found)


async def _complete(
    tenant: TenantId, catalog: CatalogContext, client: SignInClient | IntrospectionClient | None, found: str | None
) -> str:
    if found is None or client is None:
        raise SecretUnreadable("The client of the issuer has no secret; store it again.")
    if client.client_secret_reference is None:
        return found
    return await read_reference(catalog.store, catalog.secret_stores, tenant, client.client_secret_reference)
