"""Response models of the application of manifests."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from gateway.catalog.manifests.manifest import ManifestAction
from gateway.kinds.manifests import kind_in_manifests
from gateway.web.models import CopiedModel

_Name = Annotated[
    str | None,
    BeforeValidator(lambda key: key or None),
    Field(
        validation_alias="key",
        description="The name; for a kind without names, the member that is unique; null for a singleton.",
    ),
]
_Kind = Annotated[str, BeforeValidator(kind_in_manifests), Field(description="The kind.")]


class ValueChangeShown(CopiedModel):
    """One changed value."""

    pointer: Annotated[str, Field(description="JSON Pointer (RFC 6901) into the object.")]
    before: Annotated[Any, Field(description="The value before; null if it was absent.")]
    after: Annotated[Any, Field(description="The value afterwards; null if it is absent.")]
    is_secret: Annotated[bool, Field(description="True if the values differ in parts that no response shows.")]
    is_cut: Annotated[
        bool,
        Field(description="True if the values are too large to show, and null; an empty pointer is the whole object."),
    ]


class AppliedObjectShown(CopiedModel):
    """The effect of an application on one object."""

    kind: _Kind
    name: _Name
    id: Annotated[str | None, Field(description="The id; null for an object that a dry run would create.")]
    action: Annotated[ManifestAction, Field(description="`adopt`: only the owner changes.")]
    etag: Annotated[
        str | None, Field(validation_alias="tag", description="The version before; null if it did not exist.")
    ]
    drift: Annotated[
        bool,
        Field(validation_alias="has_drifted", description="True if it differed from what this set applied last."),
    ]
    changes: Annotated[Sequence[ValueChangeShown], Field(description="The changed values, without secrets.")]
    secret: Annotated[
        str | None, Field(description="The secret that the gateway generated for a new object; shown only once.")
    ]


class ReferredObjectShown(CopiedModel):
    """An object that the applied ones name, and its version."""

    kind: _Kind
    name: _Name
    etag: Annotated[str | None, Field(validation_alias="tag", description="The version; null if it does not exist.")]


class AppliedSetShown(CopiedModel):
    """The result of an application."""

    revision: Annotated[int | None, Field(description="The tenant's revision afterwards; null without a change.")]
    objects: Annotated[
        Sequence[AppliedObjectShown], Field(description="The objects in the order of the request, then removed ones.")
    ]
    references: Annotated[
        Sequence[ReferredObjectShown],
        Field(description="In a dry run, the objects that these name and the request does not have."),
    ]
