"""Search of text for leaked API keys of this installation. It returns each key with its owner, and can revoke it."""

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from gateway.catalog.identity.limits import MAX_FOUND_KEYS
from gateway.catalog.kinds.keys import KEYS
from gateway.catalog.transaction import Author, CatalogContext
from gateway.domain.identifiers import KeyId
from gateway.domain.tenancy.keys import PEPPER_PURPOSE, Key, KeyMatch, KeyState, digest_key, find_key_texts, key_id_of
from gateway.store.identity import keys


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundKey:
    """A well-formed key in a text; without a stored key of its id, `slug` and `key` are None."""

    id: KeyId
    match: KeyMatch
    slug: str | None = None
    key: Key | None = None


async def check_text(catalog: CatalogContext, text: str, *, is_revoking: bool, by: Author) -> Sequence[FoundKey]:
    """Find keys in a text, and revoke those whose secret is valid if `is_revoking`.

    A key whose secret does not match is not revoked, because the text may contain an invented secret with a known id.
    """
    found: dict[KeyId, str] = {}
    for one in find_key_texts(text):
        if (key_id := key_id_of(one)) is not None and len(found) < MAX_FOUND_KEYS:
            found.setdefault(key_id, one)
    async with catalog.store.unscoped() as db:
        stored = await keys.find(db, list(found))
    checked = [_check(catalog, key_id, one, stored) for key_id, one in found.items()]
    if is_revoking:
        checked = [await _revoke(catalog, one, by) for one in checked]
    return checked


def _check(catalog: CatalogContext, key_id: KeyId, text: str, stored: Mapping[KeyId, tuple[Key, str]]) -> FoundKey:
    if key_id not in stored or stored[key_id][0].issuer is not None:
        return FoundKey(id=key_id, match=KeyMatch.UNKNOWN)
    key, slug = stored[key_id]
    digests = [digest_key(text, pepper) for pepper in catalog.sealer.derive_all(PEPPER_PURPOSE)]
    match = KeyMatch.OTHER
    for secret in key.secrets:
        if any(hmac.compare_digest(digest, secret.digest) for digest in digests):
            match = KeyMatch.CURRENT if secret is key.secret else KeyMatch.OLD
    return FoundKey(id=key_id, match=match, slug=slug, key=key)


async def _revoke(catalog: CatalogContext, found: FoundKey, by: Author) -> FoundKey:
    # guard: leaked-key-proved
    if found.key is None or found.match is KeyMatch.OTHER or found.key.state is not KeyState.ACTIVE:
        return found
    await KEYS.revoke(found.key.tenant, catalog, found.id, by=by)
    return replace(found, key=replace(found.key, revoked_at=datetime.now(UTC)))
