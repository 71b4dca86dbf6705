"""Reads of stored credentials by other parts of the catalog: terms of accounts, obstacles to a use, and a test."""

from gateway.catalog.snapshots.credential_cache import read_external_secret
from gateway.catalog.transaction import CatalogContext
from gateway.domain.credentials import AccountTerms, StoredCredential, terms_digest
from gateway.domain.http.requests import NamedCredential
from gateway.domain.identifiers import TenantId
from gateway.domain.tenancy.secret_references import SecretReference
from gateway.errors import NotFound
from gateway.store.engine import Db
from gateway.store.kinds.credentials import CREDENTIALS, open_named


async def test_credential(tenant: TenantId, catalog: CatalogContext, name: str) -> SecretReference | None:
    """Read the secret of a credential as a call would, and return its reference; None if it is stored here.

    Raises:
        NotFound: the tenant has no such credential.
        SecretUnreadable: no configured key decrypts the secret.
        SecretUnavailable: the external store did not return the secret; the message contains the reason.
    """
    async with catalog.store.transaction(tenant) as db:
        found = await find_credential(tenant, db, name)
        opened = await open_named(tenant, db, catalog.sealer, found.name)
    await read_external_secret(catalog.store, catalog.secret_stores, tenant, opened)
    return found.reference


async def find_credential(tenant: TenantId, db: Db, name: str) -> StoredCredential:
    """The credential of this name or id, read in the caller's transaction.

    Raises:
        NotFound: the tenant has no such credential.
    """
    found = await CREDENTIALS.get(tenant, db, name)
    if found is None:
        raise NotFound("no such credential")
    return found


def terms_of(credential: StoredCredential | NamedCredential) -> str | None:
    """The digest of the terms under which users connect accounts at a credential; None if it has no such terms."""
    terms, place = credential.delegation, str(credential.place)
    if not isinstance(terms, AccountTerms):
        return None
    return terms_digest(terms, place, credential.field or "", credential.origins)


async def find_obstacle(
    tenant: TenantId, db: Db, name: str, origin: str | None, *, of_caller: bool = False
) -> str | None:
    """Return the reason why requests to an origin cannot use this credential; None if they can.

    With `of_caller`, the requests belong to calls, and the credential must identify the caller. Otherwise the gateway
    itself sends them, and a shared credential is required.
    """
    found = await CREDENTIALS.get(tenant, db, name)
    if found is None:
        return "the tenant has no such credential"
    if found.name != name or origin not in found.origins:
        return "the credential was not stored for this origin"
    if of_caller:
        return None if found.delegation is not None else "a shared credential names no caller; use `credential`"
    if found.delegation is not None:  # guard: delegation-without-caller-declared
        return f"the credential names the caller ({found.kind}), and these requests have none; store a shared one"
    return None
