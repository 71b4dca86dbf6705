"""PUT by name: replaces the object with that name, or creates it (RFC 9110, section 9.3.4).

A creation has the same checks, limits and audit entry as POST. If two requests create the same name at the same time,
the second replaces the object of the first, unless `If-None-Match: *` forbids that.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from gateway.admin.endpoint import AdminRequest, AdminResponse
from gateway.domain.members.formats import WORDS
from gateway.errors import NameTaken, NotFound, PreconditionFailed
from gateway.web.models import BodyModel, QueryModel

B = TypeVar("B", bound=BodyModel)
Q = TypeVar("Q", bound=QueryModel)

_ID = re.compile(r"[a-z]{3,4}_[0-9a-z]{20}")
"""The form of ids. No object is created under such a name, so a PUT to the id of a removed object creates nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Upsert:
    """The operations of a PUT on one object; `read` and `replace` raise `NotFound` if it does not exist."""

    read: Callable[[], Awaitable[object]]
    replace: Callable[[], Awaitable[AdminResponse]]
    create: Callable[[], Awaitable[AdminResponse]]


async def put(call: AdminRequest[B, Q], upsert: Upsert) -> AdminResponse:
    """Replace the object (200), or create it (201).

    Raises:
        PreconditionFailed: `If-None-Match: *` was sent and the object exists, or `If-Match` names another version.
        NotFound: the object does not exist, and `If-Match` was sent or a new object cannot have this name.
        GatewayError: `replace` or `create` refused the request.
    """
    if call.creates_only:
        return await _create_only(upsert)
    try:
        return await upsert.replace()
    except NotFound:
        if call.expected is not None:
            raise
    try:
        return await upsert.create()
    except NameTaken as taken:
        try:
            return await upsert.replace()  # another request created it in between
        except NotFound:
            raise taken from None


def check_new_name(noun: str, name: str, pattern: str) -> None:
    """Check that an object may be created under the name in the path.

    Raises:
        NotFound: the name is an id, or does not have the form of a name.
    """
    if is_id(name):
        raise NotFound(f"no such {noun}; to create one, use a name, not an id")
    if not re.fullmatch(pattern, name):
        raise NotFound(f"no such {noun}; to create one, its name {WORDS[pattern]}")


def is_id(name: str) -> bool:
    """True if the text has the form of an id."""
    return _ID.fullmatch(name) is not None


async def _create_only(upsert: Upsert) -> AdminResponse:
    await _refuse_existing(upsert)
    try:
        return await upsert.create()
    except NameTaken:
        await _refuse_existing(upsert)  # another request created it in between
        raise


async def _refuse_existing(upsert: Upsert) -> None:
    try:
        await upsert.read()
    except NotFound:
        return
    raise PreconditionFailed("the object already exists; remove `If-None-Match: *` to replace it")
