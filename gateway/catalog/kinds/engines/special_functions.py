"""Types of the functions that are special of a kind; a collection calls them."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from gateway.catalog.kinds.engines.limits import MAX_USERS_SHOWN
from gateway.catalog.transaction import Author, CatalogContext, OpenChanges
from gateway.domain.identifiers import TenantId, is_minted
from gateway.domain.members.formats import WORDS
from gateway.errors import Conflict, Fault, InvalidBody, NotFound
from gateway.kinds.kind import Configured, Kind, T
from gateway.store.engine import Db

Revise = Callable[[T], T]
Compose = Callable[[T | None], T]
"""Returns the wanted object, given the current one, if any."""
Prepare = Callable[[TenantId, CatalogContext, T, Author], Awaitable[T | None]]
"""Checks a wanted object before the transaction; it may wait for the network or a thread.

Returns the object to store, with members that were derived from those that admins set; None: the wanted object.
"""
Complete = Callable[[OpenChanges, T | None, T], Awaitable[T]]
"""Returns a wanted object in its stored form, with the members that follow from others, given the current one."""
Check = Callable[[OpenChanges, T | None, T], Awaitable[None]]
"""Checks a wanted object in the transaction, given the current one, if any."""
Written = Callable[[OpenChanges, T | None, T | None], Awaitable[Mapping[str, object] | None]]
"""Writes what belongs to a change, given the object before and after it, such as a job; returns members of the audit
entry's detail, if any.
"""
Removing = Callable[[OpenChanges, T], Awaitable[None]]
"""Runs before an object is removed, for what needs its rows."""
InUse = Callable[[TenantId, Db, T], Awaitable[Sequence[tuple[str, str]]]]
"""Returns the objects that name an object, which cannot be removed then: kind and name of each."""
Describe = Callable[[OpenChanges, T | None, T | None], Awaitable[Mapping[str, object]]]
"""Returns members of the audit entry's detail, given the object before and after a change."""
Compute = Callable[[TenantId, CatalogContext, Sequence[T]], Awaitable[Sequence[object]]]
"""Returns the computed status of each object."""
RefuseForeign = Callable[[TenantId, CatalogContext, Db, str], Awaitable[None]]
"""Refuses the change of an object that exists but is not stored, such as one of code; without one it does nothing."""
Tag = Callable[[T], str]
"""Returns the version of an object as an opaque tag."""


def tag_of_kind(one: Configured) -> str:
    """The version of an object as an opaque tag; it contains the id, so a recreated object differs."""
    return f"{one.id}.{one.version}"


def refuse_in_use(words: str, name: str, users: Sequence[tuple[str, str]]) -> None:
    """Refuse to remove an object that other objects use.

    Raises:
        Conflict: the object is in use; the faults name the first 20 users.
    """
    if not users:
        return
    named_users = [f"{kind.replace('_', ' ')} {user}" for kind, user in users[:MAX_USERS_SHOWN]]
    suffix = f" and {len(users) - 1} more" if len(users) > 1 else ""
    faults = [Fault(pointer="", reason=f"used by {user}") for user in named_users]
    raise Conflict(f"the {words} {name} is used by {named_users[0]}{suffix}", faults=faults)


def check_new_name(kind: Kind[T], name: str) -> None:
    """Refuse a name under which no object can be created, such as the id of a removed object.

    Raises:
        NotFound: it is such a name.
    """
    words = kind.words
    if kind.keyed == "id":
        raise NotFound(f"no such {words}")
    if is_minted(name):
        raise NotFound(f"no such {words}; to create one, use a {kind.keyed}, not an id")
    if kind.is_named and not re.fullmatch(kind.form, name):
        raise NotFound(f"no such {words}; to create one, its name {WORDS[kind.form]}")


def refuse_id(kind: Kind[Any], given: str, key: str) -> None:
    """Refuse an id in a manifest: it finds its object too, and would be a second name of it.

    Raises:
        InvalidBody: the given text is not the key of the object that it found.
    """
    if given != key:  # guard: manifest-names-no-ids
        reason = "is an id; a manifest has the name of an object"
        raise InvalidBody(f"{given} {reason}", faults=[Fault(pointer=f"/{kind.keyed}", reason=reason)])
