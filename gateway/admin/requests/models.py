"""Models of request bodies and queries; unknown fields and parameters are refused.

The OpenAPI document is generated from them.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic.json_schema import SkipJsonSchema

from gateway.admin.fields import (
    UNIQUE_NAME,
)
from gateway.domain.members.formats import PRINTABLE
from gateway.domain.tenancy.keys import Scope
from gateway.domain.tenancy.limits import MAX_OVERLAP_S
from gateway.web.models import GIVEN, Absent, BodyModel

_RFC3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)")


def _read_time(value: object) -> object:
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str) or not _RFC3339.fullmatch(value):
        raise ValueError("must be a date and time with its offset (RFC 3339), such as 2030-01-31T12:00:00Z")
    try:
        return datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("must be a date and time that exists") from None


def _check_distinct(value: Sequence[Scope]) -> Sequence[Scope]:
    if len(set(value)) != len(value):
        raise ValueError("must not name a scope twice")
    return value


def _check_secret(value: str) -> str:
    if any(character in "\r\n\0" for character in value):
        raise ValueError("must not hold line breaks or NUL")
    return value


CutOut = SkipJsonSchema[bytes]
"""JSON bytes of a document or archive that `gateway.admin.large_bodies` extracted; clients cannot send this type."""

Label = Annotated[str, Field(min_length=1, max_length=200, pattern=PRINTABLE)]
Time = Annotated[datetime, BeforeValidator(_read_time)]
Scopes = Annotated[
    list[Annotated[Scope, Field(strict=False)]],
    Field(min_length=1, max_length=len(Scope), json_schema_extra={"uniqueItems": True}),
    AfterValidator(_check_distinct),
]
SecretText = Annotated[
    str, Field(min_length=1, max_length=16_384, json_schema_extra={"writeOnly": True}), AfterValidator(_check_secret)
]
UserName = Annotated[str, Field(max_length=1024), AfterValidator(_check_secret)]
Pattern = Annotated[str, Field(min_length=1, max_length=300)]

Rate = Annotated[float, Field(gt=0, le=1_000_000, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]


class KeyCreate(BodyModel):
    """A new API key."""

    name: Annotated[Label, UNIQUE_NAME]
    scopes: Annotated[
        Scopes,
        Field(
            description="`mcp` and `approve` exclude each other. A key can grant only its own scopes; the operator all."
        ),
    ]
    profile: Annotated[str | None, Field(max_length=64, description="The profile the key is bound to.")] = None
    subject: Annotated[Label | None, Field(description="The principal of the key; default: the key's id.")] = None
    expires_at: Annotated[Time | None, Field(description="The expiry time, in the future; null means never.")] = None


class KeyUpdate(BodyModel):
    """Changes of a key; absent fields keep their value."""

    name: Annotated[Label | Absent, GIVEN, UNIQUE_NAME] = None
    expires_at: Annotated[Time | None, Field(description="The expiry time, in the future; null means never.")] = None


class KeyRotate(BodyModel):
    """The rotation of a key; without a body, the old secret expires at once."""

    is_optional = True

    overlap_s: Annotated[
        int,
        Field(
            ge=0,
            le=MAX_OVERLAP_S,
            description="Seconds for which the old secret remains valid, at most 30 days; 0: it expires at once.",
        ),
    ] = 0


class KeyCheck(BodyModel):
    """A text that may contain keys, such as a line of a log."""

    text: Annotated[str, Field(min_length=1, max_length=65536, description="The text; it is not stored.")]
    revoke: Annotated[bool, Field(description="True to revoke the keys whose secret the text contains.")] = False


class SecretRotate(BodyModel):
    """The re-encryption of all values that an older secret key encrypted."""

    is_optional = True

    dry_run: Annotated[
        bool, Field(description="True reports the values that would be re-encrypted, and changes nothing.")
    ] = False
