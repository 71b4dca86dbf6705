"""Further endpoints of API keys: rotation with an overlap, its end, revocation, and the search for leaked keys."""

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from gateway.admin.admission import WorkKind
from gateway.admin.crud import endpoint
from gateway.admin.endpoint import OPERATOR_ONLY, AdminDependencies, AdminRequest, AdminResponse
from gateway.admin.kinds import KindEndpoints
from gateway.admin.requests.models import KeyCheck, KeyRotate
from gateway.catalog.identity.leaked_keys import FoundKey, check_text
from gateway.catalog.kinds.keys import KEYS
from gateway.domain.tenancy.keys import KeyMatch
from gateway.kinds.identity import KEY
from gateway.web.kinds.models import models_of
from gateway.web.models import NoQuery, ResponseModel

_ROUTES = KindEndpoints(collection=KEYS)
_MODELS = models_of(KEY)
if TYPE_CHECKING:  # a derived class is no type for a checker
    KeyShown = ResponseModel
else:
    KeyShown = _MODELS.shown


class FoundKeyShown(ResponseModel):
    """A key that was found in the searched text."""

    id: Annotated[str, Field(description="The id; it never changes.")]
    match: Annotated[
        KeyMatch,
        Field(
            description="`current` or `old` for a valid secret of the key, `other` for another text with its id, and "
            "`unknown` if there is no such key."
        ),
    ]
    tenant: Annotated[str | None, Field(description="The slug of the key's tenant; null for an unknown key.")]
    key: Annotated[KeyShown | None, Field(description="The key; null for an unknown one.")]


class KeysChecked(ResponseModel):
    """The keys that were found in the searched text."""

    found: Annotated[Sequence[FoundKeyShown], Field(description="At most 20 keys, in order.")]


async def rotate_key(admin: AdminDependencies, call: AdminRequest[KeyRotate, NoQuery]) -> AdminResponse:
    """Rotate a key: it gets a new secret and keeps its id and subject; the old secret expires now or later. Only this
    response contains the new text. A key has at most two secrets; a rotation that would create a third one is refused.
    """
    overlap = timedelta(seconds=call.body.overlap_s)
    rotated, text = await KEYS.rotate_with_overlap(
        call.tenant, admin.catalog, call.path["id"], overlap, by=call.by, expected=call.expected
    )
    return AdminResponse(content=_MODELS.show_minted(rotated, rotated.status, text), tag=KEYS.tag(rotated))


async def check_keys(admin: AdminDependencies, call: AdminRequest[KeyCheck, NoQuery]) -> AdminResponse:
    """Find keys of this installation in a text and return their tenants; optionally revoke the keys."""
    found = await check_text(admin.catalog, call.body.text, is_revoking=call.body.revoke, by=call.by)
    return AdminResponse(content=KeysChecked(found=[_show(one) for one in found]))


def _show(found: FoundKey) -> FoundKeyShown:
    key = None if found.key is None else _MODELS.show(found.key, found.key.status)
    return FoundKeyShown(id=found.id, match=found.match, tenant=found.slug, key=key)


ENDPOINTS = (
    endpoint(
        "POST",
        f"{_ROUTES.noun.item}/rotate",
        rotate_key,
        KeyRotate,
        query=NoQuery,
        responses={200: _MODELS.minted},
        problems=frozenset({409}),
        has_tag=True,
    ),
    _ROUTES.noun.act_route(
        "end-old-secret",
        "End the old secret of a key now, on all replicas within five seconds.",
        KEYS.end_old_secret,
        called="end_old_secret",
    ),
    _ROUTES.noun.act_route(
        "revoke", "Revoke a key, on all replicas within five seconds; it stays in the list.", KEYS.revoke
    ),
    endpoint(
        "POST",
        "/keys/check",
        check_keys,
        KeyCheck,
        query=NoQuery,
        responses={200: KeysChecked},
        scopes=OPERATOR_ONLY,
        work=WorkKind.CHECK,
    ),
)
