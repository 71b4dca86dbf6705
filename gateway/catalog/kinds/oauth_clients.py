"""Clients of a tenant's authorization server that administrators register; one with a secret is confidential.

A client is removed with its consents, and its grants are revoked.
"""

import secrets
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from gateway.catalog.identity.consents import events_of_ended
from gateway.catalog.kinds.engines.minting_collection import MintingCollection
from gateway.catalog.transaction import OpenChanges
from gateway.domain.tenancy.grant_secrets import digest_of
from gateway.domain.tenancy.grants import GrantFilter, OAuthClient
from gateway.kinds.identity import CLIENT
from gateway.store.identity import consents, grants
from gateway.store.kinds.oauth_clients import CLIENTS as ROWS


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientCollection(MintingCollection[OAuthClient]):
    """The clients, each with a digest of its secret."""

    async def insert(self, opened: OpenChanges, new: OAuthClient) -> None:
        """Store a new client, with a generated secret if it is confidential."""
        secret = secrets.token_urlsafe(32) if new.confidential else None
        if secret is not None:
            opened.generated[new.id] = secret
        stored = replace(new, secret=None if secret is None else digest_of(secret))
        await self.rows.insert(opened.tenant, opened.db, stored)

    async def renew(self, opened: OpenChanges, current: OAuthClient) -> tuple[OAuthClient, str]:
        """Store another secret; the previous one is refused at once."""
        secret = secrets.token_urlsafe(32)
        await self.rows.save(opened.tenant, opened.db, replace(current, secret=digest_of(secret)))
        return await self.find(opened.tenant, opened.db, current.id), secret


async def _end_grants(opened: OpenChanges, before: OAuthClient | None, after: OAuthClient | None) -> None:
    if before is None or after is not None:
        return
    tenant, now, reason = opened.tenant, datetime.now(UTC), opened.by.caller.name
    ended = await grants.revoke(tenant, opened.db, GrantFilter(client=before.id), at=now, reason=reason)
    await consents.remove_client(tenant, opened.db, before.id)
    opened.detail("grants", len(ended))
    opened.announce(*events_of_ended(tenant, ended))


CLIENTS = ClientCollection(kind=CLIENT, rows=ROWS, written=_end_grants, is_locked=True)
