"""Endpoints of API keys."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

from gateway.admin.admission import WorkKind
from gateway.admin.crud import Noun, each, endpoint
from gateway.admin.endpoint import OPERATOR_ONLY, AdminDependencies, AdminRequest, AdminResponse, Plain
from gateway.admin.list_search import KEYS
from gateway.admin.requests.lists import KeyListQuery
from gateway.admin.requests.models import KeyCheck, KeyCreate, KeyRotate, KeyUpdate
from gateway.admin.responses.models import KeyMinted, KeyPage, KeysChecked, KeyShown
from gateway.catalog.etags import tag_of
from gateway.catalog.identity import keys
from gateway.catalog.identity.keys import KeyDraft
from gateway.catalog.identity.leaked_keys import check_text
from gateway.domain.identifiers import KeyId
from gateway.domain.tenancy.keys import Key, MintedKey
from gateway.web.models import NoQuery

_NOUN = Noun(singular="key", path="/tenants/{t}/keys", key="id", shown=KeyShown, show=each(KeyShown.of))


async def create_key(admin: AdminDependencies, call: AdminRequest[KeyCreate, NoQuery]) -> AdminResponse:
    """Create a key; only this response contains its text."""
    body = call.body
    draft = KeyDraft(
        name=body.name,
        scopes=frozenset(body.scopes),
        profile=body.profile,
        subject=body.subject,
        expires_at=body.expires_at,
    )
    key, minted = await keys.create_key(call.tenant, admin.catalog, draft, by=call.by)
    return _NOUN.to_created(call, key, _minted(key, minted))


async def update_key(admin: AdminDependencies, call: AdminRequest[KeyUpdate, NoQuery]) -> AdminResponse:
    """Change a key's name or expiry time."""

    def revise(key: Key) -> Key:
        return replace(key, **call.body.sent())

    update = partial(keys.update_key, call.tenant, admin.catalog, KeyId(call.path["id"]), revise)
    return await _NOUN.respond(admin, call, await update(by=call.by, expected=call.expected))


async def rotate_key(admin: AdminDependencies, call: AdminRequest[KeyRotate, NoQuery]) -> AdminResponse:
    """Rotate a key: it gets a new secret and keeps its id and subject; the old secret expires now or later. Only this
    response contains the new text. A key has at most two secrets; a rotation that would create a third one is refused.
    """
    rotate = partial(keys.rotate_key, call.tenant, admin.catalog, KeyId(call.path["id"]))
    overlap = timedelta(seconds=call.body.overlap_s)
    return _minted(*await rotate(overlap=overlap, by=call.by, expected=call.expected))


async def end_old_secret(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """End the old secret of a key now, on all replicas within five seconds."""
    end = partial(keys.end_old_secret, call.tenant, admin.catalog, KeyId(call.path["id"]))
    return await _NOUN.respond(admin, call, await end(by=call.by, expected=call.expected))


async def revoke_key(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Revoke a key, on all replicas within five seconds; it stays in the list."""
    revoke = partial(keys.revoke_key, call.tenant, admin.catalog, KeyId(call.path["id"]))
    return await _NOUN.respond(admin, call, await revoke(by=call.by, expected=call.expected))


async def check_keys(admin: AdminDependencies, call: AdminRequest[KeyCheck, NoQuery]) -> AdminResponse:
    """Find keys of this installation in a text and return their tenants; optionally revoke the keys."""
    found = await check_text(admin.catalog, call.body.text, is_revoking=call.body.revoke, by=call.by)
    return AdminResponse(content=KeysChecked.of(found))


def _minted(key: Key, minted: MintedKey) -> AdminResponse:
    return AdminResponse(content=KeyMinted.with_text(key, minted), tag=tag_of(key))


ENDPOINTS = (
    _NOUN.list_route("List the tenant's keys, without their secrets.", keys.page_keys, KEYS, KeyListQuery, KeyPage),
    _NOUN.create_route(create_key, KeyCreate, responses={201: KeyMinted}, problems={422}),
    _NOUN.show_route("Show a key, without its secret.", keys.get_key),
    _NOUN.update_route(update_key, KeyUpdate),
    _NOUN.delete_route("Revoke and delete a key.", keys.delete_key),
    endpoint(
        "POST",
        f"{_NOUN.item}/rotate",
        rotate_key,
        KeyRotate,
        NoQuery,
        {200: KeyMinted},
        problems=frozenset({409}),
        has_tag=True,
    ),
    _NOUN.action_route("end-old-secret", end_old_secret),
    _NOUN.action_route("revoke", revoke_key),
    endpoint(
        "POST",
        "/keys/check",
        check_keys,
        KeyCheck,
        NoQuery,
        {200: KeysChecked},
        scopes=OPERATOR_ONLY,
        work=WorkKind.CHECK,
    ),
)
