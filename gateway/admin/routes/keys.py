"""Endpoints of API keys."""

from dataclasses import replace
from functools import partial
from urllib.parse import quote

from gateway.admin.endpoint import AdminDependencies, AdminRequest, AdminResponse, Endpoint, Plain
from gateway.admin.listings import KEYS
from gateway.admin.pagination import read_list
from gateway.admin.requests.lists import KeyListQuery
from gateway.admin.requests.models import KeyCreate, KeyUpdate, NoBody, NoQuery
from gateway.admin.responses.models import KeyMinted, KeyPage, KeyShown
from gateway.catalog import keys
from gateway.catalog.etags import tag_of
from gateway.catalog.keys import KeyDraft
from gateway.domain.identifiers import KeyId
from gateway.domain.tenancy.keys import Key, MintedKey


async def list_keys(admin: AdminDependencies, call: AdminRequest[NoBody, KeyListQuery]) -> AdminResponse:
    """List the tenant's keys, by default by id."""
    read = partial(keys.page_keys, call.tenant, admin.catalog)
    shown, cursor = await read_list(admin.cursors, call.tenant, KEYS, call.query, read=read)
    return AdminResponse(content=KeyPage(items=[KeyShown.of(key) for key in shown], next_cursor=cursor))


async def create_key(admin: AdminDependencies, call: AdminRequest[KeyCreate, NoQuery]) -> AdminResponse:
    """Create a key; the response contains its text."""
    body = call.body
    draft = KeyDraft(
        name=body.name,
        scopes=frozenset(body.scopes),
        profile=body.profile,
        subject=body.subject,
        expires_at=body.expires_at,
    )
    key, minted = await keys.create_key(call.tenant, admin.catalog, draft, by=call.by)
    return replace(_minted(key, minted), status=201, location=f"/tenants/{quote(call.path['t'])}/keys/{key.id}")


async def get_key(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Show a key."""
    return _shown(await keys.get_key(call.tenant, admin.catalog, _key(call.path["id"])))


async def update_key(admin: AdminDependencies, call: AdminRequest[KeyUpdate, NoQuery]) -> AdminResponse:
    """Change the name or expiry of a key."""
    body = call.body

    def revise(key: Key) -> Key:
        return replace(
            key,
            name=key.name if body.name is None else body.name,
            expires_at=body.expires_at if "expires_at" in body.model_fields_set else key.expires_at,
        )

    key = _key(call.path["id"])
    return _shown(await keys.update_key(call.tenant, admin.catalog, key, revise, by=call.by, expected=call.expected))


async def rotate_key(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Rotate a key: give it a new secret. The response contains its text."""
    key = _key(call.path["id"])
    return _minted(*await keys.rotate_key(call.tenant, admin.catalog, key, by=call.by, expected=call.expected))


async def revoke_key(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Revoke a key; it remains in the list."""
    key = _key(call.path["id"])
    return _shown(await keys.revoke_key(call.tenant, admin.catalog, key, by=call.by, expected=call.expected))


async def delete_key(admin: AdminDependencies, call: Plain) -> AdminResponse:
    """Revoke and delete a key."""
    key = _key(call.path["id"])
    await keys.delete_key(call.tenant, admin.catalog, key, by=call.by, expected=call.expected)
    return AdminResponse(status=204)


def _shown(key: Key) -> AdminResponse:
    return AdminResponse(content=KeyShown.of(key), tag=tag_of(key))


def _minted(key: Key, minted: MintedKey) -> AdminResponse:
    return AdminResponse(content=KeyMinted.with_text(key, minted), tag=tag_of(key))


def _key(text: str) -> KeyId:
    return KeyId(text)


_LIST = "/tenants/{t}/keys"
_ONE = "/tenants/{t}/keys/{id}"

ENDPOINTS = (
    Endpoint(
        method="GET",
        path=_LIST,
        summary="List the tenant's keys, without their secrets.",
        handle=list_keys,
        body=NoBody,
        query=KeyListQuery,
        answers={200: KeyPage},
    ),
    Endpoint(
        method="POST",
        path=_LIST,
        summary="Create a key; its text is in this answer only.",
        handle=create_key,
        body=KeyCreate,
        query=NoQuery,
        answers={201: KeyMinted},
        problems=frozenset({422}),
        has_tag=True,
    ),
    Endpoint(
        method="GET",
        path=_ONE,
        summary="Show a key, without its secret.",
        handle=get_key,
        body=NoBody,
        query=NoQuery,
        answers={200: KeyShown},
        has_tag=True,
    ),
    Endpoint(
        method="PATCH",
        path=_ONE,
        summary="Change a key's name or end.",
        handle=update_key,
        body=KeyUpdate,
        query=NoQuery,
        answers={200: KeyShown},
        has_tag=True,
    ),
    Endpoint(
        method="DELETE",
        path=_ONE,
        summary="End a key and forget it.",
        handle=delete_key,
        body=NoBody,
        query=NoQuery,
        answers={204: None},
        has_tag=True,
    ),
    Endpoint(
        method="POST",
        path=f"{_ONE}/rotate",
        summary="Give a key a new secret; the old one ends, id and subject stay. The text is in this answer only.",
        handle=rotate_key,
        body=NoBody,
        query=NoQuery,
        answers={200: KeyMinted},
        problems=frozenset({409}),
        has_tag=True,
    ),
    Endpoint(
        method="POST",
        path=f"{_ONE}/revoke",
        summary="End a key everywhere within five seconds; it stays in the list.",
        handle=revoke_key,
        body=NoBody,
        query=NoQuery,
        answers={200: KeyShown},
        has_tag=True,
    ),
)
