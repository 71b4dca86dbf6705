"""Request models of the application of manifests."""

from typing import Annotated, Any, ClassVar

from pydantic import Field

from gateway.catalog.manifests.limits import (
    DEFAULT_MAX_DELETIONS,
    MAX_BODY_BYTES,
    MAX_EXPECTED,
    MAX_OBJECTS,
)
from gateway.domain.members.formats import NAME, PRINTABLE
from gateway.domain.members.limits import MAX_URL_LENGTH
from gateway.kinds.manifests import MANIFEST_KINDS, PROTECTED_KINDS
from gateway.web.models import GIVEN, Absent, BodyModel

_KindName = Annotated[str, Field(max_length=64, description="The kind.", json_schema_extra={"enum": [*MANIFEST_KINDS]})]
_KeyText = Annotated[str, Field(max_length=MAX_URL_LENGTH, pattern=PRINTABLE)]
_KEY = "The name; for a kind without names, the member that is unique"
_Origin = Annotated[str | Absent, GIVEN, Field(min_length=1, max_length=200, pattern=PRINTABLE)]


class ObjectSent(BodyModel):
    """A wanted object."""

    kind: _KindName
    name: Annotated[str | None, Field(max_length=MAX_URL_LENGTH, description=f"{_KEY}; null for a singleton.")] = None
    members: Annotated[
        dict[str, Any],
        Field(description="The members that a PUT takes, without the name; absent ones have their default."),
    ] = Field(default_factory=dict[str, Any])


class MoveSent(BodyModel):
    """A new name for an object, which keeps its id."""

    kind: _KindName
    former: Annotated[_KeyText, Field(alias="from", description=f"{_KEY}.")]
    to: Annotated[_KeyText, Field(description=f"{_KEY}.")]


class ExpectedSent(BodyModel):
    """The version that an object must have."""

    kind: _KindName
    name: Annotated[_KeyText | None, Field(description=f"{_KEY}; null for a singleton.")] = None
    etag: Annotated[str | None, Field(max_length=200, description="The entity tag; null if it must not exist.")]


class ManifestSetSent(BodyModel):
    """Wanted objects of one tenant, and the terms of their application."""

    whole_bytes: ClassVar[int] = MAX_BODY_BYTES

    objects: Annotated[list[ObjectSent], Field(max_length=MAX_OBJECTS, description="The objects, in any order.")]
    set: Annotated[
        str | Absent,
        GIVEN,
        Field(
            pattern=NAME,
            description="The set that owns the objects from now on; without it, nothing is owned or pruned.",
        ),
    ] = None
    adopt: Annotated[bool, Field(description="True takes over existing objects that another set or no set owns.")] = (
        False
    )
    prune: Annotated[
        bool, Field(description="True removes the objects that the set owns and `objects` does not have.")
    ] = False
    prune_protected: Annotated[bool, Field(description=f"True also removes {PROTECTED_KINDS}.")] = False
    max_deletions: Annotated[
        int, Field(ge=0, le=MAX_OBJECTS, description="The number of objects that pruning may remove.")
    ] = DEFAULT_MAX_DELETIONS
    moved: Annotated[
        list[MoveSent], Field(max_length=MAX_OBJECTS, description="New names of objects, which keep their ids.")
    ] = Field(default_factory=list[MoveSent])
    expected: Annotated[
        list[ExpectedSent],
        Field(max_length=MAX_EXPECTED, description="Versions of a plan; another version refuses the request with 412."),
    ] = Field(default_factory=list[ExpectedSent])
    commit: Annotated[_Origin, Field(description="The commit of the manifests, for the audit trail.")] = None
    author: Annotated[_Origin, Field(description="The author of the commit, for the audit trail.")] = None
    dry_run: Annotated[bool, Field(description="True changes nothing and shows what would change.")] = False
