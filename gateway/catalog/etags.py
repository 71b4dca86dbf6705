"""Entity tags: the version of an object that clients receive, and the versions that a change requires."""

import hashlib
from typing import Protocol

from gateway.domain.tools import Tool
from gateway.errors import PreconditionFailed

Expected = frozenset[str] | None
"""Acceptable tags: one of them must be the current one. None requires nothing; `*` accepts any version."""

ANY = "*"


class Versioned(Protocol):
    """An object or record that has an entity tag."""

    @property
    def id(self) -> str:
        """The id, which never changes."""
        ...

    @property
    def version(self) -> int:
        """The number of changes so far, from 1."""
        ...


def tag_of(thing: Versioned | Tool) -> str:
    """The version of an object as an opaque tag. It contains the object's id, if any, so a recreated object differs."""
    match thing:
        case Tool():
            content = b"\0".join((thing.definition, thing.plan, thing.safety.encode(), thing.source_name.encode()))
            return f"{thing.operation}.{hashlib.blake2b(content, digest_size=8).hexdigest()}"
        case _:
            return f"{thing.id}.{thing.version}"


def check_version(thing: Versioned, expected: Expected) -> None:
    """Refuse a change unless the object's version is an expected one.

    Raises:
        PreconditionFailed: the current version matches no expected tag.
    """
    check_tag(tag_of(thing), expected)


def check_tag(tag: str, expected: Expected) -> None:
    """Refuse a change unless this tag is an expected one.

    Raises:
        PreconditionFailed: the tag is not among the expected ones.
    """
    if expected is None or ANY in expected or tag in expected:  # guard: change-of-a-known-version
        return
    raise PreconditionFailed("the object has changed; read it again")
